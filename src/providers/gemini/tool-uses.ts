import type { ToolUses } from "../../core/fees.ts";
import type { NativeTool } from "../../core/native-tools.ts";
import { array, isObject, object } from "../wire/json.ts";
import { ToolUsesBuilder } from "../wire/tool-uses.ts";

/**
 * Fields of a tool that cost nothing but tokens, and those of searches, of which nothing bounds the number. Source: ai.google.dev,
 * "Gemini Developer API pricing", November 2026. The API reads names in both spellings.
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
 * What the provider's tools of a request may be used for: those of its body, and `inParts`, those within its native parts. A cached
 * content may have tools of its own.
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
