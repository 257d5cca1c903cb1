import type { Effort } from "./answer.ts";
import { fingerprint } from "./dice.ts";
import type { ImageInput } from "./image-input.ts";
import { estimateTokens } from "./text.ts";

/** One message of a conversation, in the simulator's own words whatever the dialect. */
export interface Turn {
  readonly role: "system" | "user" | "assistant" | "tool";
  readonly text: string;
  readonly images: readonly ImageInput[];
}

/** A tool that the answer may call. */
export interface Tool {
  readonly name: string;
  /** JSON Schema of the arguments; undefined when it takes none. */
  readonly parameters: unknown;
}

export interface ToolChoice {
  readonly mode: "auto" | "required" | "none";
  /** The only tools that may be called; undefined means all of them. */
  readonly names?: readonly string[] | undefined;
  /** Whether one answer may hold several calls. */
  readonly parallel: boolean;
}

/** A picture that is asked for. */
export interface PictureOrder {
  /** Width to height, such as `16:9`. */
  readonly aspectRatio: string;
  /** `512`, `1K`, `2K` or `4K`: the side of a square of the same area. */
  readonly size: string;
  /** Whether words may stand beside the picture. */
  readonly caption: boolean;
}

/** Reasoning that is asked for, before the answer. */
export interface ReasoningOrder {
  readonly effort: Effort;
  /** The most tokens of it; undefined leaves it to the effort. */
  readonly maxTokens?: number | undefined;
  /** Whether its text may be read. Its tokens are counted either way. */
  readonly shown: boolean;
  /** Whether a part of it is sealed: unreadable for the client, and replayed unchanged. */
  readonly redacted?: true | undefined;
}

/** What was asked, in all three dialects. */
export interface Prompt {
  readonly model: string;
  readonly turns: readonly Turn[];
  readonly tools: readonly Tool[];
  readonly toolChoice: ToolChoice;
  /** Set when the answer has to be JSON; with a schema, JSON that satisfies it. */
  readonly json?: { readonly schema?: unknown } | undefined;
  readonly picture?: PictureOrder | undefined;
  readonly reasoning?: ReasoningOrder | undefined;
  /** The most tokens of reasoning and text in an answer. A picture is never cut by it. */
  readonly maxTokens?: number | undefined;
  readonly stop: readonly string[];
  readonly seed?: number | undefined;
}

const FAULT_DIRECTIVE = /\[\[\s*fault:([^\]]*)\]\]\s*/iu;

const TURN_OVERHEAD_TOKENS = 3;

/** The text of the last user message as it was sent, or "" when there is none. */
export function findLastUserText(prompt: Prompt): string {
  return prompt.turns.findLast((turn) => turn.role === "user")?.text ?? "";
}

/** The fault that the last user message asks for with `[[fault: …]]`, if it does. */
export function findFaultDirective(prompt: Prompt): string | undefined {
  return FAULT_DIRECTIVE.exec(findLastUserText(prompt))?.[1]?.trim();
}

/** The last user message as the answer quotes it: without a fault directive. */
export function readQuestion(prompt: Prompt): string {
  return findLastUserText(prompt).replace(FAULT_DIRECTIVE, "").trim();
}

/** The results that came back from tools after the last answer, in order. */
export function findToolResults(prompt: Prompt): readonly Turn[] {
  const lastAnswer = prompt.turns.findLastIndex((turn) => turn.role === "assistant");
  return prompt.turns.slice(lastAnswer + 1).filter((turn) => turn.role === "tool");
}

/** Tokens of the whole request: its texts, its tools, its pictures, and three for every message. */
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
 * What the answer depends on, as one word: equal requests have equal identities. Where an answer has to end and how
 * much is thought before it are left out, so that they do not change what it says.
 */
export function identify(prompt: Prompt): string {
  return fingerprint(JSON.stringify({ ...prompt, reasoning: undefined, maxTokens: undefined, stop: undefined }));
}
