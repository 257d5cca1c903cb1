import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { array, object, usageCount } from "../wire/json.ts";
import { toUsage } from "../wire/token-usage.ts";
import { unknownUnits } from "../wire/unknown-units.ts";

/** Counts that are read, and counts that repeat them under other names. */
const KNOWN: ReadonlySet<string> = new Set([
  "inputTokens",
  "outputTokens",
  "totalTokens",
  "cacheReadInputTokens",
  "cacheReadInputTokenCount",
  "cacheWriteInputTokens",
  "cacheWriteInputTokenCount",
  "cacheDetails",
]);

/** Converts `usage`; undefined if it counts nothing. The provider's input excludes cached tokens, ours includes them. */
export function readUsage(value: unknown): Usage | undefined {
  const usage = object(value);
  const input = usageCount(usage["inputTokens"]);
  const output = usageCount(usage["outputTokens"]);
  if (input === undefined && output === undefined) return undefined;
  const cachedInputTokens = usageCount(usage["cacheReadInputTokens"]) ?? 0;
  const cacheWriteInputTokens = usageCount(usage["cacheWriteInputTokens"]) ?? 0;
  const hours = array(usage["cacheDetails"])
    .map(object)
    .filter(({ ttl }) => ttl === "1h");
  const counts = {
    inputTokens: (input ?? 0) + cachedInputTokens + cacheWriteInputTokens,
    outputTokens: output ?? 0,
    cachedInputTokens,
    cacheWriteInputTokens,
    cacheWriteHourInputTokens:
      hours.length === 0 ? undefined : sumOf(hours.map(({ inputTokens }) => usageCount(inputTokens))),
  };
  return toUsage(counts, unknownUnits(usage, KNOWN));
}

const sumOf = (counts: readonly (number | undefined)[]): number =>
  counts.reduce<number>((sum, one) => sum + (one ?? 0), 0);
