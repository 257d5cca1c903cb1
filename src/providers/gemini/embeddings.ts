import { type EmbeddingRequest, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { EmbeddingAnswer, Translation, UpstreamModel } from "../../core/provider.ts";
import { bytesOfInputs } from "../../core/token-estimate.ts";
import { textsOf } from "../../core/validate-embedding.ts";
import { ofInputs, readVectors, requireVectors } from "../wire/embeddings.ts";
import { array, object, usageCount } from "../wire/json.ts";
import { keepAll } from "../wire/redaction.ts";
import { toUsage } from "../wire/token-usage.ts";
import { TranslationLog } from "../wire/translation.ts";
import { toInBandFailure } from "./failure.ts";
import type { BatchEmbedContentsRequest } from "./wire.ts";

/** Limit of inputs that the provider takes in one call. */
const MAX_BATCH = 100;

/** Task types by the purpose of the vectors. */
export const TASKS: Readonly<Record<EmbeddingTask, string | undefined>> = {
  [EmbeddingTask.UNSPECIFIED]: undefined,
  [EmbeddingTask.QUERY]: "RETRIEVAL_QUERY",
  [EmbeddingTask.DOCUMENT]: "RETRIEVAL_DOCUMENT",
  [EmbeddingTask.SIMILARITY]: "SEMANTIC_SIMILARITY",
  [EmbeddingTask.CLASSIFICATION]: "CLASSIFICATION",
  [EmbeddingTask.CLUSTERING]: "CLUSTERING",
};

/**
 * Converts the request to the body of `batchEmbedContents`, which also takes a single input. Throws `invalid_request` for more
 * inputs than the provider takes; fields without a counterpart are reported.
 */
export function toEmbeddingRequest(request: EmbeddingRequest, { name, capabilities }: UpstreamModel): Translation {
  const { dimensions, task, endUserId } = request;
  const texts = textsOf(request.inputs);
  if (texts.length > MAX_BATCH) throw invalidField("inputs", `must hold at most ${MAX_BATCH} inputs for this model`);
  const log = new TranslationLog();
  log.omitWhen(dimensions !== undefined && !capabilities.embeddingDimensions, "dimensions");
  log.omitWhen(endUserId !== undefined, "end_user_id");
  const model = name.includes("/") ? name : `models/${name}`;
  const taskType = TASKS[task];
  const outputDimensionality = capabilities.embeddingDimensions ? dimensions : undefined;
  const body: BatchEmbedContentsRequest = {
    requests: texts.map((text) => ({ model, content: { parts: [{ text }] }, taskType, outputDimensionality })),
  };
  return log.finish(body, { streamed: false, maxTokens: 0, textBytes: bytesOfInputs(texts) });
}

/**
 * Reads the vectors, which are in the order of the inputs. Throws the Failure of an error object, and `upstream_protocol` unless
 * there is one vector for each of `inputs`, all of the same length.
 */
export async function toEmbeddingAnswer(json: unknown, inputs: number, redact = keepAll): Promise<EmbeddingAnswer> {
  const { embeddings, usageMetadata, error } = object(json);
  if (error !== undefined) throw ofInputs(toInBandFailure(json, { begun: false, redact }));
  const vectors = await readVectors(array(embeddings).map((entry) => object(entry)["values"]));
  requireVectors(vectors, inputs);
  return { vectors, usage: readEmbeddingUsage(usageMetadata) };
}

/** Reads the prompt's tokens; undefined without a count, which is usual for this method. */
function readEmbeddingUsage(metadata: unknown): Usage | undefined {
  const inputTokens = usageCount(object(metadata)["promptTokenCount"]);
  return inputTokens === undefined ? undefined : toUsage({ inputTokens, outputTokens: 0 });
}
