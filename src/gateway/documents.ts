import { readdir, readFile } from "node:fs/promises";
import { join, sep } from "node:path";
import { fileURLToPath } from "node:url";
import { createDocuments, type Documents, type Downloads } from "../inbound/http/documents.ts";

/** Where `npm start` puts the contract's files, beside the dashboard's. */
const DOWNLOADS_FOLDER = fileURLToPath(new URL("../../dist/console/proto/", import.meta.url));

/** What is told about the API wherever it is served: `/openapi.json`, and the contract's files where they are built. */
export async function documentsOf(): Promise<Documents> {
  return createDocuments(await readDownloads(DOWNLOADS_FOLDER));
}

/** Reads the whole folder, which is small, into memory. One that is not there is an empty one. */
async function readDownloads(folder: string): Promise<Downloads> {
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
