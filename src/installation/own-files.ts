import { readFileSync } from "node:fs";
import { readdir, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { getAsset, getAssetKeys, getRawAsset, isSea } from "node:sea";
import { fileURLToPath } from "node:url";

// The program's own files, such as `package.json` and `dist/console`: in the folder of its installation, or in the single
// executable (scripts/executable.mjs) that it is part of, which has them under the same paths.

// The folders of `src/`, and `dist/program/`, are at the same depth.
const ROOT = fileURLToPath(new URL("../../", import.meta.url));

/** Text of one of the program's own files, by its path in the installation. Throws when it is missing. */
export function readOwnFile(path: string): string {
  return isSea() ? getAsset(path, "utf8") : readFileSync(join(ROOT, path), "utf8");
}

/** All files in a folder of the installation and below, as `readFolder`. */
export async function readOwnFolder(path: string): Promise<ReadonlyMap<string, Buffer>> {
  if (!isSea()) return readFolder(join(ROOT, path));
  const names = getAssetKeys().filter((name) => name.startsWith(`${path}/`));
  return new Map(names.map((name) => [name.slice(path.length + 1), Buffer.from(getRawAsset(name))]));
}

/**
 * Reads a whole folder, which must be small, into memory: contents by path in the folder, with forward slashes. A folder that
 * is missing or cannot be read counts as empty.
 */
export async function readFolder(folder: string): Promise<ReadonlyMap<string, Buffer>> {
  const files = new Map<string, Buffer>();
  try {
    const entries = await readdir(folder, { recursive: true, withFileTypes: true });
    for (const entry of entries.filter((each) => each.isFile())) {
      const path = join(entry.parentPath, entry.name);
      files.set(path.slice(join(folder, sep).length).replaceAll(sep, "/"), await readFile(path));
    }
  } catch {
    return new Map();
  }
  return files;
}
