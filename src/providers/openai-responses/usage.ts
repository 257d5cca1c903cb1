import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { count, isObject, object } from "../wire/json.ts";
import { toUsage } from "../wire/response.ts";
import { unknownUnits } from "../wire/unknown-units.ts";

/** Counts that are read, and sums of others. */
const KNOWN: ReadonlySet<string> = new Set([
  "input_tokens",
  "output_tokens",
  "total_tokens",
  "input_tokens_details.cached_tokens",
  "input_tokens_details.cache_write_tokens",
  // One level deeper are its parts by their lifetime.
  "input_tokens_details.cache_write_tokens_details",
  "output_tokens_details.reasoning_tokens",
]);

/** Reads the usage; undefined without one. Input tokens include cached ones, output tokens include reasoning. */
export function readUsage(value: unknown, webSearches: number): Usage | undefined {
  if (!isObject(value)) return undefined;
  const input = count(value["input_tokens"]);
  const output = count(value["output_tokens"]);
  if (input === undefined && output === undefined) return undefined;
  const ofInput = object(value["input_tokens_details"]);
  const ofOutput = object(value["output_tokens_details"]);
  const counts = {
    inputTokens: input ?? 0,
    outputTokens: output ?? 0,
    cachedInputTokens: count(ofInput["cached_tokens"]),
    cacheWriteInputTokens: count(ofInput["cache_write_tokens"]),
    cacheWriteHourInputTokens: count(object(ofInput["cache_write_tokens_details"])["ttl_12h_tokens"]),
    reasoningOutputTokens: count(ofOutput["reasoning_tokens"]),
    webSearches: webSearches > 0 ? webSearches : undefined,
  };
  return toUsage(counts, unknownUnits(value, KNOWN));
}
