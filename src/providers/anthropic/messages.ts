import {
  type Message,
  type Part,
  type Reasoning,
  Role,
  type ToolCall,
  type ToolResult,
} from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isObject, parsed } from "../wire/json.ts";
import { isResponsesState } from "../wire/responses-state.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { isBlank, toContentBlocks, toImageBlock, toNativeBlock, toTextBlocks } from "./parts.ts";
import { joinTurns, settleSystemTurns } from "./turns.ts";
import type {
  Block,
  ContentBlock,
  Markable,
  RedactedThinkingBlock,
  TextBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
  Turn,
} from "./wire.ts";

/**
 * Converts the parts of an assistant message to blocks in their order. `replays`: whether reasoning is sent back. Returns no blocks
 * for a message with only reasoning, which the provider refuses; the reasoning is then logged as omitted. Leaves out pictures, which
 * are not allowed in an assistant turn. Throws `invalid_request` for content that no turn can hold.
 */
function toAssistantBlocks(
  context: TranslationContext,
  { parts }: Message,
  { field, replays }: { readonly field: string; readonly replays: boolean },
): Block[] {
  const blocks: Block[] = [];
  const replayed: string[] = [];
  parts.forEach((part, index) => {
    const partField = `${field}.parts[${index}]`;
    if (part.kind.case === "reasoning") {
      context.marks.put(undefined, part.cacheMark, partField);
      if (!replays || !isReplayable(part)) return;
      blocks.push(toThinkingBlock(part.kind.value, part.signature));
      replayed.push(partField);
      return;
    }
    const block = toAssistantBlock(context, part, partField);
    if (block !== undefined) blocks.push(block);
    context.marks.put(block, part.cacheMark, partField);
  });
  if (blocks.some(({ type }) => type !== "thinking" && type !== "redacted_thinking")) return blocks;
  for (const partField of replayed) context.log.omit(partField);
  return [];
}

function toAssistantBlock(context: TranslationContext, { kind }: Part, field: string): (Block & Markable) | undefined {
  switch (kind.case) {
    case "text":
    case "refusal":
      return isBlank(kind.value) ? undefined : { type: "text", text: kind.value };
    case "toolCall":
      return toToolUse(context, kind.value, field);
    case "native":
      return toNativeBlock(context, kind.value, field);
    case "audio":
      throw invalidField(field, "this model does not take audio");
    case "video":
      throw invalidField(field, "this model does not take video");
    case "file":
      throw invalidField(field, "an assistant message cannot hold a file");
    default:
      return undefined;
  }
}

/** Whether the provider can verify the reasoning. Only such parts may be sent back. */
function isReplayable({ kind, signature }: Part): boolean {
  if (kind.case !== "reasoning" || isResponsesState(signature)) return false;
  return signature !== "" || kind.value.redacted !== "";
}

function toThinkingBlock({ text, redacted }: Reasoning, signature: string): ThinkingBlock | RedactedThinkingBlock {
  return redacted === ""
    ? { type: "thinking", thinking: text, signature }
    : { type: "redacted_thinking", data: redacted };
}

function toToolUse({ ids }: TranslationContext, { id, name, input }: ToolCall, field: string): ToolUseBlock {
  if (input.case === "customInput") throw invalidField(field, "this model does not take custom tools");
  return { type: "tool_use", id: ids.open(id), name, input: toInput(input.value ?? "") };
}

/** The provider takes only objects. Other arguments are wrapped as text, so that the model sees what it wrote. */
function toInput(text: string): Record<string, unknown> {
  if (isBlank(text)) return {};
  const input = parsed(text);
  return isObject(input) ? input : { arguments: text };
}

/** A conversation in the provider's form. */
export interface Conversation {
  readonly system: TextBlock[];
  /** At least one. */
  readonly turns: Turn[];
}

/**
 * Converts a request's messages to a system prompt and turns. Leading system messages form the prompt. A later one stays
 * in position if the model allows it, joins the user's turn if moving it would invalidate replayed reasoning, and is
 * added to the prompt otherwise. Drops signatures of other providers and reasoning that cannot be verified. Throws
 * `invalid_request` for content that the provider cannot take.
 */
