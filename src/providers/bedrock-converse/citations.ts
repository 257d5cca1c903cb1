import { type Citation, type DocumentRange, DocumentUnit } from "../../../gen/parley/v1/message_pb.js";
import { array, type Json, number, object, string } from "../wire/json.ts";

/** Units of a place in a document, by the name of a location. */
const UNITS: Readonly<Record<string, DocumentUnit>> = {
  documentChar: DocumentUnit.CHARACTERS,
  documentPage: DocumentUnit.PAGES,
  documentChunk: DocumentUnit.BLOCKS,
};

/** Converts a citation. Undefined without a source that the caller knows. */
export function toCitation(citation: Json): Citation | undefined {
  const location = object(citation["location"]);
  const title = string(citation["title"]);
  const citedText = array(citation["sourceContent"])
    .map((each) => string(object(each)["text"]))
    .join("");
  const url = string(object(location["web"])["url"]);
  if (url !== "") return { $typeName: "parley.v1.Citation", source: { case: "url", value: url }, title, citedText };
  const [name, unit] = Object.entries(UNITS).find(([each]) => location[each] !== undefined) ?? [];
  if (name === undefined || unit === undefined) return undefined;
  const { documentIndex, start, end } = object(location[name]);
  const value: DocumentRange = {
    $typeName: "parley.v1.DocumentRange",
    documentIndex: toIndex(documentIndex),
    unit,
    start: toIndex(start),
    end: toIndex(end),
  };
  return { $typeName: "parley.v1.Citation", source: { case: "document", value }, title, citedText };
}

/** An index that an int32 holds; 0 for anything else. */
function toIndex(value: unknown): number {
  const index = number(value) ?? 0;
  return Number.isInteger(index) && index >= 0 && index <= 0x7fff_ffff ? index : 0;
}
