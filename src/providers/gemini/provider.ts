import type { Answer, Emit, Provider, UpstreamCall } from "../../core/provider.ts";
import { askForgiving, streamForgiving } from "../wire/ask-again.ts";
import { ofInputs } from "../wire/embeddings.ts";
import { listAt } from "../wire/model-list.ts";
import {
  type DialectCall,
  fetchCount,
  fetchNumbers,
  fetchStream,
  fetchWhole,
  type Refusal,
  toDialectCall,
} from "../wire/response.ts";
import { JSON_HEADERS, type Service } from "../wire/service.ts";
import { toFailure } from "./failure.ts";
import { isSigned, unsignedOrThrow } from "./foreign-signatures.ts";
import { toGeminiRequest } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";
import { DIRECT, type GeminiSite } from "./site.ts";
import type { GenerateContentRequest } from "./wire.ts";

/**
 * Creates a provider of the `gemini` dialect: `:generateContent`, `:streamGenerateContent`, `:countTokens` and embeddings, with
 * the paths of `site`, which by default is the Gemini API.
 */
export function gemini({ upstream, headers: extra, redact }: Service, site: GeminiSite = DIRECT): Provider {
  const headers = Object.freeze({ ...JSON_HEADERS, ...extra });

  const toCall = (call: UpstreamCall, method: string): DialectCall =>
    toDialectCall(call, {
      path: `${site.toPath(call.model.name)}:${method}`,
      headers,
      toFailure: (refusal) => toFailure(refusal, redact, call.translation),
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
    create: (call) => askForgiving(call, createOnce, unsignedOrThrow),
    stream: (call, emit) =>
      isSigned(call) ? streamForgiving(call, streamOnce, { emit, toNext: unsignedOrThrow }) : streamOnce(call, emit),
    embeddings: {
      translate: site.embeddings.translate,
      create(call, inputs) {
        const asked = {
          ...toCall(call, site.embeddings.method),
          toFailure: (refusal: Refusal) => ofInputs(toFailure(refusal, redact)),
        };
        return fetchNumbers(upstream, asked, (json) => site.embeddings.toAnswer(json, inputs, redact));
      },
    },
    count: (call) => {
      const body = JSON.parse(call.translation.body.toString()) as GenerateContentRequest;
      const counted = Buffer.from(JSON.stringify(site.toCountBody(call.model.name, body)));
      const asked = { ...toCall(call, "countTokens"), body: counted };
      return fetchCount(upstream, asked, "totalTokens");
    },
    ...(site === DIRECT && {
      list: listAt(upstream, {
        path: "/v1beta/models?pageSize=1000",
        headers: headers,
        toFailure: (refusal) => toFailure(refusal, redact),
      }),
    }),
    close: () => upstream.close(),
  };
}
