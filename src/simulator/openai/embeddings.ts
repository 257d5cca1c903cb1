import { readEmbeddingRequest } from "../../formats/openai-embeddings/request.ts";
import { Refusal } from "../answer.ts";
import { readBody } from "../body.ts";
import type { Order } from "../dialect.ts";
import { countTextTokens, toOrder } from "../embedding.ts";
import { findDimensions, findLimits } from "../models.ts";
import { estimateTokens } from "../text.ts";
import { BODY_REFUSALS, encodeStreamError } from "./failure.ts";
import { FIELDS } from "./rules.ts";

const MAX_INPUTS = 2_048;

function refuseInput(message: string): Refusal {
  return new Refusal(400, message, { field: "input", code: "invalid_value" });
}

/** Reads an embedding request. Throws `Refusal`. */
export function readEmbeddingOrder(body: unknown): Order {
  const read = (json: unknown) => readEmbeddingRequest({ json });
  const { request, write } = readBody(body, { fields: FIELDS, place: "embeddings", read, ...BODY_REFUSALS });
  const { model, inputs, dimensions } = request;
  const longest = findDimensions(model);
  if (longest === undefined)
    throw new Refusal(403, `You are not allowed to generate embeddings from this model: ${model}.`, { field: "model" });
  if (dimensions !== undefined && (dimensions < 1 || dimensions > longest))
    throw new Refusal(400, `Invalid value for 'dimensions' = ${dimensions}. Must be between 1 and ${longest}.`, {
      field: "dimensions",
    });
  const texts = inputs.map(({ kind }) => (kind.case === "text" ? kind.value : ""));
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
  return toOrder({
    model,
    texts,
    dimensions: dimensions ?? longest,
    inputTokens: countTextTokens(texts),
    write,
    encodeStreamError,
  });
}
