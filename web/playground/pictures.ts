import type { Picture } from "./turns.ts";

const MAX_BYTES = 5 * 1024 * 1024;
/** Limit of all images together. A request has at most 16 MiB, and base64 adds a third. */
const MAX_TOGETHER = 11 * 1024 * 1024;

/** Media types by magic bytes. File names are not trusted. */
const MAGIC: readonly (readonly [mediaType: string, offset: number, bytes: readonly number[]])[] = [
  ["image/png", 0, [0x89, 0x50, 0x4e, 0x47]],
  ["image/jpeg", 0, [0xff, 0xd8, 0xff]],
  ["image/gif", 0, [0x47, 0x49, 0x46, 0x38]],
  ["image/webp", 8, [0x57, 0x45, 0x42, 0x50]],
];

/** `accept` attribute of the file picker. */
export const ACCEPTED = MAGIC.map(([mediaType]) => mediaType).join(",");

/** Images read, and the error of the first rejected file. */
export interface ReadPictures {
  readonly pictures: readonly Picture[];
  readonly error: string | undefined;
}

/** Reads files as images. `before` are the images attached already. */
export async function readPictures(files: readonly File[], before: readonly Picture[]): Promise<ReadPictures> {
  const pictures: Picture[] = [...before];
  let error: string | undefined;
  for (const file of files) {
    const read = await readPicture(file);
    const together = pictures.reduce((sum, { data }) => sum + data.length, 0);
    if (typeof read === "string") error ??= read;
    else if (together + read.data.length > MAX_TOGETHER) error ??= "The images exceed 11 MB in total.";
    else pictures.push({ ...read, id: (pictures.at(-1)?.id ?? 0) + 1 });
  }
  return { pictures, error };
}

async function readPicture(file: File): Promise<Omit<Picture, "id"> | string> {
  if (file.size > MAX_BYTES) return `${file.name} exceeds 5 MB.`;
  const data = new Uint8Array(await file.arrayBuffer());
  const mediaType = MAGIC.find(([, offset, bytes]) => bytes.every((byte, index) => data[offset + index] === byte))?.[0];
  if (mediaType === undefined) return `${file.name} is not a PNG, JPEG, GIF or WebP image.`;
  return { name: file.name, mediaType, data };
}