export function toMessages(context: TranslationContext): Conversation {
  const { messages } = context.request;
  const firstTurn = messages.findIndex(({ role }) => role !== Role.SYSTEM);
  const leading = firstTurn === -1 ? messages.length : firstTurn;
  const prompts = messages
    .slice(0, leading)
    .map((message, index) => toSystemBlocks(context, message, `messages[${index}]`))
    .filter((blocks) => blocks.length > 0);

  const mapped = toTurns(context, leading);
  const { turns, hoisted } = settleSystemTurns(mapped, context.model.capabilities);
  const joined = joinTurns(turns);
  if (joined.length === 0) {
    // The provider needs a turn to answer, so the last instruction becomes a user turn.
    const last = hoisted.length > 0 ? hoisted.splice(0) : prompts.pop();
    if (last === undefined) throw invalidField("messages", "must hold a message that is not empty");
    joined.push({ role: "user", content: last });
  }
  return { system: [...prompts.flat(), ...hoisted], turns: joined };
}

function toTurns(context: TranslationContext, from: number): Turn[] {
  const { messages } = context.request;
  const replays = context.model.capabilities.reasoning !== "none" && !messages.some(isPartlyReplayable);
  const lastAnswerable = messages.findLastIndex(({ role }) => role === Role.USER || role === Role.TOOL);
  const turns: Turn[] = [];
  const add = (role: Turn["role"], content: Turn["content"]): void => {
    if (content.length > 0) turns.push({ role, content });
  };
  for (let index = from; index < messages.length; index++) {
    const message = messages[index]!;
    const field = `messages[${index}]`;
    context.log.omitWhen(Boolean(message.name), `${field}.name`);
    switch (message.role) {
      case Role.SYSTEM:
        add("system", toSystemBlocks(context, message, field));
        break;
      case Role.USER:
        add("user", toUserBlocks(context, message, field));
        break;
      case Role.TOOL:
        add("user", toToolResults(context, message, field));
        break;
      case Role.ASSISTANT: {
        add("assistant", toAssistantBlocks(context, message, { field, replays }));
        add("user", toShownImages(context, message, { field, answered: index < lastAnswerable }));
        break;
      }
      case Role.UNSPECIFIED:
      default:
        throw invalidField(`${field}.role`, "must be system, user, assistant or tool");
    }
  }
  return turns;
}

function toSystemBlocks(context: TranslationContext, message: Message, field: string): TextBlock[] {
  return toTextBlocks(context, message.parts, `${field}.parts`);
}

function toUserBlocks(context: TranslationContext, message: Message, field: string): ContentBlock[] {
  return toContentBlocks(context, message.parts, `${field}.parts`);
}

function toToolResults(context: TranslationContext, { parts }: Message, field: string): ToolResultBlock[] {
  return parts.flatMap(({ kind, cacheMark }, index) => {
    const partField = `${field}.parts[${index}]`;
    if (kind.case === undefined) return [];
    if (kind.case !== "toolResult") throw invalidField(partField, "must be a tool result in a tool message");
    const result = toToolResult(context, kind.value, `${partField}.tool_result`);
    context.marks.put(result, cacheMark, partField);
    return result;
  });
}

function toToolResult(
  context: TranslationContext,
  { toolCallId, parts, isError }: ToolResult,
  field: string,
): ToolResultBlock {
  const callId = context.ids.find(toolCallId);
  if (callId === undefined)
    throw invalidField(`${field}.tool_call_id`, "does not name a tool call of an earlier message");
  const content = toResultContent(toContentBlocks(context, parts, `${field}.parts`));
  return { type: "tool_result", tool_use_id: callId, content, is_error: isError || undefined };
}

function toResultContent(blocks: readonly ContentBlock[]): ToolResultBlock["content"] {
  if (blocks.length === 0) return undefined;
  const [first] = blocks;
  const plain = blocks.length === 1 && first?.type === "text" && first.cache_control === undefined;
  return plain ? first.text : blocks;
}

/**
 * Moves the pictures of an assistant message to the next user turn, because the provider allows none in an assistant
 * turn. Without a next user turn, or for a model without image input, they are logged as omitted.
 */
function toShownImages(
  context: TranslationContext,
  message: Message,
  { field, answered }: { readonly field: string; readonly answered: boolean },
): ContentBlock[] {
  const shown: ContentBlock[] = [];
  message.parts.forEach(({ kind }, index) => {
    if (kind.case !== "image") return;
    const partField = `${field}.parts[${index}]`;
    if (answered && context.model.inputModalities.has(Modality.IMAGE))
      shown.push(toImageBlock(context, kind.value, partField));
    else context.log.omit(partField);
  });
  return shown;
}

/** Whether only part of a message's reasoning can be verified. Then no reasoning of the conversation may be sent. */
function isPartlyReplayable({ parts }: Message): boolean {
  return parts.some(isReplayable) && parts.some((part) => part.kind.case === "reasoning" && !isReplayable(part));
}
