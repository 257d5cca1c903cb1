import type { ToolUses } from "../../core/fees.ts";
import type { NativeTool } from "../../core/native-tools.ts";
import { array, count, object, string } from "../wire/json.ts";
import { ToolUsesBuilder } from "../wire/tool-uses.ts";

/**
 * Prefixes of the types of tools that the caller runs, or that cost only tokens. Source: platform.claude.com, "Pricing", November
 * 2026. Code execution is not among them: its containers are billed by the hour, and an answer's usage does not count them.
 */
const FREE = [
  "custom",
  "bash_",
  "text_editor_",
  "computer_",
  "memory_",
  "web_fetch_",
  "tool_search_tool_",
  "mcp_toolset",
];

/**
 * Uses of the provider's tools that a request may cause: tools in its body, and `inParts`, tools within its native blocks. A search
 * has a fee, and `max_uses` bounds the number of searches in one request.
 */
export function toolUsesOf(
  { tools }: { readonly tools?: unknown },
  inParts: readonly NativeTool[],
): ToolUses | undefined {
  const uses = new ToolUsesBuilder();
  for (const tool of [...array(tools), ...inParts]) {
    const { type, max_uses: most } = object(tool);
    const name = string(type);
    if (name === "" || FREE.some((beginning) => name.startsWith(beginning))) continue;
    // 0 is no bound: a server may read it as none was set.
    if (name.startsWith("web_search_")) uses.add("webSearches", count(most) || Infinity);
    else uses.addUnknown(name);
  }
  return uses.build();
}
