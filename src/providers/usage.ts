import { create } from "@bufbuild/protobuf";
import { type Usage, UsageSchema } from "../../gen/parley/v1/completion_pb.js";

/** Largest value of the contract's counters. */
const MAX_TOKENS = 0x7fffffff;

type Detail = Exclude<
  { [Key in keyof Usage]: Usage[Key] extends number | undefined ? Key : never }[keyof Usage],
  undefined | "promptTokens" | "completionTokens" | "totalTokens"
>;

/** Counts of tokens. A detail that is undefined was not counted. */
export type TokenCounts = { readonly promptTokens: number; readonly completionTokens: number } & {
  readonly [Key in Detail]?: number | undefined;
};

/** The counts as usage: with their total, and none larger than the contract can hold. */
export function toUsage(counts: TokenCounts): Usage {
  const usage = create(UsageSchema);
  for (const [name, tokens] of Object.entries(counts) as [keyof TokenCounts, number | undefined][])
    if (tokens !== undefined) usage[name] = Math.min(tokens, MAX_TOKENS);
  usage.totalTokens = Math.min(usage.promptTokens + usage.completionTokens, MAX_TOKENS);
  return usage;
}
