import { type Answer, isEffort, type ReasoningPart, Refusal } from "../answer.ts";
import { fingerprint } from "../dice.ts";
import { findModel } from "../models.ts";
import { findLastUserText, findToolResults, type Prompt, type ReasoningOrder } from "../prompt.ts";
import type { Block, MessageBody, MessagesBody } from "./body.ts";

/** Identity of a reasoning block: the answer, the index of the block, and the number of blocks. */
interface Place {
  readonly answer: string;
  readonly index: number;
  readonly count: number;
}

const KEY = "the simulator's own hand";

function stamp({ answer, index, count }: Place, text: string): string {
  return fingerprint(JSON.stringify([KEY, answer, index, count, text]));
}

/** Returns the signature of a reasoning block, which detects changes to the block. */
export function sealBlock(place: Place, text: string): string {
  const { answer, index, count } = place;
  return Buffer.from(JSON.stringify({ answer, index, count, stamp: stamp(place, text) })).toString("base64");
}

/** Returns the signature of a reasoning part of an answer, or the data of a redacted one. */
export function sealPart(part: ReasoningPart, { id, parts }: Answer): string {
  const blocks = parts.filter((other) => other.kind === "reasoning");
  const place = { answer: id, index: blocks.indexOf(part), count: blocks.length };
  return sealBlock(place, part.form === "shown" ? part.tokens.join("") : "");
}

/** Returns the place in a signature. Undefined for a foreign signature or a changed text. */
function readSeal(signature: string, text: string): Place | undefined {
  let value: unknown;
  try {
    value = JSON.parse(Buffer.from(signature, "base64").toString());
  } catch {
    return undefined;
  }
  if (typeof value !== "object" || value === null) return undefined;
  const { answer, index, count, stamp: given } = value as Partial<Record<keyof Place | "stamp", unknown>>;
  if (typeof answer !== "string" || typeof index !== "number" || typeof count !== "number") return undefined;
  const place = { answer, index, count };
  // Compares the encoded form too, so that a different encoding of the same content is rejected.
  return given === stamp(place, text) && sealBlock(place, text) === signature ? place : undefined;
}

const DEFAULT_EFFORT = "high";

/** Beta feature: controls for thinking blocks that no longer match their conversation. */
const BINDING_BETA = "thinking-binding-controls-2026-08-01";

/** Word in a question that triggers a redacted reasoning part. */
const REDACTING = /\bredacted\b/iu;

function refuseUnless(isRight: boolean, message: string): void {
  if (!isRight) throw new Refusal(400, message);
}

/** Returns the requested reasoning; undefined without any. */
export function toReasoning(
  { thinking, output_config: config }: MessagesBody,
  prompt: Prompt,
): ReasoningOrder | undefined {
  if (!thinking || thinking.type === "disabled") return undefined;
  if (thinking.type === "between_tools") {
    if (findToolResults(prompt).length === 0) return undefined;
    return { effort: readEffort(config), shown: false };
  }
  // Manual thinking is shown by default, adaptive thinking is not.
  const display = thinking.display ?? (thinking.type === "enabled" ? "summarized" : "omitted");
  return {
    effort: readEffort(config),
    maxTokens: thinking.budget_tokens ?? undefined,
    shown: display === "summarized",
    redacted: REDACTING.test(findLastUserText(prompt)) ? true : undefined,
  };
}

function readEffort(config: MessagesBody["output_config"]): ReasoningOrder["effort"] {
  const effort = config?.effort ?? DEFAULT_EFFORT;
  return isEffort(effort) ? effort : DEFAULT_EFFORT;
}

