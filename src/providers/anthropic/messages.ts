import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import {
  type ContentPart,
  type Message,
  type ReasoningBlock,
  Role,
  type ToolCall,
} from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isObject, parsed } from "../wire/json.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { isBlank, toContentBlocks, toImageBlock, toTextBlocks } from "./parts.ts";
import { joinTurns, settleSystemTurns } from "./turns.ts";
import type {
  Block,
  ContentBlock,
  RedactedThinkingBlock,
  TextBlock,
  ThinkingBlock,
  ToolResultBlock,
  ToolUseBlock,
  Turn,
} from "./wire.ts";

/**
 * Converts an assistant message to blocks in their original order: text, then calls, with each `reasoning` block at its
 * offset. Empty without text or a call, because the provider refuses a turn of reasoning alone; the reasoning is then
 * logged as omitted. Pictures are not allowed in an assistant turn and are left out. Throws `invalid_request` for content
 * that no turn can hold.
 */
function toAssistantBlocks(
  context: TranslationContext,
  message: Message,
  { field, reasoning }: { readonly field: string; readonly reasoning: readonly ReasoningBlock[] },
): Block[] {
  const turn = new TurnInOrder(context, message, field);
  for (const block of reasoning) {
    turn.emitUntil(block.textOffset, block.toolCallOffset);
    turn.blocks.push(toThinkingBlock(block));
  }
  turn.emitUntil(Infinity, Infinity);
  const hasContent = turn.blocks.some(({ type }) => type === "text" || type === "tool_use");
  context.log.omitWhen(!hasContent && reasoning.length > 0, `${field}.thinking_blocks`);
  context.marks.putLast(turn.blocks, message.cacheMark, field);
  return hasContent ? turn.blocks : [];
}

/** Whether the provider can verify the block. Only such blocks may be sent back. */
function isReplayable({ signature, redacted }: ReasoningBlock): boolean {
  return signature !== "" || redacted !== "";
}

function toThinkingBlock({ text, signature, redacted }: ReasoningBlock): ThinkingBlock | RedactedThinkingBlock {
  return redacted === ""
    ? { type: "thinking", thinking: text, signature }
    : { type: "redacted_thinking", data: redacted };
}

/** Emits a message's text and calls up to given offsets. Offsets are those of `ReasoningBlock`. */
class TurnInOrder {
  readonly blocks: Block[] = [];
  readonly #context: TranslationContext;
  readonly #field: string;
  readonly #pieces: readonly TextPiece[];
  readonly #calls: readonly ToolCall[];
  #textOffset = 0;
  #callOffset = 0;

  constructor(context: TranslationContext, message: Message, field: string) {
    this.#context = context;
    this.#field = field;
    this.#pieces = toTextPieces(message, field);
    this.#calls = message.toolCalls;
  }

  emitUntil(textOffset: number, callOffset: number): void {
    this.#emitText(textOffset);
    const until = Math.min(callOffset, this.#calls.length);
    for (; this.#callOffset < until; this.#callOffset++) {
      const callField = `${this.#field}.tool_calls[${this.#callOffset}]`;
      this.blocks.push(toToolUse(this.#context, this.#calls[this.#callOffset]!, callField));
    }
  }

  #emitText(until: number): void {
    for (const { start, text, part, field } of this.#pieces) {
      const slice = text.slice(Math.max(this.#textOffset - start, 0), Math.max(until - start, 0));
      if (slice === "") continue;
      const block: TextBlock | undefined = isBlank(slice) ? undefined : { type: "text", text: slice };
      if (block !== undefined) this.blocks.push(block);
      const ends = start + text.length <= until;
      if (ends) this.#context.marks.put(block, part?.cacheMark, field);
    }
    this.#textOffset = Math.max(this.#textOffset, until);
  }
}

/** A piece of a message's text with its start in the whole text, in UTF-16 units. */
interface TextPiece {
  readonly start: number;
  readonly text: string;
  readonly part: ContentPart | undefined;
  readonly field: string;
}

function toTextPieces({ content, refusal }: Message, field: string): TextPiece[] {
  const pieces: TextPiece[] = [];
  let start = 0;
  const add = (text: string, part: ContentPart | undefined, partField: string): void => {
    pieces.push({ start, text, part, field: partField });
    start += text.length;
  };
  content.forEach((part, index) => {
    const partField = `${field}.content[${index}]`;
    if (part.content.case === "text") add(part.content.value, part, partField);
    else if (part.content.case === "audio") throw invalidField(partField, "this model does not take audio");
    else if (part.content.case === "file") throw invalidField(partField, "an assistant message cannot hold a file");
  });
  if (refusal !== undefined) add(refusal, undefined, `${field}.refusal`);
  return pieces;
}

function toToolUse(
  { ids }: TranslationContext,
  { id, name, arguments: text, custom }: ToolCall,
  field: string,
): ToolUseBlock {
  if (custom) throw invalidField(field, "this model does not take custom tools");
  return { type: "tool_use", id: ids.open(id), name, input: toInput(text) };
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
    // The provider needs a turn to answer, so the last instruction becomes it.
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
    context.log.omitWhen((message.name ?? "") !== "", `${field}.name`);
    switch (message.role) {
      case Role.SYSTEM:
        add("system", toSystemBlocks(context, message, field));
        break;
      case Role.USER:
        add("user", toUserBlocks(context, message, field));
        break;
      case Role.TOOL:
        add("user", [toToolResult(context, message, field)]);
        break;
      case Role.ASSISTANT: {
        const reasoning = replays ? message.reasoning.filter(isReplayable) : [];
        add("assistant", toAssistantBlocks(context, message, { field, reasoning }));
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
  const blocks = toTextBlocks(context, message.content, field);
  context.marks.putLast(blocks, message.cacheMark, field);
  return blocks;
}

function toUserBlocks(context: TranslationContext, message: Message, field: string): ContentBlock[] {
  const blocks = toContentBlocks(context, message.content, field);
  context.marks.putLast(blocks, message.cacheMark, field);
  return blocks;
}

function toToolResult(context: TranslationContext, message: Message, field: string): ToolResultBlock {
  const callId = context.ids.find(message.toolCallId ?? "");
  if (callId === undefined)
    throw invalidField(`${field}.tool_call_id`, "does not name a tool call of an earlier message");
  const blocks = toContentBlocks(context, message.content, field);
  const result: ToolResultBlock = { type: "tool_result", tool_use_id: callId, content: toResultContent(blocks) };
  context.marks.put(result, message.cacheMark, field);
  return result;
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
  message.content.forEach(({ content }, index) => {
    if (content.case !== "image") return;
    const partField = `${field}.content[${index}]`;
    if (answered && context.model.inputModalities.has(Modality.IMAGE))
      shown.push(toImageBlock(context, content.value, partField));
    else context.log.omit(partField);
  });
  return shown;
}

/** Whether only part of a message's reasoning can be verified. Then no reasoning of the conversation may be sent. */
function isPartlyReplayable({ reasoning }: { readonly reasoning: readonly ReasoningBlock[] }): boolean {
  return reasoning.some(isReplayable) && !reasoning.every(isReplayable);
}
