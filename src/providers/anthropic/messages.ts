import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import { type Message, type ReasoningBlock, Role } from "../../../gen/parley/v1/message_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isReplayable, toAssistantBlocks } from "./assistant-turn.ts";
import { toContentBlocks, toImageBlock, toTextBlocks } from "./parts.ts";
import type { TranslationContext } from "./context.ts";
import { joinTurns, settleSystemTurns } from "./turns.ts";
import type { ContentBlock, TextBlock, ToolResultBlock, Turn } from "./wire.ts";

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
