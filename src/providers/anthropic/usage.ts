import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { count, object } from "../wire/json.ts";
import { toUsage } from "../wire/response.ts";
import { unknownUnits } from "../wire/unknown-units.ts";

/** Counts that are read, and those that are not billed (platform.claude.com, "Web fetch tool": no charge). */
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
]);

/** The provider's token counts. They are cumulative: a later value replaces an earlier one, null keeps it. */
export class UsageCount {
  #input: number | undefined;
  #cacheWrite: number | undefined;
  #cacheWriteHour: number | undefined;
  #cacheRead: number | undefined;
  #output: number | undefined;
  #reasoning: number | undefined;
  #webSearches: number | undefined;
  #unknown: string[] = [];

  /** Applies a `usage` object. */
  update(value: unknown): void {
    const usage = object(value);
    this.#input = count(usage["input_tokens"]) ?? this.#input;
    this.#cacheWrite = count(usage["cache_creation_input_tokens"]) ?? this.#cacheWrite;
    this.#cacheWriteHour = count(object(usage["cache_creation"])["ephemeral_1h_input_tokens"]) ?? this.#cacheWriteHour;
    this.#cacheRead = count(usage["cache_read_input_tokens"]) ?? this.#cacheRead;
    this.#output = count(usage["output_tokens"]) ?? this.#output;
    this.#reasoning = count(object(usage["output_tokens_details"])["thinking_tokens"]) ?? this.#reasoning;
    this.#webSearches = count(object(usage["server_tool_use"])["web_search_requests"]) ?? this.#webSearches;
    const unknown = unknownUnits(usage, KNOWN);
    if (unknown.length > 0) this.#unknown = unknown;
  }

  /** Returns the latest counts; undefined if there are none. The provider's input excludes cached tokens, ours includes them. */
  total(): Usage | undefined {
    if (this.#input === undefined && this.#output === undefined) return undefined;
    const cachedInputTokens = this.#cacheRead ?? 0;
    const cacheWriteInputTokens = this.#cacheWrite ?? 0;
    const counts = {
      inputTokens: (this.#input ?? 0) + cachedInputTokens + cacheWriteInputTokens,
      outputTokens: this.#output ?? 0,
      cachedInputTokens,
      cacheWriteInputTokens,
      cacheWriteHourInputTokens: this.#cacheWriteHour,
      webSearches: this.#webSearches,
      reasoningOutputTokens: this.#reasoning ?? 0,
    };
    return toUsage(counts, this.#unknown);
  }
}
