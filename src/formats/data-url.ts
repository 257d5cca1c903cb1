/** Content of a data URL. */
interface DataUrl {
  readonly mediaType: string;
  readonly data: Buffer;
}

/** Media types detected by their first bytes. */
const MAGIC: readonly (readonly [mediaType: string, offset: number, bytes: string])[] = [
  ["image/png", 0, "\x89PNG\r\n\x1a\n"],
  ["image/jpeg", 0, "\xff\xd8\xff"],
  ["image/gif", 0, "GIF8"],
  ["image/webp", 8, "WEBP"],
  ["application/pdf", 0, "%PDF-"],
];

/**
 * Parses a base64 data URL; undefined for anything else. Accepts any letter case, parameters and line breaks, but no invalid
 * base64. Detects the media type by the first bytes where possible: clients often send a wrong one, which providers refuse.
 */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(",");
  if (comma < 0 || url.slice(0, 5).toLowerCase() !== "data:") return undefined;
  const [declared = "", ...parameters] = url.slice(5, comma).toLowerCase().split(";");
  if (!parameters.some((parameter) => parameter.trim() === "base64")) return undefined;
  const data = readBase64(url.slice(comma + 1));
  return data && { mediaType: sniff(data) ?? declared.trim(), data };
}

/** Decodes base64, with or without padding and line breaks; undefined for invalid or empty input. */
export function readBase64(text: string): Buffer | undefined {
  const packed = /\s/.test(text) ? text.replace(/\s+/g, "") : text;
  const digits = packed.endsWith("==") ? packed.length - 2 : packed.endsWith("=") ? packed.length - 1 : packed.length;
  const data = Buffer.from(packed, "base64");
  // Node's decoder skips invalid characters: the length differs then.
  return digits > 0 && digits % 4 !== 1 && data.length === Math.floor((digits * 3) / 4) ? data : undefined;
}

/** The media type by the first bytes; undefined for one that is not known. */
export function sniff(data: Buffer): string | undefined {
  return MAGIC.find(([, offset, bytes]) => data.toString("latin1", offset, offset + bytes.length) === bytes)?.[0];
}
