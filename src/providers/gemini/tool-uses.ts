import type { ToolUses } from "../../core/fees.ts";
import type { NativeTool } from "../../core/native-tools.ts";
import { array, isObject, object } from "../wire/json.ts";
import { ToolUsesBuilder } from "../wire/tool-uses.ts";

/**
 * Fields of tools that cost only tokens, and below, fields of searches, whose number nothing bounds. Source: ai.google.dev, "Gemini
 * Developer API pricing", November 2026. The API reads names in both spellings.
 */
const FREE: ReadonlySet<string> = new Set([
  "functiondeclarations",
  "codeexecution",
  "urlcontext",
  "computeruse",
  "filesearch",
]);
const SEARCHES: ReadonlySet<string> = new Set(["googlesearch", "googlesearchretrieval", "enterprisewebsearch"]);

/**
 * Uses of the provider's tools that a request may cause: tools in its body, and `inParts`, tools within its native parts. A cached
 * content may have further tools.
 */
export function toolUsesOf(
  body: { readonly tools?: unknown; readonly cachedContent?: unknown },
  inParts: readonly NativeTool[],
): ToolUses | undefined {
  const uses = new ToolUsesBuilder();
  for (const tool of [...array(body.tools), ...inParts]) {
    if (!isObject(tool)) continue;
    for (const name of Object.keys(object(tool))) {
      const plain = name.replaceAll("_", "").toLowerCase();
      if (SEARCHES.has(plain)) uses.add("webSearches", Infinity);
      else if (!FREE.has(plain)) uses.addUnknown(name);
    }
  }
  if (body.cachedContent !== undefined || "cached_content" in body) uses.addUnknown("cachedContent");
  return uses.build();
}
