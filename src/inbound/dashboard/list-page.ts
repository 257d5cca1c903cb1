import { type Timestamp, timestampMs } from "@bufbuild/protobuf/wkt";
import type { Page } from "../../access/key-store.ts";
import { invalidField } from "../../core/failure.ts";

const MAX_SIZE = 1000;

/** What a request asks for of a list that begins with the oldest. */
export interface PageRequest {
  readonly pageToken: string;
  readonly limit: number;
}

/** The page that is asked for, of at most 1,000 rows, which is also the default. Throws `invalid_request` for what is none. */
export function readPage({ pageToken, limit }: PageRequest): Page {
  if (limit < 0 || limit > MAX_SIZE) throw invalidField("limit", "must be 1 to 1,000");
  return { limit: limit === 0 ? MAX_SIZE : limit, after: readMoment(pageToken, "createdAtMs") };
}

/** Where a page of these rows ends; empty when there is nothing after it. */
export function endOfPage(
  rows: readonly { readonly createdAtMs: number; readonly id: string }[],
  { limit }: Page,
): string {
  const last = rows.at(-1);
  return last === undefined || rows.length < limit ? "" : writeMoment(last.createdAtMs, last.id);
}

/** A row by its time and ID, or with an empty one a moment, as a token that nobody is to look into; nothing in it is secret. */
export function writeMoment(atMs: number, id: string): string {
  return Buffer.from(`${atMs} ${id}`).toString("base64url");
}

/** What `writeMoment` wrote, its time under this name; undefined for an empty token. Throws `invalid_request`. */
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

/** How many rows a page has that was asked for with `limit`. Throws `invalid_request` for more than 100. */
export function pageSize(limit: number): number {
  if (limit >= 0 && limit <= MAX_ROWS) return limit === 0 ? DEFAULT_ROWS : limit;
  throw invalidField("limit", `must be 1 to ${MAX_ROWS}`);
}

/** A moment in Unix milliseconds. Throws `invalid_request` for one that no completion can have. */
export function readTime(field: string, time: Timestamp): number {
  const atMs = timestampMs(time);
  if (Number.isSafeInteger(atMs) && atMs >= 0) return atMs;
  throw invalidField(field, "must be a time after 1970");
}
