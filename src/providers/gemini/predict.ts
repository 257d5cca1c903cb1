import type { EmbeddingRequest } from "../../../gen/parley/v1/embedding_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { EmbeddingAnswer, Translation, UpstreamModel } from "../../core/provider.ts";
import { bytesOfInputs } from "../../core/token-estimate.ts";
import { textsOf } from "../../core/validate-embedding.ts";
import { ofInputs, readVectors, requireVectors } from "../wire/embeddings.ts";
import { array, count, object } from "../wire/json.ts";
import { keepAll } from "../wire/redaction.ts";
import { toUsage } from "../wire/token-usage.ts";
import { TranslationLog } from "../wire/translation.ts";
import { TASKS } from "./embeddings.ts";
import { toInBandFailure } from "./failure.ts";

/*
 * Embeddings at Vertex AI: `:predict` of a text model. Source: "Text embeddings API" in the documentation of Vertex AI, November
 * 2026. Some models, such as gemini-embedding-001, take only one text in a call; the service refuses more.
 */

/** Limit of inputs that the service takes in one call. */
const MAX_INSTANCES = 250;

/** The body of `:predict`. */
interface PredictRequest {
  readonly instances: readonly { readonly content: string; readonly task_type: string | undefined }[];
  readonly parameters: { readonly autoTruncate: false; readonly outputDimensionality: number | undefined };
}

/** Converts the request. Throws `invalid_request` for more inputs than the service takes; fields without a counterpart are reported. */
export function toPredictRequest(request: EmbeddingRequest, { capabilities }: UpstreamModel): Translation {
  const { dimensions, task, endUserId } = request;
  const texts = textsOf(request.inputs);
  if (texts.length > MAX_INSTANCES)
    throw invalidField("inputs", `must hold at most ${MAX_INSTANCES} inputs for this model`);
  const log = new TranslationLog();
  log.omitWhen(dimensions !== undefined && !capabilities.embeddingDimensions, "dimensions");
  log.omitWhen(endUserId !== undefined, "end_user_id");
  const body: PredictRequest = {
    instances: texts.map((content) => ({ content, task_type: TASKS[task] })),
    // Otherwise the provider would silently cut a text that is too long.
    parameters: {
      autoTruncate: false,
      outputDimensionality: capabilities.embeddingDimensions ? dimensions : undefined,
    },
  };
  return log.finish(body, { streamed: false, maxTokens: 0, textBytes: bytesOfInputs(texts) });
}

/**
 * Reads the vectors, which are in the order of the inputs. Throws the Failure of an error object, and `upstream_protocol` unless
 * there is one vector for each of `inputs`, all of the same length.
 */
export async function toPredictAnswer(json: unknown, inputs: number, redact = keepAll): Promise<EmbeddingAnswer> {
  const { predictions, error } = object(json);
  if (error !== undefined) throw ofInputs(toInBandFailure(json, { begun: false, redact }));
  const found = array(predictions).map((prediction) => object(object(prediction)["embeddings"]));
  const vectors = await readVectors(found.map(({ values }) => values));
  requireVectors(vectors, inputs);
  const tokens = found.map(({ statistics }) => count(object(statistics)["token_count"]));
  const inputTokens = tokens.reduce<number | undefined>(
    (sum, one) => (sum === undefined || one === undefined ? undefined : sum + one),
    0,
  );
  return { vectors, usage: inputTokens === undefined ? undefined : toUsage({ inputTokens, outputTokens: 0 }) };
}
