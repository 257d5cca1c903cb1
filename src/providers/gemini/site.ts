import type { EmbeddingRequest } from "../../../gen/parley/v1/embedding_pb.js";
import type { EmbeddingAnswer, Translation, UpstreamModel } from "../../core/provider.ts";
import type { Redact } from "../wire/redaction.ts";
import { toEmbeddingAnswer, toEmbeddingRequest } from "./embeddings.ts";
import { toPredictAnswer, toPredictRequest } from "./predict.ts";
import type { GenerateContentRequest } from "./wire.ts";

/** The differences between hosts of Gemini's models: paths, counts and embeddings. */
export interface GeminiSite {
  /** Path of a model below the base URL, to which `:` and the method are appended. */
  toPath(model: string): string;
  /** The body that counts the tokens of a request. */
  toCountBody(model: string, body: GenerateContentRequest): object;
  readonly embeddings: {
    readonly method: string;
    readonly translate: (request: EmbeddingRequest, model: UpstreamModel) => Translation;
    readonly toAnswer: (json: unknown, inputs: number, redact?: Redact) => Promise<EmbeddingAnswer>;
  };
}

/** The Gemini API. A name with a slash includes its collection: `models/…`, `tunedModels/…`. */
export const DIRECT: GeminiSite = {
  toPath: (model) => `/v1beta/${toSegments(inModels(model))}`,
  toCountBody: (model, body) => ({ generateContentRequest: { model: inModels(model), ...body } }),
  embeddings: { method: "batchEmbedContents", translate: toEmbeddingRequest, toAnswer: toEmbeddingAnswer },
};

/**
 * Vertex AI: the path has a project and a region before the model. A name without a slash is a model of Google; any other name is a
 * path such as `publishers/…/models/…` or `endpoints/…`. Source: `@google/genai` 3.1.0, and the REST reference of Vertex AI, November
 * 2026.
 */
export function vertexSite({ project, region }: { readonly project: string; readonly region: string }): GeminiSite {
  const place = `/v1/projects/${project}/locations/${region}`;
  return {
    toPath: (model) => `${place}/${toSegments(model.includes("/") ? model : `publishers/google/models/${model}`)}`,
    toCountBody(_model, { contents, systemInstruction, tools, generationConfig }) {
      return { contents, systemInstruction, tools, generationConfig };
    },
    embeddings: { method: "predict", translate: toPredictRequest, toAnswer: toPredictAnswer },
  };
}

function inModels(name: string): string {
  return name.includes("/") ? name : `models/${name}`;
}

/** Escapes the segments of a path, except `@` in model names at Vertex AI, which Google's client does not escape either. */
function toSegments(path: string): string {
  return path
    .split("/")
    .filter(Boolean)
    .map((segment) => encodeURIComponent(segment).replaceAll("%40", "@"))
    .join("/");
}
