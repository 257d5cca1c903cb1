import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readTitles } from "./test-titles.ts";

/** A test that a document refers to: a fixture by its number, or a test file and words of a title. */
export type Reference =
  | { readonly fixture: string }
  | {
      readonly file: string;
      /** Absent if the document identifies the title otherwise. */ readonly words: string | undefined;
    };

/** Parses a list such as `` `router/breaker` "doubles after", fixture 05 ``. Throws for invalid lists. */
export function readReferences(list: string): Reference[] {
  const reference = /(?:fixture (\d\d)|`([\w/-]+)`(?: "([^"]+)")?)(?:, |$)/y;
  const references: Reference[] = [];
  while (reference.lastIndex < list.length) {
    const match = reference.exec(list);
    if (match === null) throw new Error(`not a list of test references: ${list}`);
    const [, fixture, file = "", words] = match;
    references.push(fixture === undefined ? { file, words } : { fixture });
  }
  return references;
}

const read = new Map<string, readonly string[]>();

/** Returns the titles in a test file or a table of scenarios below `test/`; none if the file does not exist. */
export function titlesOf(file: string): readonly string[] {
  const known = read.get(file);
  if (known !== undefined) return known;
  const path = [".test.ts", ".ts"].map((end) => join(import.meta.dirname, "..", file + end)).find(existsSync);
  const titles = path === undefined ? [] : readTitles(path, readFileSync(path, "utf8"));
  read.set(file, titles);
  return titles;
}
