import { existsSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { readTitles } from "./test-titles.ts";

/** What a page names as its proof: a fixture by its number, or a test file and what a title in it says. */
export type Reference =
  | { readonly fixture: string }
  | {
      readonly file: string;
      /** Without it, the page has a way of its own to find the title. */ readonly words: string | undefined;
    };

/** Reads a list such as `` `router/breaker` "its rest", fixture 05 ``. Throws for what is none. */
export function readReferences(list: string): Reference[] {
  const reference = /(?:fixture (\d\d)|`([\w/-]+)`(?: "([^"]+)")?)(?:, |$)/y;
  const references: Reference[] = [];
  while (reference.lastIndex < list.length) {
    const match = reference.exec(list);
    if (match === null) throw new Error(`cannot be read as names of tests: ${list}`);
    const [, fixture, file = "", words] = match;
    references.push(fixture === undefined ? { file, words } : { fixture });
  }
  return references;
}

const read = new Map<string, readonly string[]>();

/** The titles in a test file, or in a table of scenarios, below `test/`; none when there is no such file. */
export function titlesOf(file: string): readonly string[] {
  const known = read.get(file);
  if (known !== undefined) return known;
  const path = [".test.ts", ".ts"].map((end) => join(import.meta.dirname, "..", file + end)).find(existsSync);
  const titles = path === undefined ? [] : readTitles(path, readFileSync(path, "utf8"));
  read.set(file, titles);
  return titles;
}
