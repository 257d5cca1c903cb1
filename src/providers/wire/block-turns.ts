import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import {
  type CacheMark,
  type Image,
  type Message,
  type Part,
  Role,
  type ToolResult,
} from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import { isObject, parsed } from "./json.ts";
import type { ToolCallIds } from "./tool-call-ids.ts";
import type { TranslationLog } from "./translation.ts";

/*
 * Conversations of turns whose contents are lists of blocks: Anthropic's Messages API and Bedrock's Converse.
 */

/** One turn of the conversation. */
export interface BlockTurn<Block> {
  readonly role: "user" | "assistant" | "system";
  content: Block[];
}

/** A conversation in the provider's form. */
export interface Conversation<Block, TextBlock> {
  readonly system: TextBlock[];
  /** At least one. */
  readonly turns: BlockTurn<Block>[];
}

/** A position in the messages of a request. Its path is built only when an error, an omission or a mark names it: few requests have any. */
export class Place {
  message = 0;
  part = 0;
  /** Part of a tool's result; undefined outside of results. */
  inner: number | undefined;

  /** Path of the message, such as `messages[2]`. */
  get messageField(): string {
    return `messages[${this.message}]`;
  }

  /** Path of the part, such as `messages[2].parts[0]`. */
  get field(): string {
    const field = `${this.messageField}.parts[${this.part}]`;
    return this.inner === undefined ? field : `${field}.tool_result.parts[${this.inner}]`;
  }
}

/** State of one translation. */
export interface BlockContext {
  readonly request: CompletionRequest;
  readonly model: UpstreamModel;
  readonly log: TranslationLog;
  readonly ids: ToolCallIds;
  /** Of the part that is translated. */
  readonly place: Place;
  /** `target`: the block made from `field`, undefined if the field became none that can be marked. */
  readonly marks: { put(target: object | undefined, mark: CacheMark | undefined, field: string): void };
}

/** How a dialect tells its blocks apart. */
export interface BlockKinds<Block> {
  readonly isReasoning: (block: Block) => boolean;
  /** The tool call of a block; undefined for another block. */
  readonly callOf: (block: Block) => { readonly id: string; readonly name: string } | undefined;
  /** The ID of the call whose result a block has; undefined for another block. */
  readonly resultOf: (block: Block) => string | undefined;
}

/** The blocks of a dialect for the parts of messages. `BlockContext.place` is that of the part, or of the message for lists of parts. */
export interface BlockForms<Block, TextBlock extends Block> extends BlockKinds<Block> {
  readonly toText: (parts: readonly Part[]) => TextBlock[];
  readonly toUser: (parts: readonly Part[]) => Block[];
  /** A part of an assistant message other than reasoning; undefined if it is left out. */
  readonly toAssistant: (part: Part) => Block | undefined;
  /** Undefined for a part without state of the provider, which could not verify it. */
  readonly toReasoning: (part: Part) => Block | undefined;
  readonly toImage: (image: Image) => Block;
  readonly toResult: (callId: string, result: ToolResult) => Block;
  /** Positions the system turns that follow a user's turn; `hoisted` joins the system prompt. */
  readonly settle: (turns: readonly BlockTurn<Block>[]) => {
    readonly turns: readonly BlockTurn<Block>[];
    readonly hoisted: TextBlock[];
  };
}

/**
 * Converts a request's messages to a system prompt, of the leading system messages, and turns. Reasoning that cannot be verified is
 * left out. Throws `invalid_request` for content that the provider cannot take.
 */
export function toConversation<Block, TextBlock extends Block>(
  context: BlockContext,
  forms: BlockForms<Block, TextBlock>,
): Conversation<Block, TextBlock> {
  const { messages } = context.request;
  const firstTurn = messages.findIndex(({ role }) => role !== Role.SYSTEM);
  const leading = firstTurn === -1 ? messages.length : firstTurn;
  const prompts = messages
    .slice(0, leading)
    .map(({ parts }, index) => {
      context.place.message = index;
      return forms.toText(parts);
    })
    .filter((blocks) => blocks.length > 0);
  const { turns, hoisted } = forms.settle(toTurns(context, forms, leading));
  const joined = joinTurns(turns, forms);
  if (joined.length === 0) {
    // The provider needs a turn to answer, so the last instruction becomes a user turn.
    const last = hoisted.length > 0 ? hoisted.splice(0) : prompts.pop();
    if (last === undefined) throw invalidField("messages", "must hold a message that is not empty");
    joined.push({ role: "user", content: last });
  }
  return { system: [...prompts.flat(), ...hoisted], turns: joined };
}

