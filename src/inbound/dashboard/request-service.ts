import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  LimitSnapshotSchema,
  LoggedRequestSchema,
  RequestService,
} from "../../../gen/parley/console/v1/request_pb.js";
import { toAttemptMessage } from "../../core/attempt.ts";
import { invalidField } from "../../core/failure.ts";
import type { LimitState } from "../../core/limiter.ts";
import type { LedgerStore, LogPosition } from "../../ledger/ledger-store.ts";
import type { RefusalStore } from "../../ledger/refusal-store.ts";
import { accountsInView, signedInOf } from "./call.ts";
import { pageSize, readMoment, writeMoment } from "./list-page.ts";
import type { EndedRequest } from "./request-feed.ts";
import { readFilter } from "./request-filter.ts";
import { listRequests, withKeyNames } from "./request-list.ts";
import { type WatchPorts, watchRequests } from "./request-watch.ts";
import type { Streams } from "./streams.ts";

/** Ports of the request log. */
export interface RequestServicePorts extends WatchPorts {
  readonly ledger: Pick<LedgerStore, "list" | "find">;
  readonly refusals: Pick<RefusalStore, "list" | "find">;
  readonly streams: Streams;
}

/** Single requests: of the accounts in which the caller has the permission. */
export function createRequestService(ports: RequestServicePorts): ServiceImpl<typeof RequestService> {
  const { ledger, refusals, feed, streams } = ports;
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
    async list({ filter, pageToken, limit }, context) {
      const { requests, next } = await listRequests(ports, {
        ...readFilter(filter, signedInOf(context)),
        limit: pageSize(limit),
        after: toPosition(readMoment(pageToken, "endedAtMs")),
      });
      return {
        requests: requests.map(toRequestMessage),
        nextPageToken: next === undefined ? "" : writeMoment(next.endedAtMs, next.completionId),
      };
    },

    async get({ id }, context) {
      const found = await find(id, accountsInView(signedInOf(context), "requests.read"));
      if (found === undefined) throw invalidField("id", "request not found");
      const [request] = found.keyName === undefined ? await withKeyNames(ports, [found]) : [found];
      return { request: toRequestMessage(request!) };
    },

    watch({ filter }, context) {
      return streams.run(context, async function* ({ open: { signal } }) {
        if (filter?.since !== undefined) throw invalidField("filter.since", "is not supported by live updates");
        if (filter?.until !== undefined) throw invalidField("filter.until", "is not supported by live updates");
        for await (const { requests, skipped } of watchRequests(
          ports,
          readFilter(filter, signedInOf(context)),
          signal,
        )) {
          yield { requests: requests.map(toRequestMessage), skipped: BigInt(skipped) };
        }
      });
    },
  };
}

function toPosition(moment: ReturnType<typeof readMoment<"endedAtMs">>): LogPosition | undefined {
  return moment && { endedAtMs: moment.endedAtMs, completionId: moment.id };
}

/** A request for pages. */
function toRequestMessage(ended: EndedRequest): MessageInitShape<typeof LoggedRequestSchema> {
  const { entry, keyName = "", message, refused } = ended;
  const { requestId, accountId, keyId, entrance, requestedModel, servedModel = "", streamed, outcome } = entry;
  const { tokens, durationMs, firstContentMs, partial, estimated, limits } = entry;
  return {
    id: entry.completionId,
    requestId,
    accountId,
    keyId,
    keyName,
    entrance,
    startTime: timestampFromMs(entry.startedAtMs),
    endTime: timestampFromMs(entry.endedAtMs),
    requestedModel,
    servedModel,
    streamed,
    outcome,
    message,
    attempts: entry.attempts.map(toAttemptMessage),
    promptTokens: BigInt(tokens.prompt),
    cachedTokens: BigInt(tokens.cached),
    completionTokens: BigInt(tokens.completion),
    reasoningTokens: BigInt(tokens.reasoning),
    imageTokens: BigInt(tokens.image),
    cacheWriteTokens: BigInt(tokens.cacheWrite ?? 0),
    cacheWriteHourTokens: BigInt(tokens.cacheWriteHour ?? 0),
    promptAudioTokens: BigInt(tokens.promptAudio ?? 0),
    promptImageTokens: BigInt(tokens.promptImage ?? 0),
    cachedAudioTokens: BigInt(tokens.cachedAudio ?? 0),
    cachedImageTokens: BigInt(tokens.cachedImage ?? 0),
    completionAudioTokens: BigInt(tokens.completionAudio ?? 0),
    webSearches: BigInt(tokens.webSearches ?? 0),
    fileSearches: BigInt(tokens.fileSearches ?? 0),
    codeExecutions: BigInt(tokens.codeExecutions ?? 0),
    unknownUnits: [...(tokens.unknown ?? [])],
    costMicroUsd: BigInt(entry.costMicroUsd),
    ownCostMicroUsd: BigInt(entry.ownCostMicroUsd ?? 0),
    durationMs,
    ...(firstContentMs !== undefined && { firstContentMs }),
    partial,
    estimated,
    refused,
    ...(limits?.requests !== undefined && { requestLimit: toSnapshot(limits.requests) }),
    ...(limits?.tokens !== undefined && { tokenLimit: toSnapshot(limits.tokens) }),
  };
}

function toSnapshot({ limit, remaining, resetMs }: LimitState): MessageInitShape<typeof LimitSnapshotSchema> {
  return {
    limit: BigInt(Math.round(limit)),
    remaining: BigInt(Math.round(remaining)),
    resetMs: BigInt(Math.round(resetMs)),
  };
}
