import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type ListRequestsRequest,
  type RequestFilter,
  RequestOrder,
  type RequestService,
  type StoredContent,
} from "../../../gen/parley/console/v1/request_pb.js";
import type { AccessContext } from "../../access/context.ts";
import { accountsWith, permitsEverywhere } from "../../access/permissions.ts";
import { MAX_SAVED_FILTERS, type SavedFilters } from "../../access/saved-filters.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import type { LedgerStore, LogOrder, LogPosition } from "../../ledger/ledger-store.ts";
import type { RefusalStore } from "../../ledger/refusal-store.ts";
import { Turns } from "../../scheduling/turns.ts";
import { ConcurrencyLimit } from "../concurrency-limit.ts";
import { actorOf, mayStillRead, signedInOf } from "./call.ts";
import { pageSize, readMoment, writeMoment } from "./list-page.ts";
import type { ReportTurns } from "./report-turns.ts";
import { exportRequests } from "./request-export.ts";
import type { EndedRequest } from "./request-feed.ts";
import { readFilter } from "./request-filter.ts";
import { listRequests, withKeyNames } from "./request-list.ts";
import { toRequestMessage, type Viewer } from "./request-messages.ts";
import { type Sort, sortRequests } from "./request-sort.ts";
import { type WatchPorts, watchRequests } from "./request-watch.ts";
import { readName, readSavedFilter } from "./saved-filter.ts";
import type { Streams } from "./streams.ts";

/** Stored prompts and answers. */
export interface ContentReader {
  /** Undefined when none is stored, or its time is over. Throws a Failure when it cannot be read. */
  read(accountId: string, completionId: string): Promise<StoredContent | undefined>;
}

/** Ports of the request log. */
export interface RequestServicePorts extends WatchPorts {
  readonly access: Pick<AccessContext, "log">;
  /** Undefined: none are stored. */
  readonly contents?: ContentReader | undefined;
  readonly ledger: Pick<LedgerStore, "list" | "listSorted" | "find">;
  readonly refusals: Pick<RefusalStore, "list" | "find">;
  readonly savedFilters: SavedFilters;
  readonly streams: Streams;
  readonly reports: ReportTurns;
  /** The setting `tracing.url`, which a reload changes. */
  readonly traceUrl: () => string | undefined;
}

/** Exports at once per account: each has a piece of its file in memory, and reads for as long as it runs. */
const MAX_EXPORTS = 2;

const ORDERS: ReadonlyMap<RequestOrder, LogOrder | undefined> = new Map([
  [RequestOrder.UNSPECIFIED, undefined],
  [RequestOrder.COST, "cost"],
  [RequestOrder.DURATION, "duration"],
  [RequestOrder.TOKENS, "tokens"],
  [RequestOrder.FIRST_CONTENT, "firstContent"],
]);

