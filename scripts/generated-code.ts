import { mkdtemp, readdir, readFile, rm } from "node:fs/promises";
import { tmpdir } from "node:os";
import { join, relative } from "node:path";
import { runTool } from "./tools.ts";

/** Folders that `npm run generate` writes. */
const FOLDERS = ["gen", "docs/reference"];

/**
 * Fails when a folder differs from the output of `npm run generate`: a file is different, missing or left over. Generates
 * into a temporary folder, and changes nothing else.
 *
 * @throws {Error} naming the files
 */
export async function checkGeneratedCode(): Promise<undefined> {
  const folder = await mkdtemp(join(tmpdir(), "parley-generated-"));
  try {
    await runTool("buf", ["generate", "--output", folder]);
    const compared = await Promise.all(FOLDERS.map((name) => compareFolders(name, join(folder, name))));
    const differences = compared.flat();
    if (differences.length > 0)
      throw new Error(`not up to date with the proto files; run npm run generate: ${differences.join(", ")}`);
  } finally {
    await rm(folder, { recursive: true, force: true });
  }
}

/** Paths of the files that are not the same in both folders. */
async function compareFolders(actualFolder: string, expectedFolder: string): Promise<string[]> {
  const [actual, expected] = await Promise.all([readFiles(actualFolder), readFiles(expectedFolder)]);
  const paths = new Set([...actual.keys(), ...expected.keys()]);
  const different = [...paths].filter((path) => actual.get(path) !== expected.get(path));
  return different.toSorted().map((path) => join(actualFolder, path));
}

async function readFiles(folder: string): Promise<Map<string, string>> {
  const entries = await readdir(folder, { recursive: true, withFileTypes: true });
  const paths = entries.filter((entry) => entry.isFile()).map((entry) => join(entry.parentPath, entry.name));
  const files = paths.map(async (path) => [relative(folder, path), await readFile(path, "utf8")] as const);
  return new Map(await Promise.all(files));
}
