import type { ToolUses } from "../../core/fees.ts";
import { ToolUsesBuilder } from "../wire/tool-uses.ts";
import type { OpenAiRequest } from "./wire.ts";

/**
 * What the provider's tools in a body may be used for: searches, which nothing bounds and OpenAI does not count, and tools of single hosts.
 */
export function toolUsesOf({ web_search_options, tools = [] }: OpenAiRequest): ToolUses | undefined {
  const uses = new ToolUsesBuilder();
  if (web_search_options !== undefined) uses.addUncounted("webSearches");
  for (const { type } of tools) if (type !== "function" && type !== "custom") uses.addUnknown(String(type));
  return uses.build();
}
