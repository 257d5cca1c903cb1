import type { ToolUses } from "../../core/fees.ts";
import type { NativeTool } from "../../core/native-tools.ts";
import { ToolUsesBuilder } from "../wire/tool-uses.ts";
import type { OpenAiRequest } from "./wire.ts";

/**
 * Uses of the provider's tools that a request may cause: searches, which nothing bounds and OpenAI does not count, and tools of single
 * hosts. `inParts`: tools within native parts.
 */
export function toolUsesOf(
  { web_search_options, tools = [] }: OpenAiRequest,
  inParts: readonly NativeTool[],
): ToolUses | undefined {
  const uses = new ToolUsesBuilder();
  if (web_search_options !== undefined) uses.addUncounted("webSearches");
  for (const { type } of [...tools, ...inParts])
    if (type !== "function" && type !== "custom") uses.addUnknown(String(type));
  return uses.build();
}
