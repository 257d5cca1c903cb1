import { HOPS_HEADER } from "../../core/hops.ts";
import type { Answer, Emit, Provider, UpstreamCall } from "../../core/provider.ts";
import type { Upstream } from "../transport/http.ts";
import { toFailure } from "../wire/openai-failure.ts";
import { redactionOf } from "../wire/redaction.ts";
import { type DialectCall, fetchCount, fetchStream, fetchWhole } from "../wire/response.ts";
import { askForgiving, hasReasoning, streamForgiving } from "./foreign-reasoning.ts";
import { toCountBody, toResponsesRequest } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

export interface OpenAiResponsesOptions {
  /** Base URL, to which `/responses` is appended; usually ends in `/v1`. */
  readonly upstream: Upstream;
  /**
   * Only the first one is used: encrypted reasoning and cached prefixes belong to its account. Empty for servers without
   * authentication: then no credential is sent.
   */
  readonly apiKeys: readonly string[];
  /** Sent with every request; names in lower case. Overrides the dialect's own headers except HOPS_HEADER. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A provider that speaks OpenAI's Responses API. */
export function openaiResponses({ upstream, apiKeys, headers: extra }: OpenAiResponsesOptions): Provider {
  const [apiKey] = apiKeys;
  const redact = redactionOf([...apiKeys, ...Object.values(extra ?? {})]);
  const headers = Object.freeze({
    "content-type": "application/json",
    // Compression would delay a stream until a block is full.
    "accept-encoding": "identity",
    ...(apiKey !== undefined && { authorization: `Bearer ${apiKey}` }),
    ...extra,
    // Not configurable: a wrong value could let requests loop between gateways.
    [HOPS_HEADER]: "1",
  });

  const toCall = ({
    translation,
    signal,
    idleMs,
    progress,
    keyFamilyId,
    accountId,
    share,
    hops = 0,
  }: UpstreamCall): DialectCall => ({
    path: "/responses",
    headers: hops === 0 ? headers : { ...headers, [HOPS_HEADER]: String(hops + 1) },
    body: translation.body,
    signal,
    idleMs,
    progress,
    keyFamilyId,
    accountId,
    share,
    toFailure: (refusal) => toFailure(refusal, redact, translation),
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
    create: (call) => askForgiving(call, createOnce),
    stream: (call, emit) => (hasReasoning(call) ? streamForgiving(call, streamOnce, emit) : streamOnce(call, emit)),
    count: (call) => {
      const body = toCountBody(call.translation.body);
      return fetchCount(upstream, { ...toCall(call), path: "/responses/input_tokens", body }, "input_tokens");
    },
    close: () => upstream.close(),
  };
}
