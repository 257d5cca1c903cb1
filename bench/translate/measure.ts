import { DIALECTS, type Dialect } from "../../src/config/dialects.ts";
import { readChatRequest } from "../../src/formats/openai-chat/request.ts";
import { median, quiet } from "../measure/statistics.ts";
import { longConversation, shortConversation } from "./conversation.ts";
import { modelOf, TRANSLATIONS } from "./models.ts";

/** Cost of one way of handling the conversation, in CPU-microseconds per request. */
export interface TranslationCost {
  readonly name: string;
  readonly medianUs: number;
  readonly quietUs: number;
  /** Ratio to JSON alone in the same round: median, and quiet to quiet. */
  readonly ratio: number;
  readonly quietRatio: number;
}

/** All results. */
export interface TranslationResult {
  readonly bytes: number;
  readonly costs: readonly TranslationCost[];
}

interface Contestant {
  readonly name: string;
  readonly run: () => string | Buffer;
}

const SLICE_MS = 60;
const WARM_UP_SLICES = 8;

/** JSON alone: the minimum for a server that reads requests. */
function json(text: string): Contestant {
  return { name: "JSON.parse + JSON.stringify", run: () => JSON.stringify(JSON.parse(text)) };
}

/** Translates a client's text to Parley's request and to the provider's text. */
function translation(text: string, dialect: Dialect): Contestant {
  const model = modelOf(dialect);
  const translate = TRANSLATIONS[dialect];
  return {
    name: `OpenAI JSON → request → ${dialect} JSON`,
    run: () => translate(readChatRequest(JSON.parse(text)).request, model, { mode: "whole" }).body,
  };
}

/** Throws unless the result contains the end of the conversation. */
function check({ name, run }: Contestant): void {
  if (!run().includes("Now book it, please.")) throw new Error(`The result of ${name} is incomplete.`);
}

/** The cost of one run, over a slice of them. */
function measureSlice({ run }: Contestant): number {
  const start = process.cpuUsage();
  const end = performance.now() + SLICE_MS;
  let runs = 0;
  for (; performance.now() < end; runs += 1) run();
  const { user, system } = process.cpuUsage(start);
  return (user + system) / runs;
}

function contestantsFor(text: string): readonly Contestant[] {
  return [json(text), ...DIALECTS.map((dialect) => translation(text, dialect))];
}

function warmUp(contestants: readonly Contestant[]): void {
  for (let slice = 0; slice < WARM_UP_SLICES; slice += 1) contestants.forEach(measureSlice);
}

/** Measures JSON alone and all dialects, one after another in every round. */
export function measureTranslation(rounds: number): TranslationResult {
  const text = longConversation();
  // Warm-up with short conversations, as in a busy server: with a long one first, V8's allocation feedback (pretenuring)
  // puts later objects into the old generation, which costs half as much again.
  warmUp(contestantsFor(shortConversation()));
  const contestants = contestantsFor(text);
  warmUp(contestants);
  contestants.forEach(check);
  const slices = Array.from({ length: rounds }, () => contestants.map(measureSlice));
  const floor = slices.map(([first]) => first!);
  const costs = contestants.map(({ name }, index): TranslationCost => {
    const own = slices.map((round) => round[index]!);
    return {
      name,
      medianUs: median(own),
      quietUs: quiet(own),
      ratio: median(own.map((cost, round) => cost / floor[round]!)),
      quietRatio: quiet(own) / quiet(floor),
    };
  });
  return { bytes: Buffer.byteLength(text), costs };
}

/** The figures as a table for the terminal. */
export function formatTranslation({ bytes, costs }: TranslationResult): string {
  const rows = costs.map(({ name, medianUs, quietUs, ratio, quietRatio }) =>
    [name.padEnd(38), medianUs.toFixed(0), quietUs.toFixed(0), ratio.toFixed(2), quietRatio.toFixed(2)]
      .map((cell, index) => (index === 0 ? cell : cell.padStart(9)))
      .join(""),
  );
  const title = `translation of 200 messages with tools, ${(bytes / 1000).toFixed(0)} kB`;
  const head = `${"".padEnd(38)}${["CPU-µs", "quiet", "ratio", "quiet"].map((cell) => cell.padStart(9)).join("")}`;
  return [title, head, ...rows].join("\n");
}
