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

/** Limit of characters before the comma. 30 million semicolons there took six seconds and a gigabyte. */
const MAX_HEAD_CHARS = 1024;

/**
 * Parses a base64 data URL; undefined for anything else. Accepts any letter case, parameters and line breaks, but no invalid
 * base64. Detects the media type by the first bytes where possible: clients often send a wrong one, which providers refuse.
 */
export function readDataUrl(url: string): DataUrl | undefined {
  const comma = url.indexOf(",");
  if (comma < 0 || comma > MAX_HEAD_CHARS || url.slice(0, 5).toLowerCase() !== "data:") return undefined;
  const [declared = "", ...parameters] = url.slice(5, comma).toLowerCase().split(";");
  if (!parameters.some((parameter) => parameter.trim() === "base64")) return undefined;
  const data = readBase64(url.slice(comma + 1));
  return data && { mediaType: sniff(data) ?? declared.trim(), data };
}

const TAB = 0x09;
const RETURN = 0x0d;
const SPACE = 0x20;
const PAD = 0x3d;

/** Decodes base64, with or without padding and line breaks; undefined for invalid or empty input. */
export function readBase64(text: string): Buffer | undefined {
  const digits = /\s/.test(text)
    ? countDigits(text)
    : text.length - (text.endsWith("==") ? 2 : text.endsWith("=") ? 1 : 0);
  const data = Buffer.from(text, "base64");
  // Node's decoder skips invalid characters: the length differs then.
  return digits > 0 && digits % 4 !== 1 && data.length === Math.floor((digits * 3) / 4) ? data : undefined;
}

/** Number of characters without white space and padding. Removing the white space would take seconds if every other character is one. */
function countDigits(text: string): number {
  let count = 0;
  let pads = 0;
  for (let at = 0; at < text.length; at++) {
    const code = text.charCodeAt(at);
    if (code === SPACE || (code >= TAB && code <= RETURN)) continue;
    count += 1;
    pads = code === PAD ? pads + 1 : 0;
  }
  return count - Math.min(pads, 2);
}

/** The media type by the first bytes; undefined for an unknown one. */
export function sniff(data: Buffer): string | undefined {
  return MAGIC.find(([, offset, bytes]) => data.toString("latin1", offset, offset + bytes.length) === bytes)?.[0];
}
