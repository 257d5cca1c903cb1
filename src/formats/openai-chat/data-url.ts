/** What a data URL holds. */
export interface DataUrl {
  readonly mediaType: string;
  readonly data: Buffer;
}

/** The media types whose first bytes are told apart: what a picture is, not what it is called. */
const MAGIC: readonly (readonly [mediaType: string, offset: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"],
  ["application/pdf", 0, "%PDF-"],
];

/**
 * Reads a base64 data URL; undefined when it is not one. Letter case, parameters and line breaks are tolerated, wrong
 * base64 is not. The media type is told by the first bytes where they say it: clients often guess it wrong, and
 * providers refuse a wrong one.
 */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(",");
  if (comma < 0 || url.slice(0, 5).toLowerCase() !== "data:") return undefined;
  const [declared = "", ...parameters] = url.slice(5, comma).toLowerCase().split(";");
  if (!parameters.some((parameter) => parameter.trim() === "base64")) return undefined;
  const data = readBase64(url.slice(comma + 1));
  return data && { mediaType: sniff(data) ?? declared.trim(), data };
}

/** Decodes base64, with or without padding and line breaks; undefined when it is something else, or empty. */
export function readBase64(text: string): Buffer | undefined {
  const packed = /\s/.test(text) ? text.replace(/\s+/g, "") : text;
  const digits = packed.endsWith("==") ? packed.length - 2 : packed.endsWith("=") ? packed.length - 1 : packed.length;
  const data = Buffer.from(packed, "base64");
  // Node's decoder skips what it does not know: then the length tells.
  return digits > 0 && digits % 4 !== 1 && data.length === Math.floor((digits * 3) / 4) ? data : undefined;
}

function sniff(data: Buffer): string | undefined {
  return MAGIC.find(([, offset, bytes]) => data.toString("latin1", offset, offset + bytes.length) === bytes)?.[0];
}
