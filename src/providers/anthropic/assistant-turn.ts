import type { ContentPart, Message, ReasoningBlock, ToolCall } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isBlank } from "./parts.ts";
import { isObject, parsed } from "../wire/lenient.ts";
import type { TranslationContext } from "./context.ts";
import type { Block, RedactedThinkingBlock, TextBlock, ThinkingBlock, ToolUseBlock } from "./wire.ts";

/**
 * Converts an assistant message to blocks in their original order: text, then calls, with each `reasoning` block at its
 * offset. Empty without text or a call, because the provider refuses a turn of reasoning alone; the reasoning is then
 * logged as omitted. Pictures are not allowed in an assistant turn and are left out. Throws `invalid_request` for content
 * that no turn can hold.
 */
export function toAssistantBlocks(
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
export function isReplayable({ signature, redacted }: ReasoningBlock): boolean {
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
