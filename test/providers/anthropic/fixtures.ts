import { readdirSync, readFileSync } from "node:fs";

const ROOT = new URL("../../fixtures/", import.meta.url);
const NAMES = readdirSync(ROOT);

/** A file of the scenario with this number, such as "07", as text. */
export function readFixture(number: string, file: string): string {
  const name = NAMES.find((candidate) => candidate.startsWith(`${number}-`));
  return readFileSync(new URL(`${name}/${file}`, ROOT), "utf8");
}

/** The same, parsed as JSON. */
export function readFixtureJson(number: string, file: string): Record<string, unknown> {
  return JSON.parse(readFixture(number, file)) as Record<string, unknown>;
}
