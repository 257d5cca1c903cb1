import { type Citation, type DocumentRange, DocumentUnit } from "../../../gen/parley/v1/message_pb.js";
import { type Json, number, string } from "../wire/json.ts";
import { toNativeCitation } from "../wire/native-words.ts";

/** Units of a place in a document, by the type of a citation: with the names of its first and last index. */
const RANGES: Readonly<Record<string, readonly [unit: DocumentUnit, start: string, end: string]>> = {
  char_location: [DocumentUnit.CHARACTERS, "start_char_index", "end_char_index"],
  page_location: [DocumentUnit.PAGES, "start_page_number", "end_page_number"],
  content_block_location: [DocumentUnit.BLOCKS, "start_block_index", "end_block_index"],
};

/**
 * Converts a citation of a text block. It has no range, because the provider splits an answer so that a citation covers the whole
 * text of its block. A citation of another type becomes native. Undefined without a citation.
 */
export function toCitation(citation: Json): Citation | undefined {
  const citedText = string(citation["cited_text"]);
  if (citation["type"] === "web_search_result_location") {
    const url = string(citation["url"]);
    if (url === "") return toNativeCitation("anthropic", citation);
    const source = { case: "url", value: url } as const;
    return { $typeName: "parley.v1.Citation", source, title: string(citation["title"]), citedText };
  }
  const range = Object.hasOwn(RANGES, string(citation["type"])) ? RANGES[string(citation["type"])] : undefined;
  if (range === undefined) return toNativeCitation("anthropic", citation);
  const [unit, start, end] = range;
  const document: DocumentRange = {
    $typeName: "parley.v1.DocumentRange",
    documentIndex: toIndex(citation["document_index"]),
    unit,
    start: toIndex(citation[start]),
    end: toIndex(citation[end]),
  };
  const title = string(citation["document_title"]);
  return { $typeName: "parley.v1.Citation", source: { case: "document", value: document }, title, citedText };
}

/** An index that an int32 holds; 0 for anything else. */
function toIndex(value: unknown): number {
  const index = number(value) ?? 0;
  return Number.isInteger(index) && index >= 0 && index <= 0x7fff_ffff ? index : 0;
}
