import type { Choice, Completion } from "../../../gen/parley/v1/completion_pb.js";
import type { Message, ToolCall } from "../../../gen/parley/v1/message_pb.js";
import * as write from "./answer.ts";
import { HeldStrings, type JsonText } from "./held-strings.ts";

/** A whole completion as OpenAI's `chat.completion`, written. */
export function writeChatCompletion(completion: Completion): JsonText {
  const held = new HeldStrings();
  return held.putBack(JSON.stringify(toChatCompletion(completion, held)));
}

/** A whole completion as OpenAI's `chat.completion`; `held` keeps characters that need not be copied. */
export function toChatCompletion(completion: Completion, held?: HeldStrings): object {
  return {
    id: completion.id,
    object: "chat.completion",
    created: Number(completion.created),
    model: completion.model,
    choices: completion.choices.map((choice) => toChoice(choice, held)),
    ...(completion.usage !== undefined && { usage: write.usage(completion.usage) }),
    ...(completion.report !== undefined && { parley: write.parley(completion.report) }),
  };
}

function toChoice(choice: Choice, held: HeldStrings | undefined): object {
  return {
    index: choice.index,
    message: toMessage(choice.message!, held),
    logprobs: write.logprobs(choice.logprobs),
    finish_reason: write.finishReason(choice.finishReason),
    native_finish_reason: choice.nativeFinishReason,
  };
}

function toMessage(message: Message, held: HeldStrings | undefined): object {
  const reasoning = message.reasoning.map((block) => block.text).join("");
  const signed = message.reasoning.filter((block) => block.signature !== "" || block.redacted !== "");
  const speech = message.content.find(({ content }) => content.case === "audio")?.content;
  return {
    role: "assistant",
    content: toContent(message, held),
    refusal: message.refusal ?? null,
    ...(reasoning !== "" && { reasoning_content: reasoning }),
    ...(signed.length > 0 && { thinking_blocks: signed.map(write.thinkingBlock) }),
    ...(message.toolCalls.length > 0 && { tool_calls: message.toolCalls.map(toToolCall) }),
    ...(message.signature !== undefined && { extra_content: write.thoughtSignature(message.signature) }),
    ...(message.annotations.length > 0 && { annotations: message.annotations.map(write.annotation) }),
    ...(speech?.case === "audio" && { audio: write.audio(speech.value) }),
  };
}

/** A string for text, parts in the provider's order as soon as there is a picture. */
function toContent({ content, toolCalls, refusal }: Message, held: HeldStrings | undefined): string | null | object[] {
  if (content.some((part) => part.content.case === "image")) {
    return content.flatMap(({ content: part }) => {
      if (part.case === "text") return [{ type: "text", text: part.value }];
      return part.case === "image" ? [write.imagePart(part.value, held)] : [];
    });
  }
  const text = content.map(({ content: part }) => (part.case === "text" ? part.value : "")).join("");
  return text === "" && (toolCalls.length > 0 || refusal !== undefined) ? null : text;
}

function toToolCall(call: ToolCall): object {
  if (call.custom) return { id: call.id, type: "custom", custom: { name: call.name, input: call.arguments } };
  return {
    id: call.id,
    type: "function",
    function: { name: call.name, arguments: call.arguments },
    ...(call.signature !== "" && { extra_content: write.thoughtSignature(call.signature) }),
  };
}
