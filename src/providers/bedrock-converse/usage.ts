import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { array, count, object } from "../wire/json.ts";
import { toUsage } from "../wire/response.ts";
import { unknownUnits } from "../wire/unknown-units.ts";

/** Counts that are read, and those that say the same under other names. */
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
  const input = count(usage["inputTokens"]);
  const output = count(usage["outputTokens"]);
  if (input === undefined && output === undefined) return undefined;
  const cachedInputTokens = count(usage["cacheReadInputTokens"]) ?? 0;
  const cacheWriteInputTokens = count(usage["cacheWriteInputTokens"]) ?? 0;
  const hour = array(usage["cacheDetails"])
    .map(object)
    .find(({ ttl }) => ttl === "1h");
  const counts = {
    inputTokens: (input ?? 0) + cachedInputTokens + cacheWriteInputTokens,
    outputTokens: output ?? 0,
    cachedInputTokens,
    cacheWriteInputTokens,
    cacheWriteHourInputTokens: hour && count(hour["inputTokens"]),
  };
  return toUsage(counts, unknownUnits(usage, KNOWN));
}
