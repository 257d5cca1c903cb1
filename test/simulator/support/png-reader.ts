import { crc32, inflateSync } from "node:zlib";

const SIGNATURE = "89504e470d0a1a0a";

export interface DecodedPng {
  readonly width: number;
  readonly height: number;
  /** Palette indexes, row by row. */
  readonly pixels: Buffer;
  readonly colours: number;
}

/** Reads a PNG with indexed colours and without filters. Throws for any violation of the format. */
export function readPng(file: Buffer): DecodedPng {
  if (file.toString("hex", 0, 8) !== SIGNATURE) throw new Error("no PNG signature");
  const chunks = new Map<string, Buffer>();
  let at = 8;
  while (at < file.length) {
    const length = file.readUInt32BE(at);
    const type = file.toString("latin1", at + 4, at + 8);
    const data = file.subarray(at + 8, at + 8 + length);
    if (file.readUInt32BE(at + 8 + length) !== crc32(file.subarray(at + 4, at + 8 + length))) {
      throw new Error(`wrong checksum of ${type}`);
    }
    chunks.set(type, data);
    at += 12 + length;
  }
  const [header, palette, data] = ["IHDR", "PLTE", "IDAT"].map((type) => chunks.get(type) ?? Buffer.alloc(13));
  if (!header || !palette || !data || !chunks.has("IEND")) throw new Error("a chunk is missing");
  if (header.toString("hex", 8) !== "0803000000") throw new Error("not an 8-bit picture of indexed colours");
  const [width, height] = [header.readUInt32BE(0), header.readUInt32BE(4)];
  const rows = inflateSync(data);
  if (rows.length !== (width + 1) * height) throw new Error(`${rows.length} bytes do not fill ${width} × ${height}`);
  const lines = Array.from({ length: height }, (_, y) => rows.subarray(y * (width + 1), (y + 1) * (width + 1)));
  if (lines.some((line) => line[0] !== 0)) throw new Error("a row has a filter");
  const pixels = Buffer.concat(lines.map((line) => line.subarray(1)));
  const colours = palette.length / 3;
  if (pixels.some((index) => index >= colours)) throw new Error("a pixel has no colour");
  return { width, height, pixels, colours };
}

/** A PNG of one pixel, as base64. */
export const PIXEL = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mP8z8BQDwAEhQGAhKmMIQAAAABJRU5ErkJggg==";
