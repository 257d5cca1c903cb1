import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { LimitSnapshotSchema, LoggedRequestSchema } from "../../../gen/parley/console/v1/request_pb.js";
import type { LimitState } from "../../core/limiter.ts";
import type { EndedRequest } from "./request-feed.ts";

/** A request as pages show it. */
export function toRequestMessage(ended: EndedRequest): MessageInitShape<typeof LoggedRequestSchema> {
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
    attempts: [...entry.attempts],
    promptTokens: BigInt(tokens.prompt),
    cachedTokens: BigInt(tokens.cached),
    completionTokens: BigInt(tokens.completion),
    reasoningTokens: BigInt(tokens.reasoning),
    imageTokens: BigInt(tokens.image),
    costMicroUsd: BigInt(entry.costMicroUsd),
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
