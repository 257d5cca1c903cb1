import { invalidField } from "../../core/failure.ts";
import type { LedgerStore, LogOrder, SortedQuery } from "../../ledger/ledger-store.ts";
import type { EndedRequest } from "./request-feed.ts";
import { type AccountView, type RequestListPorts, withKeyNames } from "./request-list.ts";

/** An order. */
export type Sort = Pick<SortedQuery, "order" | "isAscending">;

export interface SortPorts extends Pick<RequestListPorts, "keys" | "feed"> {
  readonly ledger: Pick<LedgerStore, "listSorted">;
}

interface SortAsked extends Omit<SortedQuery, "after"> {
  readonly pageToken: string;
}

/** A page of sorted requests. */
interface SortedRequests {
  readonly requests: readonly EndedRequest[];
  readonly nextPageToken: string;
  readonly sortedSinceMs: number | undefined;
}

/** End of a page, and beginning of the time of the requests on all pages. */
interface Place {
  readonly after: NonNullable<SortedQuery["after"]>;
  readonly sinceMs: number | undefined;
  /** Whether earlier requests were left out. */
  readonly isCut: boolean;
}

/** Lists requests of the ledger in another order than that of time. Throws `invalid_request` for an invalid page token. */
export async function sortRequests(
  ports: SortPorts,
  { pageToken, ...query }: SortAsked,
  view: AccountView,
): Promise<SortedRequests> {
  const place = pageToken === "" ? undefined : readPlace(pageToken, query.order);
  const page = await ports.ledger.listSorted({
    ...query,
    after: place?.after,
    sinceMs: place?.sinceMs ?? query.sinceMs,
  });
  const requests = page.entries.map((entry): EndedRequest => {
    return { entry, keyName: undefined, message: ports.feed.messageOf(entry.completionId), refused: false };
  });
  // The store's is the later one, within the span of the first page.
  const sortedSinceMs = page.sortedSinceMs ?? (place?.isCut ? place.sinceMs : undefined);
  const sinceMs = page.sortedSinceMs ?? place?.sinceMs ?? query.sinceMs;
  const isCut = sortedSinceMs !== undefined;
  return {
    requests: await withKeyNames(ports, requests, view),
    nextPageToken: page.next === undefined ? "" : writePlace({ after: page.next, sinceMs, isCut }),
    sortedSinceMs,
  };
}

function writePlace({ after: { value, endedAtMs, completionId }, sinceMs, isCut }: Place): string {
  const parts = [value, endedAtMs, completionId, sinceMs ?? "-", isCut ? 1 : 0];
  return Buffer.from(parts.join(" ")).toString("base64url");
}

const PLACE = /^(\d{1,16}(?:\.\d{1,20})?(?:e-\d{1,3})?) (\d{1,15}) ([\w-]{1,64}) (-|\d{1,15}) ([01])$/;

/** The latest time that a Timestamp can have: the end of the year 9999. */
const MAX_TIME_MS = Date.UTC(10_000, 0) - 1;
/** Orders by whole numbers. PostgreSQL compares no other ones with them. */
const WHOLE_ORDERS: ReadonlySet<LogOrder> = new Set(["cost", "tokens"]);

function readPlace(token: string, order: LogOrder): Place {
  const parts = PLACE.exec(Buffer.from(token, "base64url").toString("latin1"));
  const [, value, endedAtMs, completionId, sinceMs, cut] = parts ?? [];
  const isOfOrder = !WHOLE_ORDERS.has(order) || Number.isInteger(Number(value));
  if (parts === null || !isOfOrder || Number(sinceMs) > MAX_TIME_MS)
    throw invalidField("page_token", "is not a valid page token");
  return {
    after: { value: Number(value), endedAtMs: Number(endedAtMs), completionId: completionId! },
    sinceMs: sinceMs === "-" ? undefined : Number(sinceMs),
    isCut: cut === "1",
  };
}
