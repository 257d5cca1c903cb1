import type { Citation } from "../../../gen/parley/v1/message_pb.js";
import { count, type Json, string } from "../wire/json.ts";
import { toTextRange } from "../wire/openai-content.ts";

/** Converts an annotation; undefined for one without an address: the caller knows no files of the provider. */
export function toCitation({ type, url, title, start_index: start, end_index: end }: Json): Citation | undefined {
  if (type !== "url_citation" || string(url) === "") return undefined;
  const textRange = toTextRange(count(start), count(end));
  const source = { case: "url", value: string(url) } as const;
  const citation: Citation = { $typeName: "parley.v1.Citation", source, title: string(title), citedText: "" };
  return textRange === undefined ? citation : { ...citation, textRange };
}
