/** An image in a request: the properties that answers describe, and its token count. */
export interface ImageInput {
  /** Type detected from the bytes, or the declared one if no bytes were sent. */
  readonly mediaType: string;
  /** Undefined for an image URL, which the simulator does not fetch. */
  readonly sizeBytes?: number | undefined;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
  readonly tokens: number;
}

interface Measured {
  readonly mediaType: string;
  readonly width?: number | undefined;
  readonly height?: number | undefined;
}

const PIXELS_PER_TOKEN = 750;
const MAX_IMAGE_TOKENS = 1600;
const UNMEASURED_IMAGE_TOKENS = 1000;

const BASE64 = /^[A-Za-z0-9+/]+={0,2}$/u;

function measurePng(bytes: Buffer): Measured | undefined {
  if (bytes.length < 24 || bytes.readUInt32BE(0) !== 0x89504e47) return undefined;
  return { mediaType: "image/png", width: bytes.readUInt32BE(16), height: bytes.readUInt32BE(20) };
}

function measureGif(bytes: Buffer): Measured | undefined {
  if (bytes.length < 10 || bytes.toString("latin1", 0, 4) !== "GIF8") return undefined;
  return { mediaType: "image/gif", width: bytes.readUInt16LE(6), height: bytes.readUInt16LE(8) };
}

/** Walks the segments of a JPEG to the start-of-frame segment, which contains the size. */
function measureJpeg(bytes: Buffer): Measured | undefined {
  if (bytes.length < 4 || bytes.readUInt16BE(0) !== 0xffd8) return undefined;
  let at = 2;
  while (at + 9 <= bytes.length && bytes[at] === 0xff) {
    const marker = bytes.readUInt8(at + 1);
    const isFrame = marker >= 0xc0 && marker <= 0xcf && marker !== 0xc4 && marker !== 0xc8 && marker !== 0xcc;
    if (isFrame) {
      return { mediaType: "image/jpeg", width: bytes.readUInt16BE(at + 7), height: bytes.readUInt16BE(at + 5) };
    }
    at += 2 + bytes.readUInt16BE(at + 2);
  }
  return { mediaType: "image/jpeg" };
}

function measureWebp(bytes: Buffer): Measured | undefined {
  if (bytes.length < 16 || bytes.toString("latin1", 8, 12) !== "WEBP") return undefined;
  const isExtended = bytes.toString("latin1", 12, 16) === "VP8X" && bytes.length >= 30;
  if (!isExtended) return { mediaType: "image/webp" };
  return { mediaType: "image/webp", width: bytes.readUIntLE(24, 3) + 1, height: bytes.readUIntLE(27, 3) + 1 };
}

/** Decodes base64; undefined if invalid. */
export function decodeBase64(data: string): Buffer | undefined {
  return data.length % 4 === 0 && BASE64.test(data) ? Buffer.from(data, "base64") : undefined;
}

/** Returns media type and size detected from the bytes; undefined for an unknown format. */
export function measureImage(bytes: Buffer): Measured | undefined {
  return measurePng(bytes) ?? measureJpeg(bytes) ?? measureGif(bytes) ?? measureWebp(bytes);
}

/** Reads an image with inline bytes. Counts one token per PIXELS_PER_TOKEN, at most MAX_IMAGE_TOKENS. */
export function readImage(bytes: Buffer, declaredType: string): ImageInput {
  const { mediaType, width, height } = measureImage(bytes) ?? { mediaType: declaredType };
  const isMeasured = width !== undefined && height !== undefined;
  const tokens = isMeasured
    ? Math.min(MAX_IMAGE_TOKENS, Math.ceil((width * height) / PIXELS_PER_TOKEN))
    : UNMEASURED_IMAGE_TOKENS;
  return { mediaType, sizeBytes: bytes.length, width, height, tokens };
}

/** An image by reference, without bytes. */
export function referToImage(mediaType = "image/*"): ImageInput {
  return { mediaType, tokens: UNMEASURED_IMAGE_TOKENS };
}

/** Describes an image: `image/png, 640 × 480 pixels, 1234 bytes`. */
export function describeImage(image: ImageInput): string {
  const size = image.width === undefined ? [] : [`${image.width} × ${image.height} pixels`];
  const weight = image.sizeBytes === undefined ? "sent as an address" : `${image.sizeBytes} bytes`;
  return [image.mediaType, ...size, weight].join(", ");
}
