import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { isObject, type Json, object, restOf, usageCount } from "../wire/json.ts";
import { toUsage } from "../wire/token-usage.ts";
import { withStatedCost } from "../wire/stated-cost.ts";
import { COSTS, unknownUnits } from "../wire/unknown-units.ts";

/** Counts that are read, sums of other counts, and costs. */
const KNOWN: ReadonlySet<string> = new Set([
  "input_tokens",
  "output_tokens",
  "total_tokens",
  "input_tokens_details.cached_tokens",
  "input_tokens_details.cache_write_tokens",
  // One level deeper are its parts by their lifetime.
  "input_tokens_details.cache_write_tokens_details",
  "output_tokens_details.reasoning_tokens",
  // xAI: sums, sources without a price, counts of the last turn, and tools with a unit here. It bills its other tools by name.
  "num_server_side_tools_used",
  "num_sources_used",
  "context_details",
  "server_side_tool_usage_details.web_search_calls",
  "server_side_tool_usage_details.file_search_calls",
  "server_side_tool_usage_details.code_interpreter_calls",
  ...COSTS,
]);

/** As KNOWN, for the counts of the tools that the provider runs itself. */
const KNOWN_OF_TOOLS: ReadonlySet<string> = new Set([
  "image_gen.input_tokens",
  "image_gen.output_tokens",
  "image_gen.total_tokens",
  "image_gen.cached_tokens",
  "image_gen.input_tokens_details",
  "image_gen.output_tokens_details",
  "image_gen.cached_tokens_details",
  "web_search.num_requests",
]);

/** Uses of the provider's tools that the answer itself shows. */
export interface ToolWork {
  readonly webSearches: number;
  readonly fileSearches: number;
  /** Containers in which code ran. */
  readonly containers: number;
  /** Whether it made pictures. */
  readonly drew: boolean;
}

/**
 * Reads the usage; undefined without one. Input tokens include cached ones, output tokens include reasoning, which some servers count
 * apart or only in the total. `ofTools` has the service's counts for its own tools, outside of `value`: the tokens of pictures, which are
 * added, and the searches that it bills. Source: `Response.ToolUsage` of the official SDK. Other uses of tools are counted in the answer,
 * unless the usage counts them: OpenAI bills containers for code, xAI each execution ("Pricing" of both), and xAI opened pages as
 * searches ("Tool Usage Details", November 2026).
 */
export function readUsage(value: unknown, ofTools: unknown, work: ToolWork): Usage | undefined {
  if (!isObject(value)) return undefined;
  const input = usageCount(value["input_tokens"]);
  const output = usageCount(value["output_tokens"]);
  if (input === undefined && output === undefined) return undefined;
  const ofInput = object(value["input_tokens_details"]);
  const total = usageCount(value["total_tokens"]);
  const reasoning = usageCount(object(value["output_tokens_details"])["reasoning_tokens"]);
  const tools = object(ofTools);
  const pictures = readPictures(object(tools["image_gen"]));
  const ofServer = object(value["server_side_tool_usage_details"]);
  const counts = {
    inputTokens: (input ?? 0) + pictures.input,
    outputTokens: Math.max(output ?? 0, restOf(total, input) ?? 0, reasoning ?? 0) + pictures.output,
    cachedInputTokens: plus(usageCount(ofInput["cached_tokens"]), pictures.cached),
    cacheWriteInputTokens: usageCount(ofInput["cache_write_tokens"]),
    cacheWriteHourInputTokens: usageCount(object(ofInput["cache_write_tokens_details"])["ttl_12h_tokens"]),
    reasoningOutputTokens: reasoning,
    webSearches: aboveZero(
      usageCount(object(tools["web_search"])["num_requests"]) ??
        usageCount(ofServer["web_search_calls"]) ??
        work.webSearches,
    ),
    fileSearches: aboveZero(usageCount(ofServer["file_search_calls"]) ?? work.fileSearches),
    codeExecutions: aboveZero(usageCount(ofServer["code_interpreter_calls"]) ?? work.containers),
    imageInputTokens: pictures.imageInput,
    imageOutputTokens: pictures.output > 0 ? pictures.imageOutput : undefined,
    cachedImageInputTokens: pictures.cachedImage,
  };
  // Pictures without counted tokens have an unknown price.
  const unpaid = work.drew && pictures.output === 0 ? ["image_generation_call"] : [];
  const units = [...unknownUnits(value, KNOWN), ...unknownUnits(tools, KNOWN_OF_TOOLS), ...unpaid];
  return withStatedCost(toUsage(counts, units), value);
}

const aboveZero = (uses: number): number | undefined => (uses > 0 ? uses : undefined);

/** Counts of the image model. Its output counts as pictures, unless its details say otherwise. */
function readPictures(counts: Json) {
  const output = usageCount(counts["output_tokens"]) ?? 0;
  return {
    input: usageCount(counts["input_tokens"]) ?? 0,
    output,
    imageInput: usageCount(object(counts["input_tokens_details"])["image_tokens"]),
    imageOutput: usageCount(object(counts["output_tokens_details"])["image_tokens"]) ?? output,
    cached: usageCount(counts["cached_tokens"]),
    cachedImage: usageCount(object(counts["cached_tokens_details"])["cached_image_tokens"]),
  };
}

const plus = (one: number | undefined, other: number | undefined): number | undefined =>
  one === undefined ? other : one + (other ?? 0);
