import { create, toBinary } from "@bufbuild/protobuf";
import { CompletionRequestSchema } from "../../gen/parley/v1/completion_pb.js";
import { Role } from "../../gen/parley/v1/message_pb.js";
import type { Load } from "../loads.ts";

/** A short conversation: 0.6 kB of JSON. */
const MESSAGES = [
  {
    role: "system",
    content:
      "You are the assistant of a small museum. Answer in plain words, keep to the question, and say so when the " +
      "collection does not tell.",
  },
  { role: "user", content: 'Who built the old bridge over the river, and why is it called "the long one"?' },
  { role: "assistant", content: "Masons of the town built it; its name comes from its nine arches." },
  { role: "user", content: "Thank you.\nPlease tell me a little more about the masons, in two or three sentences." },
] as const;

const ROLES = { system: Role.SYSTEM, user: Role.USER, assistant: Role.ASSISTANT } as const;

const PARAMETERS = { temperature: 0.7, maxTokens: 512 };

/** The request as an OpenAI client sends it. */
export function toChatRequest({ model, streamed }: Pick<Load, "model" | "streamed">): string {
  const { temperature, maxTokens } = PARAMETERS;
  return JSON.stringify({
    model,
    messages: MESSAGES,
    temperature,
    max_tokens: maxTokens,
    user: "visitor-1234",
    ...(streamed && { stream: true, stream_options: { include_usage: true } }),
  });
}

/** The same as a gRPC client sends it. */
export function toCompletionRequest({ model }: Pick<Load, "model">): Uint8Array {
  const messages = MESSAGES.map(({ role, content }) => ({
    role: ROLES[role],
    content: [{ content: { case: "text" as const, value: content } }],
  }));
  return toBinary(CompletionRequestSchema, create(CompletionRequestSchema, { model, messages, ...PARAMETERS }));
}
