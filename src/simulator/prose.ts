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

/** Readable prose of exactly `count` words, in paragraphs of some eighty words, always ending in a full stop. */
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
