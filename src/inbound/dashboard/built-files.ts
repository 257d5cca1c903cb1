import { createHash } from "node:crypto";
import { extname } from "node:path";

/** A file of the dashboard in all its encodings. */
export interface BuiltFile {
  readonly type: string;
  /** Strong entity tag, with its quotes. */
  readonly etag: string;
  readonly content: Buffer;
  /** Compressed contents by encoding, the smallest first. */
  readonly encoded: readonly (readonly [encoding: string, content: Buffer])[];
}

/** The built dashboard: files by path without the leading slash, such as `assets/main-4f2a.js`. */
export type BuiltFiles = ReadonlyMap<string, BuiltFile>;

const TYPES: Readonly<Record<string, string>> = {
  ".html": "text/html; charset=utf-8",
  ".js": "text/javascript; charset=utf-8",
  ".css": "text/css; charset=utf-8",
  ".svg": "image/svg+xml",
  ".woff2": "font/woff2",
};

/** Encodings by file extension, the smallest first. */
const ENCODINGS = [
  ["br", ".br"],
  ["gzip", ".gz"],
] as const;

/** The files of a built dashboard by their paths; undefined without a complete build. */
export function builtFilesOf(contents: ReadonlyMap<string, Buffer>): BuiltFiles | undefined {
  const files = new Map<string, BuiltFile>();
  for (const [name, content] of contents) {
    const type = TYPES[extname(name)];
    // Compressed contents, and the build's own record.
    if (type === undefined) continue;
    const etag = `"${createHash("sha256").update(content).digest("base64url").slice(0, 22)}"`;
    const encoded = ENCODINGS.flatMap(([encoding, ending]) => {
      const compressed = contents.get(name + ending);
      return compressed === undefined ? [] : [[encoding, compressed] as const];
    });
    files.set(name, { type, etag, content, encoded });
  }
  return files.has("index.html") ? files : undefined;
}
