import { readCountRequest, readGeminiRequest, type ReadRequest } from "../../formats/gemini/request.ts";
import type { GeminiRequest, GenerationConfig } from "../../formats/gemini/schema.ts";
import type { StreamForm } from "../../formats/gemini/stream.ts";
import { Refusal } from "../answer.ts";
import { readBody } from "../body.ts";
import { type Dialect, type Head, type Order, readHeader } from "../dialect.ts";
import { findLimits, isForEmbeddings, listModels, type Model } from "../models.ts";
import { countPromptTokens, type PictureOrder, type Prompt } from "../prompt.ts";
import { toPrompt } from "../request.ts";
import { notSupported, readEmbeddingOrder } from "./embeddings.ts";
import { BODY, encodeError, encodeStreamError } from "./failure.ts";
import { encodeEvents, encodeResponse } from "./response.ts";
import { checkRules } from "./rules.ts";
import { toReasoning } from "./thinking.ts";

type Delivery = "whole" | StreamForm;

const STREAM_TYPES = {
  whole: undefined,
  events: "text/event-stream",
  array: "application/json; charset=utf-8",
} as const;

function readOrder(body: unknown, model: string, delivery: Delivery): Order {
  const read = readBody(body, { ...BODY, place: "generate", read: (json) => readGeminiRequest(json, model) });
  return toOrder(body as GeminiRequest, read, delivery);
}

/** `asked`: the body, as the format spells it. */
function toOrder(asked: GeminiRequest, { request, functionNames }: ReadRequest, delivery: Delivery): Order {
  checkRules(asked, request);
  const { model } = request;
  if (isForEmbeddings(model)) throw notSupported(model, "generateContent");
  const { turns, ...rest } = toPrompt(request, (name) => functionNames.toGiven(name));
  const config = asked.generationConfig ?? {};
  const prompt: Prompt = {
    ...rest,
    turns: turns.map((turn) => (turn.role === "tool" ? { ...turn, text: readOutput(turn.text) } : turn)),
    // The format reads fewer.
    stop: config.stopSequences ?? [],
    picture: toPicture(config),
    reasoning: toReasoning(config),
  };
  const { total } = countPromptTokens(prompt);
  const { contextTokens } = findLimits(model);
  if (total > contextTokens) {
    const message = `The input token count (${total}) exceeds the maximum number of tokens allowed (${contextTokens}).`;
    throw new Refusal(400, message);
  }
  return {
    prompt,
    choices: 1,
    streamType: STREAM_TYPES[delivery],
    encodeWhole: ([answer]) => encodeResponse(answer!),
    encodeStream: ([answer]) => encodeEvents(answer!, delivery === "whole" ? "events" : delivery),
    encodeStreamError,
  };
}

/** The text of a response, for which the API's guide recommends `output`; otherwise the JSON of the response. */
function readOutput(json: string): string {
  const { output } = JSON.parse(json) as { readonly output?: unknown };
  return typeof output === "string" ? output : json;
}

/** The format always reads text beside an image. */
function toPicture({ responseModalities, imageConfig }: GenerationConfig): PictureOrder | undefined {
  if (!responseModalities?.includes("IMAGE")) return undefined;
  const { aspectRatio, imageSize } = imageConfig ?? {};
  return { aspectRatio: aspectRatio ?? "1:1", size: imageSize ?? "1K", caption: responseModalities.includes("TEXT") };
}

/** A count of a whole request, or of contents alone. */
function readCount(body: unknown, model: string): Order {
  const read = readBody(body, { ...BODY, place: "count", read: (json) => readCountRequest(json, model) });
  const { generateContentRequest: request, ...asked } = body as GeminiRequest & {
    readonly generateContentRequest?: GeminiRequest | null;
  };
  if (request?.model != null && request.model !== `models/${model}`)
    throw new Refusal(400, "* CountTokensRequest.generate_content_request.model: must be the same as in the path\n");
  const order = toOrder(request ?? asked, read, "whole");
  return { ...order, encodeWhole: () => JSON.stringify({ totalTokens: countPromptTokens(order.prompt).total }) };
}

function decodeName(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    throw new Refusal(400, "The model's name is not valid percent-encoding.");
  }
}

function chooseDelivery(method: string, head: Head): Delivery {
  if (method === "generateContent") return "whole";
  return head.query.get("alt") === "sse" ? "events" : "array";
}

/** Dialect of Gemini's `generateContent` and `embedContent`, in the versions `/v1beta` and `/v1`, which newer clients use. */
export const gemini: Dialect = {
  name: "gemini",
  find(head) {
    if (/^\/v1(?:beta)?\/models$/u.test(head.path)) return { kind: "look-up", method: "GET", answer: encodeModelPage };
    const [, name, method] = /^\/v1(?:beta)?\/models\/([^:/]+)(?::([A-Za-z]+))?$/u.exec(head.path) ?? [];
    if (name === undefined) return undefined;
    if (method === undefined) {
      return { kind: "look-up", method: "GET", answer: () => encodeOneModel(decodeName(name)) };
    }
    if (method === "embedContent" || method === "batchEmbedContents") {
      return { kind: "completion", method: "POST", read: (body) => readEmbeddingOrder(body, decodeName(name), method) };
    }
    if (method === "countTokens") {
      return { kind: "completion", method: "POST", read: (body) => readCount(body, decodeName(name)) };
    }
    if (method !== "generateContent" && method !== "streamGenerateContent") return undefined;
    const delivery = chooseDelivery(method, head);
    return { kind: "completion", method: "POST", read: (body) => readOrder(body, decodeName(name), delivery) };
  },
  authenticate(head) {
    if (readHeader(head, "x-goog-api-key") === undefined && !head.query.get("key")) {
      throw new Refusal(
        403,
        "Method doesn't allow unregistered callers (callers without established identity). Please use API Key or other " +
          "form of API consumer identity to call this API.",
      );
    }
  },
  identify: () => ({}),
  encodeRefusal: (refusal) => ({ headers: {}, body: encodeError(refusal) }),
};

function encodeModel(model: Model): unknown {
  return {
    name: `models/${model.id}`,
    version: "simulated",
    displayName: model.displayName,
    description: "A simulated model with deterministic answers.",
    inputTokenLimit: model.contextTokens,
    outputTokenLimit: model.maxOutputTokens,
    ...(model.dimensions === undefined
      ? { supportedGenerationMethods: ["generateContent"], temperature: 1, maxTemperature: 2, thinking: true }
      : { supportedGenerationMethods: ["embedContent", "batchEmbedContents"] }),
  };
}

/** A single page with all models of this dialect. */
function encodeModelPage(): unknown {
  return { models: listModels("gemini").map(encodeModel) };
}

/** One model. Throws `Refusal` (404) for an unlisted ID. */
function encodeOneModel(id: string): unknown {
  const model = listModels("gemini").find((candidate) => candidate.id === id);
  if (!model) throw new Refusal(404, `Model is not found: models/${id} for api version v1beta`);
  return encodeModel(model);
}
