import type { FeeUnit, ToolUses } from "../../core/fees.ts";
import { type NativeTool, toolsWithin } from "../../core/native-tools.ts";
import { count, object, string } from "../wire/json.ts";
import { ToolUsesBuilder } from "../wire/tool-uses.ts";

/**
 * Native tools that the caller runs, or that cost only tokens. Source: OpenAI's price list and API reference ("Create a model
 * response"), November 2026.
 */
const FREE: ReadonlySet<string> = new Set([
  "tool_search",
  "mcp",
  "local_shell",
  "apply_patch",
  "computer",
  "computer_use_preview",
]);

/** The tool that makes pictures with another model. Its tokens are counted at the prices of this model, which may have none for pictures. */
const PICTURES = "image_generation";

const UNITS: Readonly<Record<string, FeeUnit>> = {
  file_search: "fileSearches",
  code_interpreter: "codeExecutions",
};

/** Memory of containers by default. */
const SMALLEST = "1g";

/** Whether a tool asks for a container with more memory than usual, which costs a multiple: OpenAI's with 64 GB costs 64 times as much. */
function hasLargeContainer({ container }: NativeTool): boolean {
  return (object(container)["memory_limit"] ?? SMALLEST) !== SMALLEST;
}

/** The fields of a body that may contain tools. */
interface ToolFields {
  readonly tools?: unknown;
  readonly input?: unknown;
  readonly prompt?: unknown;
  readonly max_tool_calls?: unknown;
}

/**
 * Uses of the provider's tools that a body may cause. `max_tool_calls` bounds all of them together. Items, such as the output of a tool
 * search, and a stored prompt may contain further tools. `pricesPictures`: whether the price of the model covers pictures; default: yes.
 */
export function toolUsesOf(
  { tools, input, prompt, max_tool_calls: given }: ToolFields,
  { pricesPictures = true }: { readonly pricesPictures?: boolean } = {},
): ToolUses | undefined {
  // 0 is no bound: a server may read it as none was set.
  const most = count(given) || Infinity;
  const uses = new ToolUsesBuilder();
  const units = new Set<FeeUnit>();
  for (const tool of toolsWithin({ tools, items: input })) {
    const type = string(tool["type"]);
    const unit = type.startsWith("web_search") ? "webSearches" : Object.hasOwn(UNITS, type) ? UNITS[type] : undefined;
    if (hasLargeContainer(tool)) uses.addUnknown(`${type} with memory_limit`);
    else if (unit !== undefined) units.add(unit);
    else if (type === PICTURES ? !pricesPictures : !FREE.has(type) && type !== "") uses.addUnknown(type);
  }
  for (const unit of units) uses.add(unit, most);
  if (prompt !== undefined && prompt !== null) uses.addUnknown("prompt");
  return uses.build();
}
