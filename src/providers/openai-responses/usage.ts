import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { count, isObject, object } from "../wire/json.ts";
import { toUsage } from "../wire/response.ts";

/** Reads the usage; undefined without one. Input tokens include cached ones, output tokens include reasoning. */
export function readUsage(value: unknown, webSearches: number): Usage | undefined {
  if (!isObject(value)) return undefined;
  const input = count(value["input_tokens"]);
  const output = count(value["output_tokens"]);
  if (input === undefined && output === undefined) return undefined;
  const ofInput = object(value["input_tokens_details"]);
  const ofOutput = object(value["output_tokens_details"]);
  return toUsage({
    inputTokens: input ?? 0,
    outputTokens: output ?? 0,
    cachedInputTokens: count(ofInput["cached_tokens"]),
    cacheWriteInputTokens: count(ofInput["cache_write_tokens"]),
    cacheWriteHourInputTokens: count(object(ofInput["cache_write_tokens_details"])["ttl_12h_tokens"]),
    reasoningOutputTokens: count(ofOutput["reasoning_tokens"]),
    webSearches: webSearches > 0 ? webSearches : undefined,
  });
}