function toTurns<Block, TextBlock extends Block>(
  context: BlockContext,
  forms: BlockForms<Block, TextBlock>,
  from: number,
): BlockTurn<Block>[] {
  const { request, place } = context;
  const { messages } = request;
  const isPartlyReplayable = ({ parts }: Message): boolean => {
    const isReplayable = (part: Part): boolean => isReasoningPart(part) && forms.toReasoning(part) !== undefined;
    const isOther = (part: Part): boolean => isReasoningPart(part) && forms.toReasoning(part) === undefined;
    return parts.some(isReplayable) && parts.some(isOther);
  };
  // Partial reasoning would count as changed.
  const replays = context.model.capabilities.reasoning !== "none" && !messages.some(isPartlyReplayable);
  const lastAnswerable = messages.findLastIndex(({ role }) => role === Role.USER || role === Role.TOOL);
  const turns: BlockTurn<Block>[] = [];
  const add = (role: BlockTurn<Block>["role"], content: Block[]): void => {
    if (content.length > 0) turns.push({ role, content });
  };
  for (let index = from; index < messages.length; index++) {
    const { role, parts, name } = messages[index]!;
    place.message = index;
    if (name !== undefined && name !== "") context.log.omit(`${place.messageField}.name`);
    switch (role) {
      case Role.SYSTEM:
        add("system", forms.toText(parts));
        break;
      case Role.USER:
        add("user", forms.toUser(parts));
        break;
      case Role.TOOL:
        add("user", toToolResults(context, forms, parts));
        break;
      case Role.ASSISTANT:
        add("assistant", toAssistantBlocks(context, forms, { parts, replays }));
        if (parts.some(isImage))
          add("user", toShownImages(context, forms, { parts, answered: index < lastAnswerable }));
        break;
      case Role.UNSPECIFIED:
      default:
        throw invalidField(`${place.messageField}.role`, "must be system, user, assistant or tool");
    }
  }
  return turns;
}

const isReasoningPart = ({ kind }: Part): boolean => kind.case === "reasoning";
const isImage = ({ kind }: Part): boolean => kind.case === "image";

/** Returns no blocks for a message with only reasoning, which the provider refuses; the reasoning is then logged as omitted. */
function toAssistantBlocks<Block, TextBlock extends Block>(
  context: BlockContext,
  forms: BlockForms<Block, TextBlock>,
  { parts, replays }: { readonly parts: readonly Part[]; readonly replays: boolean },
): Block[] {
  const replayed: string[] = [];
  const blocks: Block[] = [];
  eachPart(context.place, parts, (part) => {
    const reasons = isReasoningPart(part);
    const block = reasons ? (replays ? forms.toReasoning(part) : undefined) : forms.toAssistant(part);
    if (reasons && block !== undefined) replayed.push(context.place.field);
    putMark(context, reasons ? undefined : (block as object | undefined), part);
    if (block !== undefined) blocks.push(block);
  });
  if (blocks.some((block) => !forms.isReasoning(block))) return blocks;
  for (const field of replayed) context.log.omit(field);
  return [];
}

function toToolResults<Block, TextBlock extends Block>(
  context: BlockContext,
  forms: BlockForms<Block, TextBlock>,
  parts: readonly Part[],
): Block[] {
  const { place, ids } = context;
  const results: Block[] = [];
  eachPart(place, parts, (part) => {
    const { kind } = part;
    if (kind.case === undefined) return;
    if (kind.case !== "toolResult") throw invalidField(place.field, "must be a tool result in a tool message");
    const callId = ids.find(kind.value.toolCallId);
    if (callId === undefined) {
      const field = `${place.field}.tool_result.tool_call_id`;
      throw invalidField(field, "does not name a tool call of an earlier message");
    }
    place.inner = 0;
    const result = forms.toResult(callId, kind.value);
    place.inner = undefined;
    putMark(context, result as object, part);
    results.push(result);
  });
  return results;
}

/**
 * Moves the pictures of an assistant message to the next user turn, because the provider allows none in an assistant
 * turn. Without a next user turn, or for a model without image input, they are logged as omitted.
 */
function toShownImages<Block, TextBlock extends Block>(
  { model, log, place }: BlockContext,
  forms: BlockForms<Block, TextBlock>,
  { parts, answered }: { readonly parts: readonly Part[]; readonly answered: boolean },
): Block[] {
  const shown: Block[] = [];
  eachPart(place, parts, ({ kind }) => {
    if (kind.case !== "image") return;
    if (answered && model.inputModalities.has(Modality.IMAGE)) shown.push(forms.toImage(kind.value));
    else log.omit(place.field);
  });
  return shown;
}

