import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Page } from "../../access/key-store.ts";
import { invalidField } from "../../core/failure.ts";

const MAX_SIZE = 1000;

/** The requested page of a list in ascending order. */
export interface PageRequest {
  readonly pageToken: string;
  readonly limit: number;
}

/** Reads the requested page: at most 1,000 rows, also by default. Throws `invalid_request`. */
export function readPage({ pageToken, limit }: PageRequest): Page {
  if (limit < 0 || limit > MAX_SIZE) throw invalidField("limit", "must be 1 to 1,000");
  return { limit: limit === 0 ? MAX_SIZE : limit, after: readMoment(pageToken, "createdAtMs") };
}

/** Token of the next page; empty after the last one. */
export function endOfPage(
  rows: readonly { readonly createdAtMs: number; readonly id: string }[],
  { limit }: Page,
): string {
  const last = rows.at(-1);
  return last === undefined || rows.length < limit ? "" : writeMoment(last.createdAtMs, last.id);
}

/** Writes a row's time and ID (empty: a moment) as an opaque token without secrets. */
export function writeMoment(atMs: number, id: string): string {
  return Buffer.from(`${atMs} ${id}`).toString("base64url");
}

/** Reads a token of `writeMoment`, with its time under this name; undefined for an empty one. Throws `invalid_request`. */
export function readMoment<N extends string>(
  token: string,
  time: N,
): ({ readonly [K in N]: number } & { readonly id: string }) | undefined {
  if (token === "") return undefined;
  const [, ms, id] = /^(\d{1,15}) ([\w-]{0,64})$/.exec(Buffer.from(token, "base64url").toString("latin1")) ?? [];
  if (ms === undefined || id === undefined) throw invalidField("page_token", "is not a valid page token");
  return { [time]: Number(ms), id } as { readonly [K in N]: number } & { readonly id: string };
}

const DEFAULT_ROWS = 50;
const MAX_ROWS = 100;

/** Rows of a page with this `limit`. Throws `invalid_request` for more than 100. */
export function pageSize(limit: number): number {
  if (limit >= 0 && limit <= MAX_ROWS) return limit === 0 ? DEFAULT_ROWS : limit;
  throw invalidField("limit", `must be 1 to ${MAX_ROWS}`);
}

/** A time in Unix milliseconds. Throws `invalid_request` for one that is out of range. */
export function readTime(field: string, time: Timestamp): number {
  const atMs = timestampMs(time);
  if (Number.isSafeInteger(atMs) && atMs >= 0) return atMs;
  throw invalidField(field, "must be a time after 1970");
}
