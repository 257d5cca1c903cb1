import { findToolResults, readQuestion, type Prompt, type ReasoningOrder } from "./prompt.ts";
import { abbreviate, splitTokens } from "./text.ts";

const QUOTE_LENGTH = 120;

/** How many thoughts an effort takes. */
const DEPTHS = { minimal: 1, low: 1, medium: 2, high: 3, xhigh: 4, max: 4 } as const;

/** An effort in the words that the dialects share. */
export type Effort = keyof typeof DEPTHS;

/** Whether a word is an effort that makes a model reason. */
export function isEffort(word: string): word is Effort {
  return Object.hasOwn(DEPTHS, word);
}

function writeThoughts(prompt: Prompt): [string, ...string[]] {
  const question = readQuestion(prompt);
  const results = findToolResults(prompt).length;
  const tools = prompt.tools.map((tool) => tool.name).join(", ");
  return [
    question === ""
      ? "The last message has no text."
      : `The last message reads "${abbreviate(question, QUOTE_LENGTH)}".`,
    results > 0
      ? `Results to go on with: ${results}.`
      : tools === ""
        ? "There are no tools to call."
        : `The tools that might help: ${abbreviate(tools, QUOTE_LENGTH)}.`,
    `The conversation has ${prompt.turns.length} ${prompt.turns.length === 1 ? "message" : "messages"} so far.`,
    "Nothing else is known about it, so the answer follows from these.",
  ];
}

/**
 * What a simulated model thinks before it answers, in the tokens that a stream sends: the more effort, the more
 * thoughts, and never more tokens than the order allows.
 */
export function writeReasoning(prompt: Prompt, { effort, maxTokens }: ReasoningOrder): string[] {
  const text = writeThoughts(prompt).slice(0, DEPTHS[effort]).join(" ");
  return splitTokens(text).slice(0, maxTokens);
}