/**
 * Joins neighbouring turns of one role into the first of them. Tool results come first in their turn, in the order of their calls:
 * the provider accepts them nowhere else.
 */
export function joinTurns<Block>(turns: readonly BlockTurn<Block>[], kinds: BlockKinds<Block>): BlockTurn<Block>[] {
  const joined: BlockTurn<Block>[] = [];
  for (const turn of turns) {
    const last = joined.at(-1);
    if (last?.role === turn.role) last.content.push(...turn.content);
    else joined.push(turn);
  }
  joined.forEach((turn, index) => {
    if (turn.content.length > 1) turn.content = withResultsFirst(turn.content, joined[index - 1], kinds);
  });
  return joined;
}

function withResultsFirst<Block>(
  content: Block[],
  before: BlockTurn<Block> | undefined,
  { callOf, resultOf }: BlockKinds<Block>,
): Block[] {
  const results = content.filter((block) => resultOf(block) !== undefined);
  if (results.length === 0) return content;
  const calls = new Map<string | undefined, number>();
  before?.content.forEach((block, index) => {
    const call = callOf(block);
    if (call !== undefined) calls.set(call.id, index);
  });
  const position = (block: Block): number => calls.get(resultOf(block)) ?? calls.size;
  return [
    ...results.toSorted((a, b) => position(a) - position(b)),
    ...content.filter((block) => resultOf(block) === undefined),
  ];
}

/** The turns. The last one may be the beginning of the answer (prefill), which only some models continue: see `toContinued`. */
export function toFinalTurns<Block>(
  turns: readonly BlockTurn<Block>[],
  toContinued: () => readonly BlockTurn<Block>[],
): readonly BlockTurn<Block>[] {
  if (turns.at(-1)?.role !== "assistant") return turns;
  const continued = toContinued();
  if (continued.length === 0) throw invalidField("messages", "must end with a user message");
  return continued;
}

/**
 * Whether the conversation ends inside a tool loop in which an assistant turn lacks its leading reasoning. The provider
 * then refuses manual reasoning.
 */
export function lacksReasoningInToolLoop<Block>(
  turns: readonly BlockTurn<Block>[],
  { isReasoning, callOf, resultOf }: BlockKinds<Block>,
): boolean {
  for (const { role, content } of turns.toReversed()) {
    if (role === "user" && !content.some((block) => resultOf(block) !== undefined)) return false;
    if (role !== "assistant" || !content.some((block) => callOf(block) !== undefined)) continue;
    if (!isReasoning(content[0]!)) return true;
  }
  return false;
}

/** Names of the tools that the conversation calls. */
export function calledTools<Block>(turns: readonly BlockTurn<Block>[], { callOf }: BlockKinds<Block>): string[] {
  return [...new Set(turns.flatMap(({ content }) => content.flatMap((block) => callOf(block)?.name ?? [])))];
}

/** Converts the parts of a message, or of a tool's result. */
export function toBlocks<Block extends object>(
  context: Pick<BlockContext, "marks" | "place">,
  parts: readonly Part[],
  toBlock: (part: Part) => Block | undefined,
): Block[] {
  const blocks: Block[] = [];
  eachPart(context.place, parts, (part) => {
    const block = toBlock(part);
    putMark(context, block, part);
    if (block !== undefined) blocks.push(block);
  });
  return blocks;
}

/** Throws `invalid_request` for parts other than text. */
export function requireText(place: Place, parts: readonly Part[]): void {
  eachPart(place, parts, ({ kind }) => {
    if (kind.case !== "text" && kind.case !== undefined) throw invalidField(place.field, "must be text");
  });
}

/** Calls back with each part, while `place` is that of the part. */
export function eachPart(place: Place, parts: readonly Part[], use: (part: Part) => void): void {
  const isInner = place.inner !== undefined;
  for (let index = 0; index < parts.length; index++) {
    if (isInner) place.inner = index;
    else place.part = index;
    use(parts[index]!);
  }
}

/** Puts the mark of a part on its block; `block` undefined: on none. */
export function putMark(
  { marks, place }: Pick<BlockContext, "marks" | "place">,
  block: object | undefined,
  { cacheMark }: Part,
): void {
  if (cacheMark !== undefined) marks.put(block, cacheMark, place.field);
}

/** Parses arguments. The provider takes only objects, so other arguments are wrapped as text, and the model sees what it wrote. */
export function toInput(text: string): Record<string, unknown> {
  if (isBlank(text)) return {};
  const input = parsed(text);
  return isObject(input) ? input : { arguments: text };
}

/** Whether the provider refuses the text as blank. */
export function isBlank(text: string): boolean {
  return text.trim() === "";
}
