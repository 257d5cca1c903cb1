import { readdirSync, readFileSync } from "node:fs";

const FOLDER = new URL("../corpus/", import.meta.url);

/** One input that is kept: a sample of its kind, or what once found a mistake. */
export interface CorpusFile {
  /** Begins with what has to come of it, up to the first `.`; each kind has its own words for that. */
  readonly name: string;
  readonly bytes: Buffer;
}

/** The inputs that are kept for one kind, in the order of their names. */
export function readCorpus(kind: "http" | "sse" | "grpc" | "config"): CorpusFile[] {
  const folder = new URL(`${kind}/`, FOLDER);
  return readdirSync(folder)
    .toSorted()
    .map((name) => ({ name, bytes: readFileSync(new URL(name, folder)) }));
}