/** Checks the thinking parameters in combination with the other fields. Throws `Refusal` (400). */
export function checkThinking(body: MessagesBody, betas: ReadonlySet<string>): void {
  const { thinking } = body;
  if (!thinking || thinking.type === "disabled") return;
  const isBound = thinking["block_binding"] !== undefined;
  refuseUnless(
    !isBound || betas.has(BINDING_BETA),
    `thinking.${thinking.type}.block_binding: Extra inputs are not permitted`,
  );
  refuseUnless(
    (body.temperature ?? 1) === 1,
    "`temperature` may only be set to 1 when thinking is enabled or in adaptive mode.",
  );
  refuseUnless(
    (body.top_p ?? 1) >= 0.95,
    "`top_p` must be greater than or equal to 0.95 or unset when thinking is enabled or in adaptive mode.",
  );
  refuseUnless(body.top_k == null, "`top_k` must be unset when thinking is enabled or in adaptive mode.");
  if (thinking.type !== "enabled") {
    const field = `thinking.${thinking.type}.budget_tokens`;
    refuseUnless(thinking.budget_tokens == null, `${field}: Extra inputs are not permitted`);
    // Listed models belong to the 4.5 family, which supports only manual thinking.
    refuseUnless(findModel(body.model) === undefined, `${thinking.type} thinking is not supported on this model`);
    return;
  }
  refuseUnless(Number.isInteger(thinking.budget_tokens), "thinking.enabled.budget_tokens: Field required");
  refuseUnless(
    thinking.budget_tokens! < body.max_tokens!,
    "`max_tokens` must be greater than `thinking.budget_tokens`.",
  );
  const isForced = body.tool_choice?.type === "any" || body.tool_choice?.type === "tool";
  refuseUnless(!isForced, "Thinking may not be enabled when tool_choice forces tool use.");
}

type ThinkingBlock = Extract<Block, { type: "thinking" | "redacted_thinking" }>;

function listBlocks({ content }: MessageBody): readonly Block[] {
  return typeof content === "string" ? [] : content;
}

function isThinking(block: Block): block is ThinkingBlock {
  return block.type === "thinking" || block.type === "redacted_thinking";
}

/**
 * Checks replayed thinking blocks. Every block must be unchanged, and the latest assistant message must contain all of
 * its blocks or none. With manual thinking, each assistant message of the current tool loop must start with a thinking
 * block. Throws `Refusal` (400).
 */
export function checkReplay({ messages, thinking }: MessagesBody): void {
  const places = messages.map((message, index) => checkSeals(message, `messages.${index}`));
  const latest = messages.findLastIndex((message) => message.role === "assistant");
  if (latest >= 0) checkComplete(places[latest] ?? [], `messages.${latest}`);
  if (thinking?.type === "enabled") checkToolLoop(messages);
}

function checkSeals(message: MessageBody, path: string): Place[] {
  const places: Place[] = [];
  for (const [index, block] of listBlocks(message).entries()) {
    if (!isThinking(block)) continue;
    const place =
      block.type === "thinking" ? readSeal(block.signature ?? "", block.thinking) : readSeal(block.data, "");
    if (!place) {
      const [field, type] = block.type === "thinking" ? ["signature", "thinking"] : ["data", "redacted_thinking"];
      throw new Refusal(400, `${path}.content.${index}: Invalid \`${field}\` in \`${type}\` block`);
    }
    places.push(place);
  }
  return places;
}

/** Checks that the blocks are complete. Merged messages contain the blocks of several answers in sequence. */
function checkComplete(places: readonly Place[], path: string): void {
  let next: Place | undefined;
  const isWhole = places.every((place) => {
    const isNext = next === undefined ? place.index === 0 : place.answer === next.answer && place.index === next.index;
    next = place.index + 1 < place.count ? { ...place, index: place.index + 1 } : undefined;
    return isNext;
  });
  refuseUnless(
    isWhole && next === undefined,
    `${path}.content: \`thinking\` or \`redacted_thinking\` blocks in the latest assistant message cannot be modified. ` +
      "These blocks must remain as they were in the original response.",
  );
}

function checkToolLoop(messages: readonly MessageBody[]): void {
  const start = messages.findLastIndex(
    (message) => message.role === "user" && !listBlocks(message).some((block) => block.type === "tool_result"),
  );
  for (const [index, message] of messages.entries()) {
    const [first] = listBlocks(message);
    const isLooped =
      index > start && message.role === "assistant" && listBlocks(message).some((block) => block.type === "tool_use");
    refuseUnless(
      !isLooped || (first !== undefined && isThinking(first)),
      `messages.${index}.content.0.type: Expected \`thinking\` or \`redacted_thinking\`, but found \`${first?.type}\`. ` +
        "When `thinking` is enabled, a final `assistant` message must start with a thinking block (preceeding the " +
        "lastmost set of `tool_use` and `tool_result` blocks).",
    );
  }
}
