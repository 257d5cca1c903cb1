import * as z from "zod";
import { Refusal } from "../answer.ts";
import type { Order } from "../dialect.ts";
import { countTextTokens, toOrder } from "../embedding.ts";
import { findDimensions, findLimits } from "../models.ts";
import { readShape } from "../shape.ts";
import { estimateTokens } from "../text.ts";
import { encodeError, refuseFlaw } from "./failure.ts";
import { frame } from "./response.ts";

const MAX_INPUTS = 2_048;
const tokens = z.array(z.int().min(0)).min(1);

/** Body of `POST /v1/embeddings`. Unknown fields are rejected. */
const embeddingSchema = z.strictObject({
  model: z.string().min(1),
  input: z.union([z.string(), z.array(z.string()), tokens, z.array(tokens)]),
  encoding_format: z.enum(["float", "base64"]).nullish(),
  dimensions: z.int().min(1).nullish(),
  user: z.string().nullish(),
});

function refuseInput(message: string): Refusal {
  return new Refusal(400, message, { field: "input", code: "invalid_value" });
}

/** One text for each input. A list of tokens becomes the text of their numbers. */
function toTexts(input: z.infer<typeof embeddingSchema>["input"]): string[] {
  if (typeof input === "string") return [input];
  if (typeof input[0] === "number") return [input.join(" ")];
  return input.map((one) => (Array.isArray(one) ? one.join(" ") : String(one)));
}

/** Reads an embedding request. Throws `Refusal`. */
export function readEmbeddingOrder(body: unknown): Order {
  const { model, input, encoding_format: format, dimensions } = readShape(embeddingSchema, body, refuseFlaw);
  const longest = findDimensions(model);
  if (longest === undefined)
    throw new Refusal(403, `You are not allowed to generate embeddings from this model: ${model}.`, { field: "model" });
  if (dimensions != null && dimensions > longest)
    throw new Refusal(
      400,
      `Invalid value for 'dimensions' = ${dimensions}. Must be less than or equal to ${longest}.`,
      {
        field: "dimensions",
      },
    );
  const texts = toTexts(input);
  if (texts.length === 0 || texts.includes("")) throw refuseInput("Invalid 'input': input cannot be an empty string.");
  if (texts.length > MAX_INPUTS) throw refuseInput(`Invalid 'input': maximum array length is ${MAX_INPUTS}.`);
  const { contextTokens } = findLimits(model);
  const length = Math.max(...texts.map(estimateTokens));
  if (length > contextTokens)
    throw new Refusal(
      400,
      `This model's maximum context length is ${contextTokens} tokens, however you requested ${length} tokens.`,
      { field: "input", code: "context_length_exceeded" },
    );
  const counted = countTextTokens(texts);
  return toOrder({
    model,
    texts,
    dimensions: dimensions ?? longest,
    encode: (vectors) => ({
      object: "list",
      data: vectors.map((vector, index) => ({
        object: "embedding",
        index,
        embedding: format === "base64" ? toBase64(vector) : vector,
      })),
      model,
      usage: { prompt_tokens: counted, total_tokens: counted },
    }),
    encodeStreamError: (refusal) => frame(encodeError(refusal)),
  });
}

function toBase64(vector: readonly number[]): string {
  const bytes = Buffer.alloc(vector.length * 4);
  vector.forEach((value, index) => bytes.writeFloatLE(value, index * 4));
  return bytes.toString("base64");
}
