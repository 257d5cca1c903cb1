import type { Usage } from "../../../gen/parley/v1/completion_pb.js";

/** Largest value of the contract's counters. */
const MAX_TOKENS = 0x7fffffff;

type Detail = Exclude<
  { [Key in keyof Usage]: Usage[Key] extends number | undefined ? Key : never }[keyof Usage],
  undefined | "promptTokens" | "completionTokens" | "totalTokens"
>;

/** Token counts. An undefined detail was not reported. */
export type TokenCounts = { readonly promptTokens: number; readonly completionTokens: number } & {
  readonly [Key in Detail]?: number | undefined;
};

const DETAILS = [
  "cachedTokens",
  "cacheWriteTokens",
  "reasoningTokens",
  "promptAudioTokens",
  "promptImageTokens",
  "completionAudioTokens",
  "completionImageTokens",
  "acceptedPredictionTokens",
  "rejectedPredictionTokens",
] as const satisfies readonly Detail[];

/** Converts the counts to usage: adds the total and caps each count at MAX_TOKENS. */
export function toUsage(counts: TokenCounts): Usage {
  const promptTokens = bounded(counts.promptTokens);
  const completionTokens = bounded(counts.completionTokens);
  const totalTokens = bounded(promptTokens + completionTokens);
  const usage: Usage = { $typeName: "parley.v1.Usage", promptTokens, completionTokens, totalTokens };
  for (const name of DETAILS) {
    const tokens = counts[name];
    if (tokens !== undefined) usage[name] = bounded(tokens);
  }
  return usage;
}

function bounded(tokens: number): number {
  return Math.min(tokens, MAX_TOKENS);
}
