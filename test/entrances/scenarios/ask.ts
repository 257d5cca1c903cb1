import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CompletionRequest, CompletionRequestSchema, Modality } from "../../../gen/parley/v1/completion_pb.js";
import { type Message, Role } from "../../../gen/parley/v1/message_pb.js";
import type { Mode } from "../../../src/core/router.ts";

/** What a scenario asks for, written once for both entrances; laid over "alpha, say hello". */
export type Ask = MessageInitShape<typeof CompletionRequestSchema>;

/** A user message of one text. */
export const userSays = (text: string): NonNullable<Ask["messages"]>[number] => ({
  role: Role.USER,
  content: [{ content: { case: "text", value: text } }],
});

/** The request as the contract's message. */
export function toRequest(ask: Ask = {}): CompletionRequest {
  return create(CompletionRequestSchema, { model: "alpha", messages: [userSays("Hello?")], ...ask });
}

const WORDS = { [Modality.TEXT]: "text", [Modality.IMAGE]: "image", [Modality.AUDIO]: "audio" } as const;
const ROLES = { [Role.SYSTEM]: "system", [Role.USER]: "user", [Role.ASSISTANT]: "assistant", [Role.TOOL]: "tool" };

/** The same request as an OpenAI client writes it, with the fields that scenarios use. */
export function toOpenAiJson(request: CompletionRequest, mode: Mode): Record<string, unknown> {
  return {
    model: request.model,
    messages: request.messages.map(toOpenAiMessage),
    ...given("fallback_models", request.fallbackModels),
    ...given(
      "modalities",
      request.modalities.map((modality) => WORDS[modality as keyof typeof WORDS]),
    ),
    ...given("stop", request.stop),
    max_tokens: request.maxTokens,
    temperature: request.temperature,
    top_p: request.topP,
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    logprobs: request.logprobs,
    top_logprobs: request.topLogprobs,
    n: request.n,
    seed: request.seed === undefined ? undefined : Number(request.seed),
    logit_bias: Object.keys(request.logitBias).length > 0 ? request.logitBias : undefined,
    metadata: Object.keys(request.metadata).length > 0 ? request.metadata : undefined,
    parley: request.strict ? { strict: true } : undefined,
    ...Object.fromEntries(request.unrecognizedFields.map((field) => [field, true])),
    ...(mode === "stream" && { stream: true, stream_options: { include_usage: true } }),
  };
}

function given(name: string, list: readonly unknown[]): Record<string, unknown> {
  return list.length > 0 ? { [name]: list } : {};
}

function toOpenAiMessage({ role, content, toolCallId }: Message): object {
  const parts = content.map(({ content: part }) => {
    if (part.case === "text") return { type: "text", text: part.value };
    if (part.case !== "image") throw new RangeError(`scenarios have no ${part.case} parts`);
    const { source, mediaType } = part.value;
    const url =
      source.case === "data"
        ? `data:${mediaType};base64,${Buffer.from(source.value).toString("base64")}`
        : String(source.value);
    return { type: "image_url", image_url: { url } };
  });
  return { role: ROLES[role as keyof typeof ROLES], content: parts, tool_call_id: toolCallId };
}
