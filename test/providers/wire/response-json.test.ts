import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Base64 } from "../../../src/encoding/base64.ts";
import { isObject, string } from "../../../src/providers/wire/json.ts";
import { parseResponse } from "../../../src/providers/wire/parse-response.ts";

const LARGE = Buffer.alloc(90_000, "picture").toString("base64");

/** A text in pieces of so many bytes. */
function pieces(text: string, size: number): Buffer[] {
  const bytes = Buffer.from(text);
  return Array.from({ length: Math.ceil(bytes.length / size) }, (_, at) => bytes.subarray(at * size, (at + 1) * size));
}

/** Written again, with its strings in any form. */
const again = (text: string, size = 10_000): string => JSON.stringify(parseResponse(pieces(text, size)));

describe("a whole answer in pieces", () => {
  it("has a large picture's characters as they came, and as a string for who wants one", () => {
    const { data } = parseResponse(pieces(`{"mimeType":"image/png","data":"${LARGE}"}`, 10_000)) as { data: unknown };
    expect(data).toBeInstanceOf(Base64);
    expect([string(data), isObject(data)]).toEqual([LARGE, false]);
  });

  it("says the same however it is split", () => {
    const text = JSON.stringify({
      a: 'é"\\',
      parts: [{ text: "x" }, { data: LARGE }, { data: LARGE }],
      n: [1.5, null],
    });
    const size = fc.integer({ min: 1000, max: 70_000 });
    fc.assert(
      fc.property(size, (bytes) => {
        expect(again(text, bytes)).toBe(text);
      }),
      { numRuns: 40 },
    );
  });

  it.each<[string, string]>([
    ["is base64 under another name", `{"text":"${LARGE}"}`],
    ["is a name", `{"${LARGE}":1,"data":"${LARGE}"}`],
    ["begins behind an escaped quote", `{"data":"a\\"${LARGE}"}`],
    ["begins behind an escaped backslash", `{"data":"a\\\\${LARGE}"}`],
    ["is of another alphabet", `{"data":"${LARGE.replace("c", "-")}"}`],
    ["has a line break", `{"data":"${LARGE}\\n"}`],
    ["has no padding where there should be some", `{"data":"${LARGE}QQ"}`],
    ["is the whole text", `"${LARGE}"`],
    ["stands beside numbers that keep their characters", `{"data":"${LARGE}","n":[1.50,12345678901234567890,-0]}`],
    ["is not ASCII", `{"data":"${"é".repeat(100_000)}"}`],
  ])("says the same when a long string %s", (_, text) => {
    expect(again(text)).toBe(text);
  });

  it("takes the last of two strings of one name", () => {
    const other = LARGE.toLowerCase();
    expect(again(`{"data":"${LARGE}","data":"${other}"}`)).toBe(`{"data":"${other}"}`);
  });

  it("drops a byte order mark", () => {
    expect(again(`\ufeff{"data":"${LARGE}"}`)).toBe(`{"data":"${LARGE}"}`);
    expect(parseResponse([Buffer.from("\ufeff1")])).toBe(1);
  });

  it.each([
    ["a string too many", `{"data":"a"${LARGE}"b"}`],
    ["no end", `{"data":"${LARGE}`],
    ["no comma", `{"data":"a" "${LARGE}"}`],
    ["bytes in the open", `{"data":${LARGE}}`],
  ])("is no JSON with %s", (_, text) => {
    expect(() => parseResponse(pieces(text, 10_000))).toThrow(SyntaxError);
  });
});
