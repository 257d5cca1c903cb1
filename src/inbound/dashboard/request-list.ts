import type { KeyStore } from "../../access/key-store.ts";
import type { LedgerStore, LogPosition, LogQuery } from "../../ledger/ledger-store.ts";
import type { RefusalStore } from "../../ledger/refusal-store.ts";
import type { EndedRequest, RequestFeed } from "./request-feed.ts";

/** Stores of ended requests, with the names of keys and the messages of failures. */
export interface RequestListPorts {
  readonly ledger: Pick<LedgerStore, "list">;
  readonly refusals: Pick<RefusalStore, "list">;
  readonly keys: Pick<KeyStore, "names">;
  readonly feed: Pick<RequestFeed, "messageOf">;
}

/** A page of ended requests. */
export interface RequestPage {
  /** Latest end first, then largest ID. */
  readonly requests: readonly EndedRequest[];
  /** Start of the next page; undefined after the last one. */
  readonly next: LogPosition | undefined;
}

/** Lists the entries of the ledger and the samples of refused requests as one log. */
export async function listRequests(ports: RequestListPorts, query: LogQuery, view: AccountView): Promise<RequestPage> {
  const { ledger, refusals, feed } = ports;
  const [entries, refused] = await Promise.all([ledger.list(query), refusals.list(query)]);
  const page = mergePages(
    [
      {
        next: entries.next,
        requests: entries.entries.map((entry) => {
          return { entry, keyName: undefined, message: feed.messageOf(entry.completionId), refused: false };
        }),
      },
      {
        next: refused.next,
        requests: refused.requests.map((each) => ({ ...each, keyName: undefined, refused: true })),
      },
    ],
    query.limit,
  );
  return { ...page, requests: await withKeyNames(ports, page.requests, view) };
}

/** The accounts whose keys' names a caller may see; undefined: all. */
export type AccountView = readonly string[] | undefined;

/** The same requests with the names of their keys, except for those that an account outside the caller's view owns by now. */
export async function withKeyNames(
  { keys }: Pick<RequestListPorts, "keys">,
  requests: readonly EndedRequest[],
  view: AccountView,
): Promise<EndedRequest[]> {
  const found = await keys.names([...new Set(requests.map(({ entry }) => entry.keyId))]);
  return requests.map((request) => {
    const { keyId, accountId } = request.entry;
    const key = found.get(keyId);
    const isShown = key !== undefined && (key.accountId === accountId || view?.includes(key.accountId) !== false);
    return { ...request, keyName: isShown ? key.name : undefined };
  });
}

/** Merges pages that begin at the same position into one of at most `limit` requests. */
export function mergePages(pages: readonly RequestPage[], limit: number): RequestPage {
  // Beyond the end of a page that has a next one, requests of that page are not known yet.
  const ends = pages.flatMap(({ next }) => (next === undefined ? [] : [next])).toSorted(byPosition);
  const known = pages
    .flatMap(({ requests }) => requests)
    .filter((request) => ends[0] === undefined || byPosition(positionOf(request), ends[0]) <= 0)
    .toSorted((left, right) => byPosition(positionOf(left), positionOf(right)));
  const requests = known.slice(0, limit);
  return { requests, next: known.length > limit ? positionOf(requests.at(-1)!) : ends[0] };
}

function positionOf({ entry: { endedAtMs, completionId } }: EndedRequest): LogPosition {
  return { endedAtMs, completionId };
}

/** Latest end first, then largest ID. */
function byPosition(left: LogPosition, right: LogPosition): number {
  if (left.endedAtMs !== right.endedAtMs) return right.endedAtMs - left.endedAtMs;
  if (left.completionId === right.completionId) return 0;
  return left.completionId < right.completionId ? 1 : -1;
}
