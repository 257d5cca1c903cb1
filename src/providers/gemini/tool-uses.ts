import type { ToolUses } from "../../core/fees.ts";
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

/** What the provider's tools in a body may be used for. A cached content may have tools of its own. */
export function toolUsesOf(body: { readonly tools?: unknown; readonly cachedContent?: unknown }): ToolUses | undefined {
  const uses = new ToolUsesBuilder();
  for (const tool of array(body.tools)) {
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
