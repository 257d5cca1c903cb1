import type { Answer, Provider, UpstreamCall } from "../../core/provider.ts";
import type { Upstream } from "../transport/http.ts";
import { redactionOf } from "../wire/redaction.ts";
import { type DialectCall, fetchCount, fetchStream, fetchWhole } from "../wire/response.ts";
import { toFailure } from "./failure.ts";
import { toAnthropicRequest, toCountBody } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

export interface AnthropicOptions {
  /** Its base URL is the origin and the prefix, if any, before `/v1/messages`. */
  readonly upstream: Upstream;
  /**
   * Credentials. The first one is used for every call: prompt caches, and on some models the reasoning that comes back
   * in a conversation, belong to the account that made them. None: the header is left out.
   */
  readonly apiKeys: readonly string[];
  /** Sent with every call. Wins over the dialect's own headers; names in lower case. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** Allows `block_binding` in the body, which is only sent to models that bind reasoning to its conversation. */
const BINDING = "thinking-binding-controls-2026-08-01";

/** A provider that speaks Anthropic's Messages API. */
export function anthropic({ upstream, apiKeys, headers }: AnthropicOptions): Provider {
  const [apiKey] = apiKeys;
  const redact = redactionOf([...apiKeys, ...Object.values(headers ?? {})]);
  const plain = {
    "content-type": "application/json",
    "accept-encoding": "identity",
    "anthropic-version": "2023-06-01",
    ...(apiKey !== undefined && { "x-api-key": apiKey }),
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
