import type { Usage } from "../../../gen/parley/v1/usage_pb.js";

/** Largest value of the contract's counters. */
const MAX_TOKENS = 0x7fffffff;

type Detail = Exclude<
  { [Key in keyof Usage]: Usage[Key] extends number | undefined ? Key : never }[keyof Usage],
  undefined | "inputTokens" | "outputTokens" | "totalTokens"
>;

/** Token counts. An undefined detail was not reported. */
type TokenCounts = { readonly inputTokens: number; readonly outputTokens: number } & {
  readonly [Key in Detail]?: number | undefined;
};

const DETAILS = [
  "cachedInputTokens",
  "cacheWriteInputTokens",
  "audioInputTokens",
  "imageInputTokens",
  "reasoningOutputTokens",
  "audioOutputTokens",
  "imageOutputTokens",
  "acceptedPredictionTokens",
  "rejectedPredictionTokens",
  "cacheWriteHourInputTokens",
  "cachedAudioInputTokens",
  "cachedImageInputTokens",
  "webSearches",
  "fileSearches",
  "codeExecutions",
] as const satisfies readonly Detail[];

/** Converts the counts to usage: adds the total and caps each count at MAX_TOKENS. */
export function toUsage(counts: TokenCounts, unknownUnits: string[] = []): Usage {
  const inputTokens = bounded(counts.inputTokens);
  const outputTokens = bounded(counts.outputTokens);
  const totalTokens = bounded(inputTokens + outputTokens);
  const usage: Usage = { $typeName: "parley.v1.Usage", inputTokens, outputTokens, totalTokens, unknownUnits };
  for (const name of DETAILS) {
    const tokens = counts[name];
    if (tokens !== undefined) usage[name] = bounded(tokens);
  }
  return usage;
}

function bounded(tokens: number): number {
  return Math.min(tokens, MAX_TOKENS);
}
