import { readMessagesRequest } from "../../formats/anthropic/request.ts";
import { toMessage } from "../../formats/anthropic/response.ts";
import { MessageWriter } from "../../formats/anthropic/stream.ts";
import { EVENT_STREAM } from "../../formats/format.ts";
import { type Answer, Refusal } from "../answer.ts";
import { readBody } from "../body.ts";
import { type AnswerForm, encodeChunks, toCompletion } from "../chunks.ts";
import { type Dialect, type Head, type Order, readBearer, readHeader, type StreamEvent } from "../dialect.ts";
import { findLimits, listModels, type Model } from "../models.ts";
import { countPromptTokens } from "../prompt.ts";
import { toPrompt } from "../request.ts";
import { FIELDS, type MessagesBody } from "./body.ts";
import { BODY_REFUSALS, encodeError, encodeStreamError } from "./failure.ts";
import { checkRules, type Terms } from "./rules.ts";
import { sealPart, toReasoning } from "./thinking.ts";

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
  const messages = (body as { messages?: unknown } | null)?.messages;
  if (Array.isArray(messages) && messages.length === 0)
    throw new Refusal(400, "messages: at least one message is required");
  const { request, unrecognized, stream } = readBody(body, {
    fields: FIELDS,
    place: "messages",
    read: (json) => readMessagesRequest({ json, headers: {} }),
    ...BODY_REFUSALS,
  });
  const asked = body as MessagesBody;
  checkRules(asked, unrecognized, terms);
  const prompt = toPrompt(request);
  const { total } = countPromptTokens(prompt);
  const { contextTokens } = findLimits(prompt.model);
  if (total > contextTokens) throw new Refusal(400, `prompt is too long: ${total} tokens > ${contextTokens} maximum`);
  return {
    prompt: { ...prompt, reasoning: toReasoning(asked, prompt) },
    choices: 1,
    streamType: stream ? EVENT_STREAM : undefined,
    encodeWhole: ([answer]) => encodeMessage(answer!),
    encodeStream: ([answer]) => encodeEvents(answer!),
    encodeStreamError,
  };
}

const FORM: AnswerForm = {
  completionId: (id) => `msg_01${id.slice(0, 22)}`,
  callId: (id) => `toolu_01${id}`,
  seal: (part, answer) => (part.kind === "reasoning" ? sealPart(part, answer) : ""),
};

/** Facts of an answer that the format's writers otherwise have from the request. */
function toWriterForm({ usage }: Answer) {
  return { nameOf: (path: string) => path, hidesThinking: false, inputTokens: usage.promptTokens, requestId: "" };
}

export function encodeMessage(answer: Answer): string {
  const message = toMessage(toCompletion([answer], FORM), toWriterForm(answer));
  // The format has a stop reason for every answer.
  const isCut = answer.end === undefined;
  return JSON.stringify(message, (key, value: unknown) => (isCut && key === "stop_reason" ? null : value));
}

/** A ping follows the start, as in the real API. */
export function* encodeEvents(answer: Answer): Generator<StreamEvent> {
  const writer = new MessageWriter(toWriterForm(answer));
  for (const event of encodeChunks([answer], FORM, writer)) {
    yield event;
    if (event.text.startsWith("event: message_start")) yield { kind: "frame", text: writer.keepAlive };
  }
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