/** Single requests: of the accounts in which the caller has the permission. */
export function createRequestService(ports: RequestServicePorts): ServiceImpl<typeof RequestService> {
  const { ledger, refusals, feed, streams, reports, savedFilters } = ports;
  const exports = new ConcurrencyLimit(MAX_EXPORTS);
  /** Streams ask the database one at a time: there may be thousands, and completions wait for it too. */
  const polls = new Turns(1);
  const viewerOf = (context: Pick<HandlerContext, "values">): Viewer => {
    const isAdministrator = permitsEverywhere(signedInOf(context), "requests.read");
    return { isAdministrator, traceUrl: ports.traceUrl() };
  };
  const viewOf = (context: Pick<HandlerContext, "values">) => accountsWith(signedInOf(context), "requests.read");
  /** The request with this completion ID, or else the latest with this request ID. */
  const find = async (id: string, accountIds: readonly string[] | undefined): Promise<EndedRequest | undefined> => {
    // Length and characters of callers' own request IDs.
    if (!/^[\x21-\x7e]{1,128}$/.test(id)) return undefined;
    const here = feed.find(id, accountIds);
    const [entry, sample] = await Promise.all([
      ledger.find(id, accountIds),
      here === undefined ? refusals.find(id, accountIds) : undefined,
    ]);
    const served = entry && { entry, keyName: undefined, message: feed.messageOf(entry.completionId), refused: false };
    const refused = here ?? (sample && { ...sample, keyName: undefined, refused: true });
    const found = [served, refused].filter((each) => each !== undefined);
    // Callers choose request IDs: one that equals a completion ID must not hide that completion.
    const named = found.find((each) => each.entry.completionId === id);
    return named ?? found.toSorted((left, right) => right.entry.endedAtMs - left.entry.endedAtMs)[0];
  };

  return {
    async list({ filter, pageToken, limit, ...asked }, context) {
      const sort = readSort(asked);
      const query = { ...readFilter(filter, signedInOf(context)), limit: pageSize(limit) };
      const viewer = viewerOf(context);
      if (sort !== undefined) {
        const page = await sortRequests(ports, { ...query, ...sort, pageToken }, viewOf(context));
        return {
          requests: page.requests.map((each) => toRequestMessage(each, viewer)),
          nextPageToken: page.nextPageToken,
          ...(page.sortedSinceMs !== undefined && { sortedSince: timestampFromMs(page.sortedSinceMs) }),
        };
      }
      const after = toPosition(readMoment(pageToken, "endedAtMs"));
      const { requests, next } = await listRequests(ports, { ...query, after }, viewOf(context));
      return {
        requests: requests.map((each) => toRequestMessage(each, viewer)),
        nextPageToken: next === undefined ? "" : writeMoment(next.endedAtMs, next.completionId),
      };
    },

    async get({ id }, context) {
      const view = viewOf(context);
      const found = await find(id, view);
      if (found === undefined) throw invalidField("id", "request not found");
      const [request] = found.keyName === undefined ? await withKeyNames(ports, [found], view) : [found];
      return { request: toRequestMessage(request!, viewerOf(context)) };
    },

    async getContent({ id }, context) {
      const found = await find(id, accountsWith(signedInOf(context), "content.read"));
      if (found === undefined) throw invalidField("id", "request not found");
      const { accountId, completionId } = found.entry;
      const content = found.refused ? undefined : await ports.contents?.read(accountId, completionId);
      if (content === undefined) return {};
      const object = { kind: "completion", id: completionId } as const;
      await ports.access.log.record({ action: "content_read", accountId, object, ...actorOf(context) });
      return { content };
    },

    watch({ filter }, context) {
      if (filter?.since !== undefined) throw invalidField("filter.since", "is not supported by live updates");
      if (filter?.until !== undefined) throw invalidField("filter.until", "is not supported by live updates");
      const watched = streamedBy(filter, context);
      const { id } = signedInOf(context).account;
      return streams.run(
        context,
        async function* ({ open: { signal } }) {
          const inTurn = <T>(read: () => Promise<T>): Promise<T> => polls.run(id, signal, read);
          for await (const { requests, skipped } of watchRequests(ports, { ...watched, inTurn }, signal)) {
            yield {
              requests: requests.map((each) => toRequestMessage(each, viewerOf(context))),
              skipped: BigInt(skipped),
            };
          }
        },
        mayStillRead("requests.read", watched.filter.accountId),
      );
    },

    async *export({ filter, format, ...asked }, context) {
      const exported = { ...streamedBy(filter, context), sort: readSort(asked) };
      const { id } = signedInOf(context).account;
      const release = exports.take(id);
      if (release === undefined)
        throw new Failure(
          "rate_limited",
          `This account has reached the maximum of ${MAX_EXPORTS} exports of requests at once. Wait for one to complete.`,
        );
      try {
        yield* streams.run(
          context,
          ({ open: { signal } }) => {
            const inTurn = <T>(read: () => Promise<T>): Promise<T> => reports.run(id, signal, read);
            return exportRequests(ports, { ...exported, format, signal, inTurn });
          },
          mayStillRead("requests.read", exported.filter.accountId),
        );
      } finally {
        release();
      }
    },

    async listSavedFilters(_, context) {
      return { filters: [...(await savedFilters.list(signedInOf(context).account.id))] };
    },

    async saveFilter({ filter }, context) {
      const saved = readSavedFilter(filter);
      if (await savedFilters.save(signedInOf(context).account.id, saved)) return {};
      throw new Failure(
        "rate_limited",
        `An account can save at most ${MAX_SAVED_FILTERS} filters. Remove one, then save this one.`,
      );
    },

    async removeSavedFilter({ name }, context) {
      await savedFilters.remove(signedInOf(context).account.id, readName("name", name));
      return {};
    },
  };
}

/** Another order than that of the latest end first; undefined for that. Throws `invalid_request`. */
function readSort({
  order: asked,
  ascending: isAscending,
}: Pick<ListRequestsRequest, "order" | "ascending">): Sort | undefined {
  if (!ORDERS.has(asked)) throw invalidField("order", "is not known to this version");
  const order = ORDERS.get(asked) ?? (isAscending ? "time" : undefined);
  return order && { order, isAscending };
}

/**
 * Filter and view of a stream. It shows the name of a key only while the request's account owns the key: the caller may lose
 * the permission in other accounts before the stream ends.
 */
function streamedBy(message: RequestFilter | undefined, context: Pick<HandlerContext, "values">) {
  const filter = readFilter(message, signedInOf(context));
  const isOfAll = permitsEverywhere(signedInOf(context), "requests.read");
  return { filter, view: isOfAll ? undefined : [] };
}

function toPosition(moment: ReturnType<typeof readMoment<"endedAtMs">>): LogPosition | undefined {
  return moment && { endedAtMs: moment.endedAtMs, completionId: moment.id };
}
