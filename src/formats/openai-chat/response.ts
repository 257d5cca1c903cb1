import { type Choice, type Completion, Modality } from "../../../gen/parley/v1/completion_pb.js";
import type { Message, ToolCall } from "../../../gen/parley/v1/message_pb.js";
import type { Model } from "../../../gen/parley/v1/model_pb.js";
import type { Failure } from "../../core/failure.ts";
import { errorCode, FAILURE_TABLE } from "../../inbound/failure-table.ts";
import * as write from "./answer.ts";
import { attempt, HeldStrings, type JsonText } from "./answer.ts";

/** Writes a completion as OpenAI's `chat.completion`. */
export function writeChatCompletion(completion: Completion): JsonText {
  const held = new HeldStrings();
  return held.putBack(JSON.stringify(toChatCompletion(completion, held)));
}

/** Converts a completion to OpenAI's `chat.completion`; images are stored in `held`. */
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

/** A string for text only; a list of parts in the provider's order with images. */
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

/** Converts a failure to OpenAI's error body. A 401 has no `code`; `attempts` is present when models were tried. */
export function toErrorBody(failure: Failure): object {
  const { type } = FAILURE_TABLE[failure.code];
  return {
    error: {
      message: failure.message,
      type,
      param: failure.param ?? null,
      ...(failure.code !== "unauthenticated" && { code: errorCode(failure) }),
      ...(failure.attempts.length > 0 && { attempts: failure.attempts.map(attempt) }),
    },
  };
}

/** A failure as the last event of a stream: only an `error` key, because clients ignore one beside `choices`. */
export function toErrorEvent(failure: Failure): string {
  return `data: ${JSON.stringify(toErrorBody(failure))}\n\n`;
}

/** A model in OpenAI's format, with additional facts. */
export function toModelObject(model: Model): object {
  const names = (modalities: readonly Modality[]): string[] =>
    modalities.map((modality) => Modality[modality].toLowerCase());
  return {
    id: model.id,
    object: "model",
    created: Number(model.createTime?.seconds ?? 0),
    owned_by: model.provider,
    description: model.description,
    context_window: model.contextWindow,
    max_output_tokens: model.maxOutputTokens,
    modalities: { input: names(model.inputModalities), output: names(model.outputModalities) },
    preview: model.preview,
  };
}

/** The list of models in OpenAI's format. */
export function toModelList(models: readonly Model[]): object {
  return { object: "list", data: models.map(toModelObject) };
}
