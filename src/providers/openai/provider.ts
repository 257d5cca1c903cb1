import { HOPS_HEADER } from "../../core/hops.ts";
import type { Provider, UpstreamCall } from "../../core/provider.ts";
import type { Upstream } from "../transport/http.ts";
import { redactionOf } from "../wire/redaction.ts";
import { ofInputs } from "../wire/embeddings.ts";
import { type DialectCall, fetchNumbers, fetchStream, fetchWhole, type Refusal } from "../wire/response.ts";
import { toEmbeddingAnswer, toEmbeddingRequest } from "./embeddings.ts";
import { toFailure } from "../wire/openai-failure.ts";
import { toOpenAiRequest } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

export interface OpenAiOptions {
  /** Base URL, to which `/chat/completions` or `/embeddings` is appended; usually ends in `/v1`. */
  readonly upstream: Upstream;
  /**
   * Only the first one is used: cached prefixes and stored files belong to its account. Empty for servers without
   * authentication, such as local models: then no credential is sent.
   */
  readonly apiKeys: readonly string[];
  /** Sent with every request; names in lower case. Overrides the dialect's own headers except HOPS_HEADER. */
  readonly headers?: Readonly<Record<string, string>>;
}

/** A provider that speaks OpenAI's chat completions and embeddings. */
export function openai({ upstream, apiKeys, headers: extra }: OpenAiOptions): Provider {
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

  const toCall = (
    { translation, signal, idleMs, progress, keyFamilyId, accountId, share, hops = 0 }: UpstreamCall,
    path = "/chat/completions",
  ): DialectCall => ({
    path,
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

  return {
    translate: toOpenAiRequest,
    create: (call) => fetchWhole(upstream, toCall(call), (json) => toAnswer(json, redact)),
    stream: (call, emit) =>
      fetchStream(upstream, toCall(call), {
        reader: new AnswerStream(redact),
        whole: (json) => toAnswerChunks(json, redact),
        emit,
      }),
    embeddings: {
      translate: toEmbeddingRequest,
      create(call, inputs) {
        const asked = {
          ...toCall(call, "/embeddings"),
          toFailure: (refusal: Refusal) => ofInputs(toFailure(refusal, redact)),
        };
        return fetchNumbers(upstream, asked, (json) => toEmbeddingAnswer(json, inputs, redact));
      },
    },
    close: () => upstream.close(),
  };
}
