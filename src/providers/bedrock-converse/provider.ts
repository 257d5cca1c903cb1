import type { Provider, UpstreamCall } from "../../core/provider.ts";
import { toBedrockFailure, toCountPath, toModelPath } from "../wire/bedrock.ts";
import { EVENT_STREAM } from "../wire/event-stream.ts";
import { type DialectCall, fetchCount, fetchFramedStream, fetchWhole, toDialectCall } from "../wire/response.ts";
import { JSON_HEADERS, type Service } from "../wire/service.ts";
import { toConverseRequest, toCountBody } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

/** A provider that speaks Amazon Bedrock's Converse API. `/model/…` is appended to the base URL. */
export function bedrockConverse({ upstream, headers: configured, redact }: Service): Provider {
  const headers = Object.freeze({ ...JSON_HEADERS, ...configured });

  const toCall = (call: UpstreamCall, path: string): DialectCall =>
    toDialectCall(call, {
      path,
      headers,
      toFailure: (refusal) => toBedrockFailure(refusal, redact, call.translation),
    });

  return {
    translate: toConverseRequest,
    create: (call) => fetchWhole(upstream, toCall(call, toModelPath(call.model.name, "converse")), toAnswer),
    stream: (call, emit) =>
      fetchFramedStream(upstream, toCall(call, toModelPath(call.model.name, "converse-stream")), {
        framing: EVENT_STREAM,
        reader: new AnswerStream(redact),
        whole: toAnswerChunks,
        emit,
      }),
    count(call) {
      const asked = {
        ...toCall(call, toCountPath(call.model.name)),
        body: toCountBody(call.translation.body),
      };
      return fetchCount(upstream, asked, "inputTokens");
    },
    close: () => upstream.close(),
  };
}
