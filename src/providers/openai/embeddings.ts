import { type EmbeddingRequest, EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import type { EmbeddingAnswer, Translation, UpstreamModel } from "../../core/provider.ts";
import { bytesOfInputs } from "../../core/token-estimate.ts";
import { textsOf } from "../../core/validate-embedding.ts";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { ofInputs, readVectors, requireVectors } from "../wire/embeddings.ts";
import { array, count, object, usageCount } from "../wire/json.ts";
import { keepAll } from "../wire/redaction.ts";
import { unreadable } from "../wire/response-failure.ts";
import { toUsage } from "../wire/token-usage.ts";
import { withStatedCost } from "../wire/stated-cost.ts";
import { TranslationLog } from "../wire/translation.ts";
import { findError, toInBandFailure } from "../wire/openai-failure.ts";
import type { OpenAiEmbeddingRequest } from "./wire.ts";

/** Converts the request to the body of `POST /embeddings`. Fields without a counterpart are reported. */
export function toEmbeddingRequest(request: EmbeddingRequest, { name, capabilities }: UpstreamModel): Translation {
  const { dimensions, task, endUserId } = request;
  const texts = textsOf(request.inputs);
  const log = new TranslationLog();
  log.omitWhen(dimensions !== undefined && !capabilities.embeddingDimensions, "dimensions");
  log.omitWhen(task !== EmbeddingTask.UNSPECIFIED, "task");
  const body: OpenAiEmbeddingRequest = {
    model: name,
    input: texts,
    // base64 has a third of the size of JSON numbers. Servers that ignore the field answer with numbers.
    encoding_format: "base64",
    dimensions: capabilities.embeddingDimensions ? dimensions : undefined,
    user: endUserId,
  };
  return log.finish(body, { streamed: false, maxTokens: 0, textBytes: bytesOfInputs(texts) });
}

/**
 * Reads the vectors in the order of their indexes. Throws the Failure of an error object, and `upstream_protocol` unless there
 * is one vector for each of `inputs`, all of the same length.
 */
export async function toEmbeddingAnswer(json: unknown, inputs: number, redact = keepAll): Promise<EmbeddingAnswer> {
  const error = findError(json);
  if (error !== undefined) throw ofInputs(toInBandFailure(error, { begun: false, redact }));
  const { data, usage } = object(json);
  const entries = array(data).map(object);
  const ordered: unknown[] = [];
  entries.forEach(({ index, embedding }, position) => {
    const at = count(index) ?? position;
    if (at >= entries.length || at in ordered) throw unreadable();
    ordered[at] = embedding;
  });
  const vectors = await readVectors(ordered);
  requireVectors(vectors, inputs);
  return { vectors, usage: readEmbeddingUsage(usage) };
}

/** Reads the prompt's tokens; undefined without a count. Some servers only have the total. */
function readEmbeddingUsage(value: unknown): Usage | undefined {
  const usage = object(value);
  const inputTokens = usageCount(usage["prompt_tokens"]) ?? usageCount(usage["total_tokens"]);
  return inputTokens === undefined ? undefined : withStatedCost(toUsage({ inputTokens, outputTokens: 0 }), usage);
}
