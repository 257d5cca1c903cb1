import { expect, it } from "vitest";
import { readMessagesRequest } from "../../../src/formats/anthropic/request.ts";
import { unknownKeyIn } from "../../../src/inbound/http/connect-call.ts";
import { describeBrowser } from "../../../src/inbound/dashboard/session-service.ts";
import { namesTag } from "../../../src/inbound/http/documents.ts";
import { adviseOn } from "../../../src/inbound/http/routes.ts";
import { cpuMs } from "../../support/cpu-time.ts";

/** As many characters as Node lets a request's head have, about. */
const LONG = 15_000;
const TIMES = 100;
/** With an expression that backtracks each of them takes a tenth of a second. */
const MOST_MS = 2_000;

const HELLO = { model: "m", max_tokens: 1, messages: [{ role: "user", content: "Hi" }] };

function readBetas(header: string): string | undefined {
  const { request } = readMessagesRequest({ json: HELLO, headers: { "anthropic-beta": header } });
  return request.providerOptionsJson["anthropic.betas"];
}

it.each<readonly [string, () => unknown]>([
  ["an entity tag of spaces", () => namesTag(`"a"${" ".repeat(LONG)}"b"`, '"c"')],
  ["a name of a beta between spaces", () => readBetas(`a,${" ".repeat(LONG)}b!`)],
  ["a duplicate key that looks like a message", () => unknownKeyIn(`duplicate object key "${': key "'.repeat(LONG)}"`)],
  ["a program that might be Safari", () => describeBrowser("Version/1 ".repeat(LONG / 10))],
  ["a path of slashes", () => adviseOn(`${"/".repeat(LONG)}x`)],
  ["a path of prefixes", () => adviseOn("/v1".repeat(LONG / 3))],
])("%s is looked at once", (_, look) => {
  const lookOften = (): void => {
    for (let count = 0; count < TIMES; count++) look();
  };
  expect(cpuMs(lookOften)).toBeLessThan(MOST_MS);
});

it("finds an entity tag in a list, with and without spaces", () => {
  expect(namesTag('"a" , "b"', '"b"')).toBe(true);
  expect(namesTag('"a","b"', '"c"')).toBe(false);
  expect(namesTag(undefined, '"c"')).toBe(false);
});

it("finds names of betas in a list, with and without spaces", () => {
  expect(readBetas("a-2026-01-01,\t b.c ,, d e,f!")).toBe('["a-2026-01-01","b.c"]');
});

it("finds the unknown key of a message", () => {
  expect(unknownKeyIn('cannot decode message a.B from JSON: key "c": key "d" is unknown')).toBe('c": key "d');
  expect(unknownKeyIn('cannot decode message a.B from JSON: duplicate object key ": key "')).toBeUndefined();
  expect(unknownKeyIn("is unknown")).toBeUndefined();
});
