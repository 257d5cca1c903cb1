import { promisify } from "node:util";
import { crc32, deflate } from "node:zlib";

/** A picture of up to 256 colours: one palette index per pixel, row by row. */
export interface Bitmap {
  readonly width: number;
  readonly height: number;
  readonly pixels: Uint8Array;
  /** Red, green and blue of each colour, 0 to 255. */
  readonly palette: readonly (readonly [number, number, number])[];
}

const SIGNATURE = Buffer.from([0x89, 0x50, 0x4e, 0x47, 0x0d, 0x0a, 0x1a, 0x0a]);
const BIT_DEPTH = 8;
const INDEXED_COLOUR = 3;

/** In the thread pool: a large picture takes longer than an event loop should wait. */
const compress = promisify<Buffer, Buffer>(deflate);

function writeChunk(type: string, data: Buffer): Buffer {
  const chunk = Buffer.alloc(12 + data.length);
  chunk.writeUInt32BE(data.length, 0);
  chunk.write(type, 4, "latin1");
  data.copy(chunk, 8);
  chunk.writeUInt32BE(crc32(chunk.subarray(4, 8 + data.length)), 8 + data.length);
  return chunk;
}

/** Encodes a bitmap as a PNG file: indexed colours, no interlacing, rows without a filter. */
export async function encodePng({ width, height, pixels, palette }: Bitmap): Promise<Buffer> {
  const header = Buffer.alloc(13);
  header.writeUInt32BE(width, 0);
  header.writeUInt32BE(height, 4);
  header.set([BIT_DEPTH, INDEXED_COLOUR, 0, 0, 0], 8);

  const rows = Buffer.alloc((width + 1) * height);
  for (let y = 0; y < height; y += 1) rows.set(pixels.subarray(y * width, (y + 1) * width), y * (width + 1) + 1);

  return Buffer.concat([
    SIGNATURE,
    writeChunk("IHDR", header),
    writeChunk("PLTE", Buffer.from(palette.flat())),
    writeChunk("IDAT", await compress(rows)),
    writeChunk("IEND", Buffer.alloc(0)),
  ]);
}
