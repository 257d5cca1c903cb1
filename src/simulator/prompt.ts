import type { Effort } from "./answer.ts";
import { fingerprint } from "./dice.ts";
import type { ImageInput } from "./image-input.ts";
import { estimateTokens } from "./text.ts";

/** One message of a conversation, independent of the dialect. */
export interface Turn {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly text: string;
  readonly images: readonly ImageInput[];
}

export interface Tool {
  readonly name: string;
  /** JSON Schema of the arguments; undefined for a tool without arguments. */
  readonly parameters: unknown;
}

export interface ToolChoice {
  readonly mode: "auto" | "required" | "none";
  /** Allowed tools; undefined for all. */
  readonly names?: readonly string[] | undefined;
  /** Whether an answer may contain several calls. */
  readonly parallel: boolean;
}

/** A requested image. */
export interface PictureOrder {
  /** Ratio of width to height, such as `16:9`. */
  readonly aspectRatio: string;
  /** `512`, `1K`, `2K` or `4K`: the side of a square of the same area. */
  readonly size: string;
  /** Whether the answer may contain text besides the image. */
  readonly caption: boolean;
}

/** Requested reasoning, which precedes the answer. */
export interface ReasoningOrder {
  readonly effort: Effort;
  /** Maximum number of reasoning tokens; undefined if only the effort limits them. */
  readonly maxTokens?: number | undefined;
  /** Whether the text is readable. Its tokens count either way. */
  readonly shown: boolean;
  /** Whether a part is redacted: unreadable for the client, and replayed unchanged. */
  readonly redacted?: true | undefined;
}

/** A completion request, independent of the dialect. */
export interface Prompt {
  readonly model: string;
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  /** Set if the answer must be JSON; with a schema, JSON that satisfies it. */
  readonly json?: { readonly schema?: unknown } | undefined;
  readonly picture?: PictureOrder | undefined;
  readonly reasoning?: ReasoningOrder | undefined;
  /** Maximum number of reasoning and text tokens. Does not truncate images. */
  readonly maxTokens?: number | undefined;
  readonly stop: readonly string[];
  readonly seed?: number | undefined;
}

/** Without brackets: the beginning of a directive in a long prompt would be looked at again from each of its beginnings. */
const FAULT_DIRECTIVE = /\[\[\s*fault:([^[\]]*)\]\]\s*/iu;

const TURN_OVERHEAD_TOKENS = 3;

/** Returns the unchanged text of the last user message; empty without one. */
export function findLastUserText(prompt: Prompt): string {
  return prompt.turns.findLast((turn) => turn.role === "user")?.text ?? "";
}

/** Returns the fault in `[[fault: …]]` of the last user message, if any. */
export function findFaultDirective(prompt: Prompt): string | undefined {
  return FAULT_DIRECTIVE.exec(findLastUserText(prompt))?.[1]?.trim();
}

/** Returns the last user message without its fault directive. */
export function readQuestion(prompt: Prompt): string {
  return findLastUserText(prompt).replace(FAULT_DIRECTIVE, "").trim();
}

/** Returns the tool results after the last answer, in order. */
export function findToolResults(prompt: Prompt): readonly Turn[] {
  const lastAnswer = prompt.turns.findLastIndex((turn) => turn.role === "assistant");
  return prompt.turns.slice(lastAnswer + 1).filter((turn) => turn.role === "tool");
}

/** Counts the tokens of the request: texts, tools, images, and TURN_OVERHEAD_TOKENS per message. */
export function countPromptTokens(prompt: Prompt): { text: number; images: number; total: number } {
  let text = prompt.tools.reduce((sum, tool) => sum + estimateTokens(JSON.stringify(tool)), 0);
  let images = 0;
  for (const turn of prompt.turns) {
    text += TURN_OVERHEAD_TOKENS + estimateTokens(turn.text);
    for (const image of turn.images) images += image.tokens;
  }
  return { text, images, total: text + images };
}

/**
 * Returns a hash of the fields that determine the answer. Limits, stop sequences and reasoning are excluded, because
 * they do not change the content.
 */
export function identify(prompt: Prompt): string {
  return fingerprint(JSON.stringify({ ...prompt, reasoning: undefined, maxTokens: undefined, stop: undefined }));
}
