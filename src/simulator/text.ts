import type { Dice } from "./dice.ts";

type Words = readonly [string, ...string[]];

const OPENING = "This is simulated prose, written to measure by no model at all.".split(" ");

const SUBJECTS: Words = [
  "the lighthouse",
  "a patient gardener",
  "the night train",
  "an old map",
  "the harbour",
  "a quiet library",
  "the first snow",
  "a careful clockmaker",
];
const VERBS: Words = ["remembers", "follows", "keeps", "listens to", "waits for", "draws", "carries", "answers"];
const OBJECTS: Words = [
  "every small sound",
  "the long way home",
  "a letter from the coast",
  "the colour of the evening",
  "one more story",
  "the slow turning of the tide",
  "what the wind has left",
  "a promise made in spring",
];
const ENDINGS: Words = [
  "before the morning comes",
  "as it always has",
  "without any hurry",
  "while the town is asleep",
  "and nobody minds",
  "for as long as it takes",
];

function writeSentence(dice: Dice): string[] {
  const words = [dice.pick(SUBJECTS), dice.pick(VERBS), dice.pick(OBJECTS), dice.pick(ENDINGS)].join(" ").split(" ");
  words[0] = `${words[0]?.charAt(0).toUpperCase()}${words[0]?.slice(1)}`;
  words.push(`${words.pop()}.`);
  return words;
}

/** Writes prose of exactly `count` words, in paragraphs of about 80 words, ending in a full stop. */
export function writeProse(count: number, dice: Dice): string {
  const words = [...OPENING];
  let sinceBreak = words.length;
  while (words.length < count) {
    const sentence = writeSentence(dice);
    if (sinceBreak >= 80) {
      sentence[0] = `\n\n${sentence[0]}`;
      sinceBreak = 0;
    }
    words.push(...sentence);
    sinceBreak += sentence.length;
  }
  const text = words.slice(0, count).join(" ").replaceAll(" \n\n", "\n\n");
  return text === "" || text.endsWith(".") ? text : `${text.replace(/,$/u, "")}.`;
}

/**
 * A token of the simulator: optional white space and up to six characters of a word, about four characters in English.
 * A stream sends one token per event, so the completion tokens equal the content events.
 */
const PIECE = /\s*[^\s]{1,6}|\s+$/gu;

/** Splits an answer into tokens. Joined they are the exact text. */
export function splitTokens(text: string): string[] {
  return text.match(PIECE) ?? [];
}

/** Estimates the tokens of a request text: one per four UTF-16 units, rounded up. Constant time. */
export function estimateTokens(text: string): number {
  return Math.ceil(text.length / 4);
}

/**
 * Returns the text on one line, truncated at a word boundary to at most `limit` characters, with an ellipsis if
 * truncated.
 */
export function abbreviate(text: string, limit: number): string {
  const line = text
    .slice(0, limit * 4)
    .replace(/\s+/gu, " ")
    .trim();
  if (line.length <= limit) return line;
  const cut = line.slice(0, limit);
  const end = cut.lastIndexOf(" ");
  return `${(end > limit / 2 ? cut.slice(0, end) : cut.replace(/[\uD800-\uDBFF]$/u, "")).trimEnd()}…`;
}

/** Returns the earliest stop sequence in the text, if any. */
export function findStop(text: string, stops: readonly string[]): { at: number; sequence: string } | undefined {
  let first: { at: number; sequence: string } | undefined;
  for (const sequence of stops) {
    const at = sequence === "" ? -1 : text.indexOf(sequence);
    if (at >= 0 && (first === undefined || at < first.at)) first = { at, sequence };
  }
  return first;
}
