import { fromJson, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs, ValueSchema } from "@bufbuild/protobuf/wkt";
import type {
  AttemptDetailsSchema,
  LimitSnapshotSchema,
  LoggedRequestSchema,
} from "../../../gen/parley/console/v1/request_pb.js";
import { FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { type Attempt, toAttemptMessage } from "../../core/attempt.ts";
import type { EntryDetails } from "../../core/entry-details.ts";
import type { LimitState } from "../../core/limiter.ts";
import type { EndedRequest } from "./request-feed.ts";

/** The caller to whom requests are shown. */
export interface Viewer {
  readonly isAdministrator: boolean;
  /** Address of a trace, with TRACE_ID in place of its ID; undefined without the setting. */
  readonly traceUrl: string | undefined;
}

/** Stands for the ID in `tracing.url`. */
const TRACE_ID = "{trace_id}";

/** A request for pages. */
export function toRequestMessage(
  { entry, keyName = "", message, refused }: EndedRequest,
  viewer: Viewer,
): MessageInitShape<typeof LoggedRequestSchema> {
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
    attemptDetails: entry.attempts.map((attempt) => toAttemptDetails(attempt, viewer)),
    ...toDetails(entry.details, viewer),
    endUser: entry.attribution?.endUser ?? "",
    session: entry.attribution?.session ?? "",
    agent: entry.attribution?.agent ?? "",
    tags: [...(entry.attribution?.tags ?? [])],
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

function toAttemptDetails(
  { sentMs, headMs, firstContentMs, providerError }: Attempt,
  { isAdministrator }: Viewer,
): MessageInitShape<typeof AttemptDetailsSchema> {
  return {
    ...(sentMs !== undefined && { sentMs }),
    ...(headMs !== undefined && { headMs }),
    ...(firstContentMs !== undefined && { firstContentMs }),
    ...(isAdministrator && providerError !== undefined && { providerError }),
  };
}

function toDetails(details: EntryDetails = {}, { isAdministrator, traceUrl }: Viewer) {
  const { format = "", client = "", traceId = "", omitted = [], clamped = [] } = details;
  const hasTrace = isAdministrator && traceUrl !== undefined && traceId !== "";
  return {
    format,
    client,
    traceId,
    finishReason: details.finishReason ?? FinishReason.UNSPECIFIED,
    omitted: [...omitted],
    omittedCount: details.omittedCount ?? omitted.length,
    clamped: clamped.map(({ field, requested, sent }) => {
      return { field, requested: fromJson(ValueSchema, requested), sent: fromJson(ValueSchema, sent) };
    }),
    ...(hasTrace && { traceUrl: traceUrl.replaceAll(TRACE_ID, traceId) }),
  };
}

function toSnapshot({ limit, remaining, resetMs }: LimitState): MessageInitShape<typeof LimitSnapshotSchema> {
  return {
    limit: BigInt(Math.round(limit)),
    remaining: BigInt(Math.round(remaining)),
    resetMs: BigInt(Math.round(resetMs)),
  };
}
