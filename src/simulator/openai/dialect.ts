import { Refusal } from "../answer.ts";
import { type Dialect, type Order, readBearer } from "../dialect.ts";
import { findLimits, findModel, isForEmbeddings, type Model, MODELS } from "../models.ts";
import { countPromptTokens } from "../prompt.ts";
import { readShape } from "../shape.ts";
import { readEmbeddingOrder } from "./embeddings.ts";
import { encodeError, refuseFlaw } from "./failure.ts";
import { toPrompt } from "./request.ts";
import { encodeCompletion, encodeEvents, frame } from "./response.ts";
import { checkRules } from "./rules.ts";
import { chatSchema } from "./schema.ts";

function readOrder(body: unknown): Order {
  const asked = readShape(chatSchema, body, refuseFlaw);
  checkRules(asked);
  if (isForEmbeddings(asked.model))
    throw new Refusal(404, "This is not a chat model and thus not supported in the v1/chat/completions endpoint.", {
      field: "model",
    });
  const prompt = toPrompt(asked);
  const { total } = countPromptTokens(prompt);
  const { contextTokens } = findLimits(prompt.model);
  if (total > contextTokens) {
    const message = `This model's maximum context length is ${contextTokens} tokens. However, your messages resulted in ${total} tokens.`;
    throw new Refusal(400, message, { field: "messages", code: "context_length_exceeded" });
  }
  const withUsage = asked.stream_options?.include_usage ? "usage" : "no usage";
  return {
    prompt,
    choices: asked.n ?? 1,
    streamType: asked.stream ? "text/event-stream; charset=utf-8" : undefined,
    encodeWhole: encodeCompletion,
    encodeStream: (answers) => encodeEvents(answers, withUsage),
    encodeStreamError: (refusal) => frame(encodeError(refusal)),
  };
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
