import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { array, type Json, object, string, usageCount } from "../wire/json.ts";
import { toUsage } from "../wire/token-usage.ts";
import { unknownUnits } from "../wire/unknown-units.ts";

/** Counts that are read, and counts that are not billed (platform.claude.com, "Web fetch tool": no charge). */
const KNOWN: ReadonlySet<string> = new Set([
  "input_tokens",
  "cache_creation_input_tokens",
  "cache_read_input_tokens",
  "output_tokens",
  "cache_creation.ephemeral_5m_input_tokens",
  "cache_creation.ephemeral_1h_input_tokens",
  "output_tokens_details.thinking_tokens",
  "server_tool_use.web_search_requests",
  "server_tool_use.web_fetch_requests",
  "iterations",
]);

/**
 * Type of an entry of `iterations` whose tokens are not in the other counts: the model summarized the conversation before it
 * answered (platform.claude.com, "Compaction"). Types other than this and `message` are billed at the prices of other models.
 */
const COMPACTION = "compaction";
/** The provider's token counts. They are cumulative: a later value replaces an earlier one, null keeps it. */
export class UsageCount {
  #input: number | undefined;
  #cacheWrite: number | undefined;
  #cacheWriteHour: number | undefined;
  #cacheRead: number | undefined;
  #output: number | undefined;
  #reasoning: number | undefined;
  #webSearches: number | undefined;
  #compactions: readonly Json[] = [];
  #unknown: string[] = [];

  /** Applies a `usage` object. */
  update(value: unknown): void {
    const usage = object(value);
    this.#input = usageCount(usage["input_tokens"]) ?? this.#input;
    this.#cacheWrite = usageCount(usage["cache_creation_input_tokens"]) ?? this.#cacheWrite;
    this.#cacheWriteHour = hourOf(usage) ?? this.#cacheWriteHour;
    this.#cacheRead = usageCount(usage["cache_read_input_tokens"]) ?? this.#cacheRead;
    this.#output = usageCount(usage["output_tokens"]) ?? this.#output;
    this.#reasoning = usageCount(object(usage["output_tokens_details"])["thinking_tokens"]) ?? this.#reasoning;
    this.#webSearches = usageCount(object(usage["server_tool_use"])["web_search_requests"]) ?? this.#webSearches;
    const iterations = array(usage["iterations"]).map(object);
    if (iterations.length > 0) this.#compactions = iterations.filter(({ type }) => type === COMPACTION);
    const others = iterations
      .map(({ type }) => string(type))
      .filter((type) => type !== COMPACTION && type !== "message");
    const unknown = [
      ...unknownUnits(usage, KNOWN),
      ...new Set(others.map((type) => `iterations.${type}`.slice(0, 64))),
    ];
    if (unknown.length > 0) this.#unknown = unknown.slice(0, 16);
  }

  /** Returns the latest counts; undefined if there are none. The provider's input excludes cached tokens, ours includes them. */
  total(): Usage | undefined {
    if (this.#input === undefined && this.#output === undefined) return undefined;
    const all = (own: number | undefined, countOf: (usage: Json) => number | undefined): number =>
      this.#compactions.reduce((sum, compaction) => sum + (countOf(compaction) ?? 0), own ?? 0);
    const allOf = (own: number | undefined, name: string): number => all(own, (usage) => usageCount(usage[name]));
    const cachedInputTokens = allOf(this.#cacheRead, "cache_read_input_tokens");
    const cacheWriteInputTokens = allOf(this.#cacheWrite, "cache_creation_input_tokens");
    const counts = {
      inputTokens: allOf(this.#input, "input_tokens") + cachedInputTokens + cacheWriteInputTokens,
      outputTokens: allOf(this.#output, "output_tokens"),
      cachedInputTokens,
      cacheWriteInputTokens,
      cacheWriteHourInputTokens: this.#cacheWriteHour === undefined ? undefined : all(this.#cacheWriteHour, hourOf),
      webSearches: this.#webSearches,
      reasoningOutputTokens: this.#reasoning ?? 0,
    };
    return toUsage(counts, this.#unknown);
  }
}

/** Tokens that were written to the cache for an hour. */
const hourOf = (usage: Json): number | undefined =>
  usageCount(object(usage["cache_creation"])["ephemeral_1h_input_tokens"]);
