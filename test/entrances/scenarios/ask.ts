import { create, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import { BinaryWriter, WireType } from "@bufbuild/protobuf/wire";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import type { Mode } from "../../../src/core/router.ts";

/** Request of a scenario, for both entrances; merged over "alpha, say hello". */
export type Ask = MessageInitShape<typeof CompletionRequestSchema>;

/** A user message with one text. */
export const userSays = (text: string): NonNullable<Ask["messages"]>[number] => ({
  role: Role.USER,
  parts: [{ kind: { case: "text", value: text } }],
});

/** The request as a message of the contract. */
export function toRequest(ask: Ask = {}): CompletionRequest {
  return create(CompletionRequestSchema, { model: "alpha", messages: [userSays("Hello?")], ...ask });
}

/** The encoded request with an unknown field, number 1999. */
export function withUnknownField(ask?: Ask): Buffer {
  const field = new BinaryWriter().tag(1999, WireType.Varint).uint32(1).finish();
  return Buffer.concat([toBinary(CompletionRequestSchema, toRequest(ask)), field]);
}

const WORDS = { [Modality.TEXT]: "text", [Modality.IMAGE]: "image", [Modality.AUDIO]: "audio" } as const;
const ROLES = { [Role.SYSTEM]: "system", [Role.USER]: "user", [Role.ASSISTANT]: "assistant", [Role.TOOL]: "tool" };

/** The request as JSON of an OpenAI client, with the fields that scenarios use. */
export function toOpenAiJson(request: CompletionRequest, mode: Mode): Record<string, unknown> {
  return {
    model: request.model,
    messages: request.messages.map(toOpenAiMessage),
    ...given("fallback_models", request.fallbackModels),
    ...given(
      "modalities",
      request.modalities.map((modality) => WORDS[modality as keyof typeof WORDS]),
    ),
    ...given("stop", request.stopSequences),
    max_tokens: request.maxOutputTokens,
    temperature: request.temperature,
    top_p: request.topP,
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    logprobs: request.logprobs && true,
    top_logprobs: request.logprobs?.topCount,
    n: request.choiceCount,
    reasoning_effort: effortOf(request),
    seed: request.seed === undefined ? undefined : Number(request.seed),
    logit_bias: Object.keys(request.logitBias).length > 0 ? request.logitBias : undefined,
    metadata: Object.keys(request.metadata).length > 0 ? request.metadata : undefined,
    parley: request.strict ? { strict: true } : undefined,
    ...(mode === "stream" && { stream: true, stream_options: { include_usage: true } }),
  };
}

function effortOf({ reasoning }: CompletionRequest): string | undefined {
  return reasoning === undefined ? undefined : ReasoningEffort[reasoning.effort].toLowerCase();
}

function given(name: string, list: readonly unknown[]): Record<string, unknown> {
  return list.length > 0 ? { [name]: list } : {};
}

function toOpenAiMessage({ role, parts }: Message): object {
  const name = ROLES[role as keyof typeof ROLES];
  const [first] = parts;
  if (first?.kind.case !== "toolResult") return { role: name, content: parts.map(toOpenAiPart) };
  const { toolCallId, parts: result } = first.kind.value;
  return { role: name, content: result.map(toOpenAiPart), tool_call_id: toolCallId === "" ? undefined : toolCallId };
}

function toOpenAiPart({ kind }: Part): object {
  if (kind.case === "text") return { type: "text", text: kind.value };
  if (kind.case !== "image") throw new RangeError(`scenarios have no ${kind.case} parts`);
  const { source, mediaType } = kind.value;
  const url =
    source.case === "data"
      ? `data:${mediaType};base64,${Buffer.from(source.value).toString("base64")}`
      : String(source.value);
  return { type: "image_url", image_url: { url } };
}
