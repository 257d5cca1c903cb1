import { type Message, type Part, Role, type ToolResult } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isObject, parsed } from "../wire/json.ts";
import type { TranslationContext } from "./cache-marks.ts";
import { isBlank, toImageBlock, toResultBlocks, toTextBlocks, toUserBlocks } from "./parts.ts";
import { joinTurns, settleSystemTurns } from "./turns.ts";
import type { Block, ReasoningBlock, TextBlock, ToolResultBlock, Turn, UserBlock } from "./wire.ts";

/** A conversation in the provider's form. */
export interface Conversation {
  readonly system: TextBlock[];
  /** At least one. */
  readonly turns: Turn[];
}

/**
 * Converts a request's messages to a system prompt and turns. Leading system messages form the prompt, later ones stay in place if
 * the model allows it. Reasoning without the provider's state is left out. Throws `invalid_request` for content that the provider
 * cannot take.
 */
export function toMessages(context: TranslationContext): Conversation {
  const { messages } = context.request;
  const firstTurn = messages.findIndex(({ role }) => role !== Role.SYSTEM);
  const leading = firstTurn === -1 ? messages.length : firstTurn;
  const system = messages
    .slice(0, leading)
    .map((message, index) => toTextBlocks(context, message.parts, `messages[${index}].parts`))
    .filter((blocks) => blocks.length > 0);
  const { turns, hoisted } = settleSystemTurns(toTurns(context, leading), context.model.capabilities);
  const joined = joinTurns(turns);
  if (joined.length === 0) {
    // The provider needs a turn to answer, so the last instruction becomes a user turn.
    const last = hoisted.length > 0 ? hoisted.splice(0) : system.pop();
    if (last === undefined) throw invalidField("messages", "must hold a message that is not empty");
    joined.push({ role: "user", content: last });
  }
  return { system: [...system.flat(), ...hoisted], turns: joined };
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
        add("system", toTextBlocks(context, message.parts, `${field}.parts`));
        break;
      case Role.USER:
        add("user", toUserBlocks(context, message.parts, `${field}.parts`));
        break;
      case Role.TOOL:
        add("user", toToolResults(context, message, field));
        break;
      case Role.ASSISTANT:
        add("assistant", toAssistantBlocks(context, message, { field, replays }));
        add("user", toShownImages(context, message, { field, answered: index < lastAnswerable }));
        break;
      case Role.UNSPECIFIED:
      default:
        throw invalidField(`${field}.role`, "must be system, user, assistant or tool");
    }
  }
  return turns;
}

/** Converts the parts of an assistant message. Leaves out reasoning without other content, because the provider refuses such a turn. */
function toAssistantBlocks(
  context: TranslationContext,
  { parts }: Message,
  { field, replays }: { readonly field: string; readonly replays: boolean },
): Block[] {
  const replayed: string[] = [];
  const blocks = parts.flatMap((part, index): Block | Block[] => {
    const partField = `${field}.parts[${index}]`;
    if (part.kind.case === "reasoning") {
      context.marks.put(undefined, part.cacheMark, partField);
      const block = replays ? toReasoningBlock(part) : undefined;
      if (block !== undefined) replayed.push(partField);
      return block ?? [];
    }
    const block = toAssistantBlock(context, part, partField);
    context.marks.put(block, part.cacheMark, partField);
    return block ?? [];
  });
  if (blocks.length > replayed.length) return blocks;
  for (const partField of replayed) context.log.omit(partField);
  return [];
}

/** A reasoning block with the provider's state. Undefined without state: the provider could not verify such reasoning. */
function toReasoningBlock({ kind, signature }: Part): ReasoningBlock | undefined {
  if (kind.case !== "reasoning") return undefined;
  const { text, redacted } = kind.value;
  if (redacted !== "") return { reasoningContent: { redactedContent: redacted } };
  return signature === "" ? undefined : { reasoningContent: { reasoningText: { text, signature } } };
}

/** Whether only part of a message's reasoning can be verified. Then no reasoning may be sent, because the rest would count as changed. */
function isPartlyReplayable({ parts }: Message): boolean {
  const reasoning = parts.filter(({ kind }) => kind.case === "reasoning").map(toReasoningBlock);
  return reasoning.includes(undefined) && reasoning.some((block) => block !== undefined);
}

function toAssistantBlock({ ids, log }: TranslationContext, { kind }: Part, field: string): Block | undefined {
  switch (kind.case) {
    case "text":
    case "refusal":
      return isBlank(kind.value) ? undefined : { text: kind.value };
    case "toolCall": {
      const { id, name, input } = kind.value;
      if (input.case === "customInput") throw invalidField(field, "this model does not take custom tools");
      return { toolUse: { toolUseId: ids.open(id), name, input: toInput(input.value ?? "") } };
    }
    case "native":
      log.omit(field);
      return undefined;
    case "audio":
    case "video":
    case "file":
      throw invalidField(field, `an assistant message cannot hold ${kind.case === "file" ? "a file" : kind.case}`);
    default:
      return undefined;
  }
}

/** Parses arguments. The provider takes only objects, so other arguments are wrapped as text, and the model sees what it wrote. */
function toInput(text: string): Record<string, unknown> {
  if (isBlank(text)) return {};
  const input = parsed(text);
  return isObject(input) ? input : { arguments: text };
}

function toToolResults(context: TranslationContext, { parts }: Message, field: string): ToolResultBlock[] {
  return parts.flatMap(({ kind, cacheMark }, index) => {
    const partField = `${field}.parts[${index}]`;
    if (kind.case === undefined) return [];
    if (kind.case !== "toolResult") throw invalidField(partField, "must be a tool result in a tool message");
    const result = toToolResult(context, kind.value, `${partField}.tool_result`);
    context.marks.put(result, cacheMark, partField);
    return [result];
  });
}

function toToolResult(
  context: TranslationContext,
  { toolCallId, parts, isError }: ToolResult,
  field: string,
): ToolResultBlock {
  const toolUseId = context.ids.find(toolCallId);
  if (toolUseId === undefined)
    throw invalidField(`${field}.tool_call_id`, "does not name a tool call of an earlier message");
  const content = toResultBlocks(context, parts, `${field}.parts`);
  return { toolResult: { toolUseId, content, status: isError ? "error" : undefined } };
}

/**
 * Moves the pictures of an assistant message to the next user turn, because the provider takes none in an assistant turn. Without
 * a next user turn, or for a model without image input, they are logged as omitted.
 */
function toShownImages(
  context: TranslationContext,
  { parts }: Message,
  { field, answered }: { readonly field: string; readonly answered: boolean },
): UserBlock[] {
  return parts.flatMap(({ kind }, index) => {
    if (kind.case !== "image") return [];
    const partField = `${field}.parts[${index}]`;
    if (answered && context.model.inputModalities.has(Modality.IMAGE))
      return [toImageBlock(context, kind.value, partField)];
    context.log.omit(partField);
    return [];
  });
}
