import type { Answer, Emit, Provider, UpstreamCall } from "../../core/provider.ts";
import { ofInputs } from "../wire/embeddings.ts";
import { type DialectCall, fetchCount, fetchNumbers, fetchStream, fetchWhole, type Refusal } from "../wire/response.ts";
import type { Service } from "../wire/service.ts";
import { toEmbeddingAnswer, toEmbeddingRequest } from "./embeddings.ts";
import { toFailure } from "./failure.ts";
import { askForgiving, isSigned, streamForgiving } from "./foreign-signatures.ts";
import { toGeminiRequest } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

/**
 * Creates a provider of the `gemini` dialect: `POST /v1beta/models/{model}:generateContent`, `:streamGenerateContent` and
 * `:batchEmbedContents`.
 */
export function gemini({ upstream, headers: extra, redact }: Service): Provider {
  const headers = Object.freeze({
    "content-type": "application/json",
    // Compression would delay a stream until a block is full.
    "accept-encoding": "identity",
    ...extra,
  });

  const toCall = (
    { model, translation, signal, idleMs, progress, keyFamilyId, accountId, share }: UpstreamCall,
    method: string,
  ): DialectCall => ({
    path: `/v1beta/${toModelPath(model.name)}:${method}`,
    headers,
    body: translation.body,
    signal,
    idleMs,
    progress,
    keyFamilyId,
    accountId,
    share,
    toFailure: (refusal) => toFailure(refusal, redact, translation),
  });

  // Without `alt=sse` the response is one JSON array.
  const streamOnce = (call: UpstreamCall, emit: Emit): Promise<void> =>
    fetchStream(upstream, toCall(call, "streamGenerateContent?alt=sse"), {
      reader: new AnswerStream(redact),
      whole: (json) => toAnswerChunks(json, redact),
      emit,
    });
  const createOnce = (call: UpstreamCall): Promise<Answer> =>
    fetchWhole(upstream, toCall(call, "generateContent"), (json) => toAnswer(json, redact));

  return {
    translate: toGeminiRequest,
    create: (call) => askForgiving(call, createOnce),
    stream: (call, emit) => (isSigned(call) ? streamForgiving(call, streamOnce, emit) : streamOnce(call, emit)),
    embeddings: {
      translate: toEmbeddingRequest,
      create(call, inputs) {
        const asked = {
          ...toCall(call, "batchEmbedContents"),
          toFailure: (refusal: Refusal) => ofInputs(toFailure(refusal, redact)),
        };
        return fetchNumbers(upstream, asked, (json) => toEmbeddingAnswer(json, inputs, redact));
      },
    },
    count: (call) => {
      const asked = { ...toCall(call, "countTokens"), body: toCountBody(call) };
      return fetchCount(upstream, asked, "totalTokens");
    },
    close: () => upstream.close(),
  };
}

/** The body of `countTokens` for a translated request. The model is named in the body too. */
function toCountBody({ model, translation }: UpstreamCall): Buffer {
  const name = model.name.includes("/") ? model.name : `models/${model.name}`;
  const request = JSON.parse(translation.body.toString()) as object;
  return Buffer.from(JSON.stringify({ generateContentRequest: { model: name, ...request } }));
}

/** Returns the URL path of a model. A name with a slash includes its collection: `models/…`, `tunedModels/…`. */
function toModelPath(name: string): string {
  const path = name.includes("/") ? name : `models/${name}`;
  return path.split("/").filter(Boolean).map(encodeURIComponent).join("/");
}
