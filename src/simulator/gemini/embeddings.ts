import * as z from "zod";
import { Refusal } from "../answer.ts";
import type { Order } from "../dialect.ts";
import { toOrder } from "../embedding.ts";
import { findDimensions } from "../models.ts";
import { readShape } from "../shape.ts";
import { encodeError, refuseFlaw } from "./failure.ts";
import { normaliseNames } from "./request.ts";
import { frame } from "./response.ts";

const MAX_BATCH = 100;

const TASKS = [
  "TASK_TYPE_UNSPECIFIED",
  "RETRIEVAL_QUERY",
  "RETRIEVAL_DOCUMENT",
  "SEMANTIC_SIMILARITY",
  "CLASSIFICATION",
  "CLUSTERING",
  "QUESTION_ANSWERING",
  "FACT_VERIFICATION",
  "CODE_RETRIEVAL_QUERY",
] as const;

/** Body of `embedContent`, with names in camel case. Unknown fields are rejected. */
const embedSchema = z.strictObject({
  model: z.string().optional(),
  content: z.strictObject({
    role: z.string().optional(),
    parts: z.array(z.strictObject({ text: z.string() })),
  }),
  taskType: z.enum(TASKS).optional(),
  title: z.string().optional(),
  outputDimensionality: z.int().optional(),
});

const batchSchema = z.strictObject({ requests: z.array(embedSchema) });

type EmbedBody = z.infer<typeof embedSchema>;

/** Reads a request of `embedContent` or `batchEmbedContents`. The provider counts no tokens. Throws `Refusal`. */
export function readEmbeddingOrder(body: unknown, model: string, method: "embedContent" | "batchEmbedContents"): Order {
  const named = normaliseNames(body);
  const isBatch = method === "batchEmbedContents";
  const requests = isBatch
    ? readShape(batchSchema, named, refuseFlaw).requests
    : [readShape(embedSchema, named, refuseFlaw)];
  const longest = findDimensions(model);
  if (longest === undefined) throw notSupported(model, method);
  if (requests.length === 0)
    throw new Refusal(400, "* BatchEmbedContentsRequest.requests: requests is not specified\n");
  if (requests.length > MAX_BATCH)
    throw new Refusal(400, `* BatchEmbedContentsRequest.requests: at most ${MAX_BATCH} requests can be in one batch\n`);
  if (isBatch && requests.some((request) => request.model !== `models/${model}`))
    throw new Refusal(400, "* BatchEmbedContentsRequest.requests: model must be the same as in the path\n");
  const texts = requests.map(toText);
  const dimensions = requests[0]!.outputDimensionality ?? longest;
  if (dimensions < 1 || dimensions > longest)
    throw new Refusal(400, `output_dimensionality must be between 1 and ${longest}.`);
  return toOrder({
    model,
    texts,
    dimensions,
    encode(vectors) {
      const embeddings = vectors.map((values) => ({ values }));
      return JSON.stringify(isBatch ? { embeddings } : { embedding: embeddings[0] });
    },
    encodeStreamError: (refusal) => frame(encodeError(refusal)),
  });
}

/** The refusal of a method that the model does not have. */
export function notSupported(model: string, method: string): Refusal {
  return new Refusal(
    404,
    `models/${model} is not found for API version v1beta, or is not supported for ${method}. Call ListModels to see the list of available models and their supported methods.`,
  );
}

function toText({ content }: EmbedBody): string {
  const text = content.parts.map((part) => part.text).join("\n");
  if (text === "") throw new Refusal(400, "* EmbedContentRequest.content: contents is not specified\n");
  return text;
}
