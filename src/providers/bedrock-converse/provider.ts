import type { Provider, UpstreamCall } from "../../core/provider.ts";
import { toBedrockFailure, toCountPath, toModelPath } from "../wire/bedrock.ts";
import { EVENT_STREAM } from "../wire/event-stream.ts";
import { type DialectCall, fetchCount, fetchFramedStream, fetchWhole } from "../wire/response.ts";
import type { Service } from "../wire/service.ts";
import { toConverseRequest, toCountBody } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

/** A provider that speaks Amazon Bedrock's Converse API. `/model/…` is appended to the base URL. */
export function bedrockConverse({ upstream, headers: configured, redact }: Service): Provider {
  const headers = Object.freeze({
    "content-type": "application/json",
    "accept-encoding": "identity",
    ...configured,
  });

  const toDialectCall = (
    { translation, signal, idleMs, progress, keyFamilyId, accountId, share, trace }: UpstreamCall,
    path: string,
  ): DialectCall => ({
    path,
    headers,
    body: translation.body,
    signal,
    idleMs,
    progress,
    keyFamilyId,
    accountId,
    share,
    trace,
    toFailure: (refusal) => toBedrockFailure(refusal, redact, translation),
  });

  return {
    translate: toConverseRequest,
    create: (call) => fetchWhole(upstream, toDialectCall(call, toModelPath(call.model.name, "converse")), toAnswer),
    stream: (call, emit) =>
      fetchFramedStream(upstream, toDialectCall(call, toModelPath(call.model.name, "converse-stream")), {
        framing: EVENT_STREAM,
        reader: new AnswerStream(redact),
        whole: toAnswerChunks,
        emit,
      }),
    count(call) {
      const asked = {
        ...toDialectCall(call, toCountPath(call.model.name)),
        body: toCountBody(call.translation.body),
      };
      return fetchCount(upstream, asked, "inputTokens");
    },
    close: () => upstream.close(),
  };
}
