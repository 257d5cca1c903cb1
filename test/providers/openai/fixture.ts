import { readFileSync } from "node:fs";

/** The files of one wire scenario. */
export interface Fixture {
  json(name: string): unknown;
  bytes(name: string): Buffer;
}

/** Reads `test/fixtures/<name>`. */
export function readFixture(name: string): Fixture {
  const read = (file: string): Buffer => readFileSync(new URL(`../../fixtures/${name}/${file}`, import.meta.url));
  return { bytes: read, json: (file) => JSON.parse(read(file).toString("utf8")) };
}
