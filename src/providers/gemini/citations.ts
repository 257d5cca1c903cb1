import type { Citation, TextRange } from "../../../gen/parley/v1/message_pb.js";
import { MAX_CITATIONS } from "../../core/chunks.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";

/** Limit of the kept UTF-16 units of a text. Citations beyond it are not converted. */
const MAX_TEXT_UNITS = 256 * 1024;

/**
 * Converts the citations of one text part. They arrive after the text, with positions in bytes of UTF-8, so the text is kept until then.
 */
export class CitedText {
  #text = "";

  /** Begins another text part. */
  restart(): void {
    this.#text = "";
  }

  append(text: string): void {
    if (this.#text.length < MAX_TEXT_UNITS) this.#text += text.slice(0, MAX_TEXT_UNITS - this.#text.length);
  }

  /** Converts `groundingMetadata`: a citation for each web source of each segment of the text. */
  toCitations({ groundingChunks, groundingSupports }: Json): Citation[] {
    const supports = array(groundingSupports).map(object);
    if (supports.length === 0) return [];
    const sources = array(groundingChunks).map((chunk) => object(object(chunk)["web"]));
    const bytes = Buffer.from(this.#text);
    const places = toCodePointIndexes(bytes);
    const citations: Citation[] = [];
    for (const support of supports) {
      const textRange = toTextRange(object(support["segment"]), bytes, places);
      if (textRange === undefined) continue;
      for (const index of array(support["groundingChunkIndices"])) {
        const { uri, title } = object(sources[count(index) ?? -1]);
        if (string(uri) === "") continue;
        if (citations.length === MAX_CITATIONS) return citations;
        const source = { case: "url", value: string(uri) } as const;
        citations.push({ $typeName: "parley.v1.Citation", source, title: string(title), citedText: "", textRange });
      }
    }
    return citations;
  }
}

/** Converts a segment to code points. Undefined when it is not in the text: it may belong to another text part. */
function toTextRange(segment: Json, bytes: Buffer, places: Uint32Array): TextRange | undefined {
  // The provider leaves out zeros.
  const from = count(segment["startIndex"]) ?? 0;
  const to = count(segment["endIndex"]) ?? 0;
  if (to <= from || to > bytes.length) return undefined;
  const text = string(segment["text"]);
  if (text !== "" && !Buffer.from(text).equals(bytes.subarray(from, to))) return undefined;
  return { $typeName: "parley.v1.TextRange", start: places[from]!, end: places[to]! };
}

/** The number of code points before each byte, and at the end. */
function toCodePointIndexes(utf8: Uint8Array): Uint32Array {
  const indexes = new Uint32Array(utf8.length + 1);
  let points = 0;
  utf8.forEach((byte, at) => {
    indexes[at] = points;
    if (byte >> 6 !== 0b10) points += 1;
  });
  indexes[utf8.length] = points;
  return indexes;
}
