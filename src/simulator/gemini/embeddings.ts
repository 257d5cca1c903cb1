import { readBatchEmbedContents, readEmbedContent } from "../../formats/gemini/embeddings.ts";
import { Refusal } from "../answer.ts";
import { readBody } from "../body.ts";
import type { Order } from "../dialect.ts";
import { toOrder } from "../embedding.ts";
import { findDimensions } from "../models.ts";
import { BODY, encodeStreamError } from "./failure.ts";

const MAX_BATCH = 100;

/** Fields of a batch that the format ignores. */
interface BatchBody {
  readonly requests: readonly { readonly model?: unknown }[];
}

/** Reads a request of `embedContent` or `batchEmbedContents`. The provider counts no tokens. Throws `Refusal`. */
export function readEmbeddingOrder(body: unknown, model: string, method: "embedContent" | "batchEmbedContents"): Order {
  const isBatch = method === "batchEmbedContents";
  const read = isBatch ? readBatchEmbedContents : readEmbedContent;
  const { request, write } = readBody(body, {
    ...BODY,
    place: isBatch ? "batch" : "embed",
    read: (json) => read({ json }, model),
  });
  const longest = findDimensions(model);
  if (longest === undefined) throw notSupported(model, method);
  const texts = request.inputs.map(({ kind }) => (kind.case === "text" ? kind.value : ""));
  if (texts.length === 0) throw new Refusal(400, "* BatchEmbedContentsRequest.requests: requests is not specified\n");
  if (texts.length > MAX_BATCH)
    throw new Refusal(400, `* BatchEmbedContentsRequest.requests: at most ${MAX_BATCH} requests can be in one batch\n`);
  if (isBatch && (body as BatchBody).requests.some((one) => one.model !== `models/${model}`))
    throw new Refusal(400, "* BatchEmbedContentsRequest.requests: model must be the same as in the path\n");
  if (texts.includes("")) throw new Refusal(400, "* EmbedContentRequest.content: contents is not specified\n");
  const dimensions = request.dimensions ?? longest;
  if (dimensions < 1 || dimensions > longest)
    throw new Refusal(400, `output_dimensionality must be between 1 and ${longest}.`);
  return toOrder({ model, texts, dimensions, write, encodeStreamError });
}

/** The refusal of a method that the model does not have. */
export function notSupported(model: string, method: string): Refusal {
  return new Refusal(
    404,
    `models/${model} is not found for API version v1beta, or is not supported for ${method}. Call ListModels to see the list of available models and their supported methods.`,
  );
}
