import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { EVENT_STREAM } from "../../formats/format.ts";
import { readChatRequest } from "../../formats/openai-chat/request.ts";
import { toChatCompletion } from "../../formats/openai-chat/response.ts";
import { ChunkWriter } from "../../formats/openai-chat/stream.ts";
import { type Answer, isEffort, Refusal } from "../answer.ts";
import { readBody } from "../body.ts";
import { encodeChunks, toCompletion } from "../chunks.ts";
import { type Dialect, type Order, readBearer, type StreamEvent } from "../dialect.ts";
import { findLimits, findModel, isForEmbeddings, type Model, MODELS } from "../models.ts";
import { countPromptTokens, type Prompt } from "../prompt.ts";
import { toPrompt } from "../request.ts";
import { readEmbeddingOrder } from "./embeddings.ts";
import { BODY_REFUSALS, encodeError, encodeStreamError } from "./failure.ts";
import { checkRules, FIELDS } from "./rules.ts";

const IDS = { completionId: (id: string) => `chatcmpl-${id}`, callId: (id: string) => `call_${id}` };

function readOrder(body: unknown): Order {
  const reader = { fields: FIELDS, place: "chat", read: readChatRequest, ...BODY_REFUSALS };
  const { request, nameOf, stream, includeUsage } = readBody(body, reader);
  checkRules(request, nameOf, body as object);
  if (isForEmbeddings(request.model))
    throw new Refusal(404, "This is not a chat model and thus not supported in the v1/chat/completions endpoint.", {
      field: "model",
    });
  // Readable, as with most servers of this dialect; none without an effort.
  const effort = ReasoningEffort[request.reasoning?.effort ?? ReasoningEffort.UNSPECIFIED].toLowerCase();
  const prompt: Prompt = {
    ...toPrompt(request),
    reasoning: isEffort(effort) ? { effort, shown: true } : undefined,
  };
  const { total } = countPromptTokens(prompt);
  const { contextTokens } = findLimits(prompt.model);
  if (total > contextTokens) {
    const message = `This model's maximum context length is ${contextTokens} tokens. However, your messages resulted in ${total} tokens.`;
    throw new Refusal(400, message, { field: "messages", code: "context_length_exceeded" });
  }
  return {
    prompt,
    choices: request.choiceCount ?? 1,
    streamType: stream ? EVENT_STREAM : undefined,
    encodeWhole: encodeCompletion,
    encodeStream: (answers) => encodeEvents(answers, includeUsage),
    encodeStreamError,
  };
}

export function encodeCompletion(answers: readonly Answer[]): string {
  const completion = toChatCompletion(toCompletion(answers, IDS), (path) => path);
  // The format has a finish reason for every answer.
  const isCut = answers.some(({ end }) => end === undefined);
  return JSON.stringify(completion, (key, value: unknown) => (isCut && key === "finish_reason" ? null : value));
}

export function encodeEvents(answers: readonly Answer[], includeUsage: boolean): Iterable<StreamEvent> {
  return encodeChunks(answers, IDS, new ChunkWriter({ includeUsage, nameOf: (path) => path }));
}

/** Decodes a model ID, which may contain slashes, encoded or not. */
function decodeId(encoded: string): string {
  try {
    return decodeURIComponent(encoded);
  } catch {
    return encoded;
  }
}

/** Dialect of OpenAI's chat completions and embeddings. */
export const openai: Dialect = {
  name: "openai",
  find(head) {
    if (head.path === "/v1/chat/completions") return { kind: "completion", method: "POST", read: readOrder };
    if (head.path === "/v1/embeddings") return { kind: "completion", method: "POST", read: readEmbeddingOrder };
    if (head.path === "/v1/models") return { kind: "look-up", method: "GET", answer: encodeModelList };
    const id = /^\/v1\/models\/(.+)$/u.exec(head.path)?.[1];
    return id === undefined
      ? undefined
      : { kind: "look-up", method: "GET", answer: () => encodeOneModel(decodeId(id)) };
  },
  authenticate(head) {
    if (readBearer(head) === undefined) {
      throw new Refusal(
        401,
        "You didn't provide an API key. You need to provide your API key in an Authorization header using Bearer auth " +
          "(i.e. Authorization: Bearer YOUR_KEY).",
      );
    }
  },
  identify: (requestId) => ({ "x-request-id": requestId, "openai-version": "2020-10-01" }),
  encodeRefusal(refusal) {
    const { retryAfterSeconds } = refusal.detail;
    const headers = retryAfterSeconds === undefined ? {} : { "retry-after": String(retryAfterSeconds) };
    return { headers, body: encodeError(refusal) };
  },
};

function encodeModel(model: Model): unknown {
  const created = Math.floor(Date.parse(model.createdAt) / 1000);
  return { id: model.id, object: "model", created, owned_by: "simulator" };
}

/** All models of all dialects, because an OpenAI-compatible server may host any model. */
function encodeModelList(): unknown {
  return { object: "list", data: MODELS.map(encodeModel) };
}

/** One model. Throws `Refusal` (404) for an unlisted ID. */
function encodeOneModel(id: string): unknown {
  const model = findModel(id);
  if (model) return encodeModel(model);
  throw new Refusal(404, `The model '${id}' does not exist or you do not have access to it.`, {
    field: "model",
    code: "model_not_found",
  });
}
