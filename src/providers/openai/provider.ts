import { HOPS_HEADER } from "../../core/hops.ts";
import type { Provider, UpstreamCall } from "../../core/provider.ts";
import { ofInputs } from "../wire/embeddings.ts";
import { type DialectCall, fetchNumbers, fetchStream, fetchWhole, type Refusal } from "../wire/response.ts";
import type { Service } from "../wire/service.ts";
import { toEmbeddingAnswer, toEmbeddingRequest } from "./embeddings.ts";
import { toFailure } from "../wire/openai-failure.ts";
import { toOpenAiRequest } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

/**
 * A provider that speaks OpenAI's chat completions and embeddings: `/chat/completions` and `/embeddings` are appended to the base
 * URL, which usually ends in `/v1`. HOPS_HEADER is not replaced by the service's headers.
 */
export function openai({ upstream, headers: extra, redact }: Service): Provider {
  const headers = Object.freeze({
    "content-type": "application/json",
    // Compression would delay a stream until a block is full.
    "accept-encoding": "identity",
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
