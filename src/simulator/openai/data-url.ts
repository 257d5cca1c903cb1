import { decodeBase64, measureImage } from "../image-input.ts";

/** The bytes of a picture in a `data:` URL; undefined when they are no picture. */
export function readDataUrl(url: string): { mediaType: string; bytes: Buffer } | undefined {
  const comma = url.indexOf(",");
  const [, mediaType] = /^data:([^;,]+)(?:;[^;,]+)*;base64$/iu.exec(url.slice(0, comma)) ?? [];
  const bytes = mediaType === undefined ? undefined : decodeBase64(url.slice(comma + 1));
  if (mediaType === undefined || !bytes || !measureImage(bytes)) return undefined;
  return { mediaType, bytes };
}
