import type { Citation } from "../../../gen/parley/v1/message_pb.js";
import { count, type Json, string } from "../wire/json.ts";
import { toNativeCitation } from "../wire/native-words.ts";
import { toTextRange } from "../wire/openai-content.ts";
import { DIALECT } from "./parts.ts";

/** Converts an annotation. Without a URL it becomes native, because only callers of the dialect can know the provider's files. */
export function toCitation(annotation: Json): Citation | undefined {
  const { type, url, title, start_index: start, end_index: end } = annotation;
  if (type !== "url_citation" || string(url) === "") return toNativeCitation(DIALECT, annotation);
  const textRange = toTextRange(count(start), count(end));
  const source = { case: "url", value: string(url) } as const;
  const citation: Citation = { $typeName: "parley.v1.Citation", source, title: string(title), citedText: "" };
  return textRange === undefined ? citation : { ...citation, textRange };
}
