const MAX_NAME_CHARS = 200;

/**
 * Names of the documents of one request. The provider accepts letters, digits, single spaces, hyphens, parentheses and brackets, and
 * requires unique names. Source: `DocumentBlock` of its API reference.
 */
export class DocumentNames {
  readonly #taken = new Set<string>();

  /** A unique name for a document, without its extension. */
  take(name: string): string {
    const stem = name
      .replace(/\.[A-Za-z0-9]{1,5}$/, "")
      .replace(/[^A-Za-z0-9()[\]-]+/g, " ")
      .trim()
      .slice(0, MAX_NAME_CHARS)
      .trim();
    const plain = stem === "" ? "document" : stem;
    let unique = plain;
    for (let number = 2; this.#taken.has(unique); number++) unique = `${plain} (${number})`;
    this.#taken.add(unique);
    return unique;
  }
}

/** Formats of documents by their media type. */
const FORMATS: ReadonlyMap<string, string> = new Map([
  ["application/pdf", "pdf"],
  ["text/csv", "csv"],
  ["application/msword", "doc"],
  ["application/vnd.openxmlformats-officedocument.wordprocessingml.document", "docx"],
  ["application/vnd.ms-excel", "xls"],
  ["application/vnd.openxmlformats-officedocument.spreadsheetml.sheet", "xlsx"],
  ["text/html", "html"],
  ["text/plain", "txt"],
  ["text/markdown", "md"],
]);

const EXTENSIONS: ReadonlySet<string> = new Set(FORMATS.values());

/** The provider's format of a document, by its media type or the extension of its name; undefined for an unsupported one. */
export function toDocumentFormat(mediaType: string, name: string): string | undefined {
  const known = FORMATS.get(mediaType.split(";", 1)[0]!.trim().toLowerCase());
  if (known !== undefined) return known;
  const extension = /\.([A-Za-z]{2,4})$/.exec(name)?.[1]?.toLowerCase() ?? "";
  if (EXTENSIONS.has(extension)) return extension;
  return /^text\//i.test(mediaType) ? "txt" : undefined;
}
