import { type Answer, Refusal } from "../answer.ts";
import { type Dialect, type Head, type Order, readBearer, readHeader } from "../dialect.ts";
import { findLimits, listModels, type Model } from "../models.ts";
import { countPromptTokens } from "../prompt.ts";
import { readShape } from "../shape.ts";
import { encodeError, refuseFlaw } from "./failure.ts";
import { toPrompt } from "./request.ts";
import { encodeEvents, encodeMessage, frame } from "./response.ts";
import { checkRules, type Terms } from "./rules.ts";
import { messagesSchema } from "./schema.ts";

const YES = { supported: true };
const NO = { supported: false };

function encodeModel(model: Model): Record<string, unknown> & { id: string } {
  return {
    id: model.id,
    type: "model",
    display_name: model.displayName,
    created_at: model.createdAt,
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
    max_input_tokens: model.contextTokens,
    max_tokens: model.maxOutputTokens,
    capabilities: {
      thinking: { supported: true, types: { adaptive: NO, between_tools: NO, disabled: YES, enabled: YES } },
      structured_outputs: YES,
      image_input: YES,
      pdf_input: NO,
      citations: NO,
    },
  };
}

/** A single page with all models of this dialect. */
function encodeModelPage(): unknown {
  const data = listModels("anthropic").map(encodeModel);
  return { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}

/** One model. Throws `Refusal` (404) for an unlisted ID. */
function encodeOneModel(id: string): unknown {
  const model = listModels("anthropic").find((candidate) => candidate.id === id);
  if (!model) throw new Refusal(404, `model: ${id}`);
  return encodeModel(model);
}

const VERSIONS = new Set(["2023-01-01", "2023-06-01", "2026-10-21"]);

function readOrder(body: unknown, terms: Terms): Order {
  const asked = readShape(messagesSchema, body, refuseFlaw);
  checkRules(asked, terms);
  const prompt = toPrompt(asked);
  const { total } = countPromptTokens(prompt);
  const { contextTokens } = findLimits(prompt.model);
  if (total > contextTokens) throw new Refusal(400, `prompt is too long: ${total} tokens > ${contextTokens} maximum`);
  const pickFirst = ([answer]: readonly Answer[]): Answer[] => (answer ? [answer] : []);
  return {
    prompt,
    choices: 1,
    streamType: asked.stream ? "text/event-stream; charset=utf-8" : undefined,
    encodeWhole: (answers) => JSON.stringify(pickFirst(answers).map(encodeMessage)[0]),
    encodeStream: (answers) => pickFirst(answers).values().flatMap(encodeEvents),
    encodeStreamError: (refusal) => frame(encodeError(refusal)),
  };
}

/** A count: a request without the fields that belong to its answer. */
function readCount(body: unknown, terms: Terms): Order {
  if (typeof body !== "object" || body === null) throw new Refusal(400, "messages: Field required");
  for (const name of ["max_tokens", "stream", "temperature", "top_p", "stop_sequences"]) {
    if (name in body) throw new Refusal(400, `${name}: Extra inputs are not permitted`);
  }
  const model = "model" in body ? String(body.model) : "";
  const order = readOrder({ ...body, max_tokens: findLimits(model).maxOutputTokens }, terms);
  return { ...order, encodeWhole: () => JSON.stringify({ input_tokens: countPromptTokens(order.prompt).total }) };
}

function readVersion(head: Head): string {
  const version = readHeader(head, "anthropic-version");
  if (version === undefined) throw new Refusal(400, "anthropic-version: header is required");
  if (!VERSIONS.has(version)) throw new Refusal(400, `anthropic-version: "${version}" is not a valid version`);
  return version;
}

function readTerms(head: Head): Terms {
  const betas = (readHeader(head, "anthropic-beta") ?? "").split(",").map((name) => name.trim());
  return { version: readVersion(head), betas: new Set(betas) };
}

/** Dialect of Anthropic's Messages API. */
export const anthropic: Dialect = {
  name: "anthropic",
  find(head) {
    if (head.path === "/v1/messages") {
      return { kind: "completion", method: "POST", read: (body) => readOrder(body, readTerms(head)) };
    }
    if (head.path === "/v1/messages/count_tokens") {
      return { kind: "completion", method: "POST", read: (body) => readCount(body, readTerms(head)) };
    }
    if (head.path === "/v1/models") return { kind: "look-up", method: "GET", answer: encodeModelPage };
    const id = /^\/v1\/models\/([^/]+)$/u.exec(head.path)?.[1];
    return id === undefined ? undefined : { kind: "look-up", method: "GET", answer: () => encodeOneModel(id) };
  },
  authenticate(head) {
    if (readHeader(head, "x-api-key") === undefined && readBearer(head) === undefined) {
      throw new Refusal(401, "x-api-key header is required");
    }
    readVersion(head);
  },
  identify: (requestId) => ({ "request-id": requestId }),
  encodeRefusal(refusal, requestId) {
    const { retryAfterSeconds } = refusal.detail;
    const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
    return { headers, body: encodeError(refusal, requestId) };
  },
};
