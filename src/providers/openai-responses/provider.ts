import { HOPS_HEADER, withHops } from "../../core/hops.ts";
import type { Answer, Emit, Provider, UpstreamCall } from "../../core/provider.ts";
import { askForgiving, streamForgiving } from "../wire/ask-again.ts";
import { toFailure } from "../wire/openai-failure.ts";
import { listAt } from "../wire/model-list.ts";
import { type DialectCall, fetchCount, fetchStream, fetchWhole, toDialectCall } from "../wire/response.ts";
import { JSON_HEADERS, type Service } from "../wire/service.ts";
import { hasReasoning, withoutReasoningOrThrow } from "./foreign-reasoning.ts";
import { toCountBody, toResponsesRequest } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

/**
 * A provider that speaks OpenAI's Responses API: `/responses` is appended to the base URL, which usually ends in `/v1`. HOPS_HEADER is
 * not replaced by the service's headers.
 */
export function openaiResponses(service: Service): Provider {
  const { upstream, headers: extra, redact } = service;
  // The number of gateways is not configurable: a wrong value could let requests loop between them.
  const headers = Object.freeze({ ...JSON_HEADERS, ...extra, [HOPS_HEADER]: "1" });

  const toCall = (call: UpstreamCall): DialectCall =>
    toDialectCall(call, {
      path: "/responses",
      headers: withHops(headers, call),
      toFailure: (refusal) => toFailure(refusal, service, call.translation),
    });

  const createOnce = (call: UpstreamCall): Promise<Answer> =>
    fetchWhole(upstream, toCall(call), (json) => toAnswer(json, redact));
  const streamOnce = (call: UpstreamCall, emit: Emit): Promise<void> =>
    fetchStream(upstream, toCall(call), {
      reader: new AnswerStream(redact),
      whole: (json) => toAnswerChunks(json, redact),
      emit,
    });

  return {
    translate: toResponsesRequest,
    create: (call) => askForgiving(call, createOnce, withoutReasoningOrThrow),
    stream: (call, emit) =>
      hasReasoning(call)
        ? streamForgiving(call, streamOnce, { emit, toNext: withoutReasoningOrThrow })
        : streamOnce(call, emit),
    count: (call) => {
      const body = toCountBody(call.translation.body);
      return fetchCount(upstream, { ...toCall(call), path: "/responses/input_tokens", body }, "input_tokens");
    },
    list: listAt(upstream, { path: "/models", headers, toFailure: (refusal) => toFailure(refusal, { redact }) }),
    close: () => upstream.close(),
  };
}
