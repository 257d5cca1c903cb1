import type { Answer, Provider, UpstreamCall } from "../../core/provider.ts";
import { type DialectCall, fetchCount, fetchStream, fetchWhole } from "../wire/response.ts";
import type { Service } from "../wire/service.ts";
import { toFailure } from "./failure.ts";
import { toAnthropicRequest, toCountBody } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

/** Allows `block_binding` in the body, which is only sent to models that bind reasoning to its conversation. */
const BINDING = "thinking-binding-controls-2026-08-01";

/** A provider that speaks Anthropic's Messages API: the base URL is what comes before `/v1/messages`. */
export function anthropic({ upstream, headers, redact }: Service): Provider {
  const plain = {
    "content-type": "application/json",
    "accept-encoding": "identity",
    "anthropic-version": "2023-06-01",
    ...headers,
  };
  const configured = headers?.["anthropic-beta"];
  const toHeaders = ({ model, translation }: UpstreamCall): Readonly<Record<string, string>> => {
    const { betas = [], headers: callers } = translation;
    const names = model.capabilities.preservedReasoning ? [BINDING, ...betas] : betas;
    if (names.length === 0 && callers === undefined) return plain;
    const all = { ...callers, ...plain };
    if (names.length === 0) return all;
    return { ...all, "anthropic-beta": [...names, ...(configured === undefined ? [] : [configured])].join() };
  };

  const toWhole = (json: unknown): Answer => toAnswer(json, redact);

  const toDialectCall = (call: UpstreamCall): DialectCall => {
    const { translation, signal, idleMs, progress, keyFamilyId, accountId, share } = call;
    return {
      path: "/v1/messages",
      headers: toHeaders(call),
      body: translation.body,
      signal,
      idleMs,
      progress,
      keyFamilyId,
      accountId,
      share,
      toFailure: (refusal) => toFailure(refusal, redact, translation),
    };
  };

  return {
    translate: toAnthropicRequest,
    create: (call) => fetchWhole(upstream, toDialectCall(call), toWhole),
    stream: (call, emit) =>
      fetchStream(upstream, toDialectCall(call), {
        reader: new AnswerStream(redact),
        whole: (json) => toAnswerChunks(json, redact),
        emit,
      }),
    count: (call) => {
      const { body } = call.translation;
      const asked = {
        // Counting knows fewer betas, and none of their fields is counted.
        ...toDialectCall({ ...call, translation: { ...call.translation, betas: undefined } }),
        path: "/v1/messages/count_tokens",
        body: toCountBody(body),
      };
      return fetchCount(upstream, asked, "input_tokens");
    },
    close: () => upstream.close(),
  };
}
