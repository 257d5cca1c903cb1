import { HOPS_HEADER, withHops } from "../../core/hops.ts";
import type { Provider, UpstreamCall } from "../../core/provider.ts";
import { ofInputs } from "../wire/embeddings.ts";
import { listAt } from "../wire/model-list.ts";
import {
  type DialectCall,
  fetchNumbers,
  fetchStream,
  fetchWhole,
  type Refusal,
  toDialectCall,
} from "../wire/response.ts";
import { JSON_HEADERS, type Service } from "../wire/service.ts";
import { toEmbeddingAnswer, toEmbeddingRequest } from "./embeddings.ts";
import { toFailure } from "../wire/openai-failure.ts";
import { toOpenAiRequest } from "./request.ts";
import { AnswerStream, toAnswer, toAnswerChunks } from "./response.ts";

/** Path of a method for a model, below the base URL. */
export type OpenAiPaths = (method: "/chat/completions" | "/embeddings", model: string) => string;

/**
 * Addresses of deployments of Azure OpenAI, in which a model has the name of its deployment. Source: "Azure OpenAI in Azure AI Foundry
 * Models REST API reference", and the client `AzureOpenAI` of `openai` 7.55.0, November 2026.
 */
export function azureDeployments(apiVersion: string): OpenAiPaths {
  return (method, model) => `/openai/deployments/${encodeURIComponent(model)}${method}?api-version=${apiVersion}`;
}

/**
 * A provider that speaks OpenAI's chat completions and embeddings. By default `/chat/completions` and `/embeddings` are appended to
 * the base URL, which usually ends in `/v1`. HOPS_HEADER is not replaced by the service's headers.
 */
export function openai(service: Service, toPath: OpenAiPaths = (method) => method): Provider {
  const { upstream, headers: extra, redact } = service;
  // The number of gateways is not configurable: a wrong value could let requests loop between them.
  const headers = Object.freeze({ ...JSON_HEADERS, ...extra, [HOPS_HEADER]: "1" });

  const toCall = (call: UpstreamCall, method: Parameters<OpenAiPaths>[0] = "/chat/completions"): DialectCall =>
    toDialectCall(call, {
      path: toPath(method, call.model.name),
      headers: withHops(headers, call),
      toFailure: (refusal) => toFailure(refusal, service, call.translation),
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
          toFailure: (refusal: Refusal) => ofInputs(toFailure(refusal, { redact })),
        };
        return fetchNumbers(upstream, asked, (json) => toEmbeddingAnswer(json, inputs, redact));
      },
    },
    list: listAt(upstream, { path: "/models", headers, toFailure: (refusal) => toFailure(refusal, { redact }) }),
    close: () => upstream.close(),
  };
}
