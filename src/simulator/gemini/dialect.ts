import { type Answer, Refusal } from "../answer.ts";
import { type Dialect, type Head, type Order, readHeader } from "../dialect.ts";
import { findLimits, isForEmbeddings, listModels, type Model } from "../models.ts";
import { countPromptTokens } from "../prompt.ts";
import { readShape } from "../shape.ts";
import { notSupported, readEmbeddingOrder } from "./embeddings.ts";
import { encodeError, refuseFlaw } from "./failure.ts";
import { normaliseNames, toPrompt } from "./request.ts";
import { encodeArray, encodeEvents, encodeResponse, frame } from "./response.ts";
import { checkRules } from "./rules.ts";
import { generateSchema } from "./schema.ts";

type Delivery = "whole" | "events" | "array";

const STREAM_TYPES = {
  whole: undefined,
  events: "text/event-stream",
  array: "application/json; charset=utf-8",
} as const;

function readOrder(body: unknown, model: string, delivery: Delivery): Order {
  const asked = readShape(generateSchema, normaliseNames(body), refuseFlaw);
  checkRules(asked, model);
  if (isForEmbeddings(model)) throw notSupported(model, "generateContent");
  const prompt = toPrompt(asked, model);
  const { total } = countPromptTokens(prompt);
  const { contextTokens } = findLimits(model);
  if (total > contextTokens) {
    const message = `The input token count (${total}) exceeds the maximum number of tokens allowed (${contextTokens}).`;
    throw new Refusal(400, message);
  }
  const pickFirst = ([answer]: readonly Answer[]): Answer[] => (answer ? [answer] : []);
  const encode = delivery === "array" ? encodeArray : encodeEvents;
  return {
    prompt,
    choices: 1,
    streamType: STREAM_TYPES[delivery],
    encodeWhole: (answers) => JSON.stringify(pickFirst(answers).map(encodeResponse)[0]),
    encodeStream: (answers) => pickFirst(answers).values().flatMap(encode),
    encodeStreamError: (refusal) => frame(encodeError(refusal)),
  };
}

/** A count of a whole request, or of contents alone. */
function readCount(body: unknown, model: string): Order {
  const { generateContentRequest: request, ...rest } = normaliseNames(body) as Record<string, unknown>;
  const { model: named, ...asked } = (request ?? rest) as Record<string, unknown>;
  if (named !== undefined && named !== `models/${model}`)
    throw new Refusal(400, "* CountTokensRequest.generate_content_request.model: must be the same as in the path\n");
  const order = readOrder(asked, model, "whole");
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
