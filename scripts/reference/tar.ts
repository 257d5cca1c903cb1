import { gzipSync } from "node:zlib";

const BLOCK = 512;

/** A `.tar.gz` of files by their paths: the same files give the same bytes. */
export function tarGz(files: ReadonlyMap<string, Buffer>): Buffer {
  const blocks = [...files].flatMap(([path, content]) => {
    const padding = Buffer.alloc((BLOCK - (content.length % BLOCK)) % BLOCK);
    return [header(path, content.length), content, padding];
  });
  const packed = gzipSync(Buffer.concat([...blocks, Buffer.alloc(2 * BLOCK)]), { level: 9 });
  // Operating system byte: unknown.
  packed[9] = 255;
  return packed;
}

/** 1980-01-01: some build tools take time 0 for a file that does not exist, such as Maven's resources. */
const TIME_S = 315_532_800;

/** The ustar header of a world-readable file. */
function header(path: string, size: number): Buffer {
  if (Buffer.byteLength(path) > 100) throw new RangeError(`${path} is too long for an archive`);
  const block = Buffer.alloc(BLOCK);
  const octal = (value: number, digits: number): string => `${value.toString(8).padStart(digits, "0")}\0`;
  block.write(path, 0);
  block.write(octal(0o644, 7), 100);
  block.write(octal(0, 7), 108);
  block.write(octal(0, 7), 116);
  block.write(octal(size, 11), 124);
  block.write(octal(TIME_S, 11), 136);
  block.write("        ", 148);
  block.write("0", 156);
  block.write("ustar\x0000", 257, "latin1");
  const sum = block.reduce((total, byte) => total + byte, 0);
  block.write(`${sum.toString(8).padStart(6, "0")}\0 `, 148);
  return block;
}
