import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import type { Model } from "../../../gen/parley/v1/model_pb.js";
import { invalidField } from "../../core/failure.ts";

const COMPLETES = ["generateContent", "streamGenerateContent", "countTokens"];
const EMBEDS = ["embedContent", "batchEmbedContents"];

/** Default and largest size of a page, as the vendor's. */
const PAGE_SIZE = 50;
const MAX_PAGE_SIZE = 1000;

/** A model in the format. */
export function toModelObject(model: Model): object {
  const { id, description, contextWindow, maxOutputTokens, capabilities, outputModalities } = model;
  return {
    name: `models/${id}`,
    version: "1",
    displayName: id,
    description,
    inputTokenLimit: contextWindow,
    outputTokenLimit: maxOutputTokens,
    supportedGenerationMethods: outputModalities.includes(Modality.EMBEDDING) ? EMBEDS : COMPLETES,
    ...(capabilities?.reasoning === true && { thinking: true }),
    ...(capabilities?.maxTemperature !== undefined && { maxTemperature: capabilities.maxTemperature }),
  };
}

/** A page of the models. Its token is the number of models before the next page. */
export function toModelPage(models: readonly Model[], query: URLSearchParams): object {
  const size = Math.min(readCount(query, "pageSize") || PAGE_SIZE, MAX_PAGE_SIZE);
  const from = readCount(query, "pageToken");
  const to = from + size;
  return {
    models: models.slice(from, to).map(toModelObject),
    ...(to < models.length && { nextPageToken: String(to) }),
  };
}

/** Reads a query parameter, also in snake case; 0 when it is absent. */
function readCount(query: URLSearchParams, name: "pageSize" | "pageToken"): number {
  const text = query.get(name) ?? query.get(name === "pageSize" ? "page_size" : "page_token") ?? "";
  if (!/^\d{0,9}$/.test(text))
    throw invalidField(name, name === "pageSize" ? "must be a whole number" : "must be one of an earlier answer");
  return Number(text);
}
