import { readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../corpus/", import.meta.url);

/** One stored input: a sample of its kind, or one that once found an error. */
export interface CorpusFile {
  /** Begins with the expected result, up to the first `.`, in the words of its kind. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** Returns the stored inputs of a kind, sorted by name. */
export function readCorpus(kind: "http" | "sse" | "grpc" | "config"): CorpusFile[] {
  const folder = new URL(`${kind}/`, FOLDER);
  return readdirSync(folder)
    .toSorted()
    .map((name) => ({ name, bytes: readFileSync(new URL(name, folder)) }));
}
