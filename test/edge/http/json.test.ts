import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_JSON_DEPTH, MAX_JSON_TOKENS, measureJson, parseBody } from "../../../src/edge/http/json.ts";

/** How deep a value is nested, the slow and sure way. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

/** Values that follow another one, and keys: what costs time one by one. */
function tokensOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  const inner = Object.values(value);
  const own = Math.max(inner.length - 1, 0) + (Array.isArray(value) ? 0 : inner.length);
  return own + inner.reduce((sum: number, each) => sum + tokensOf(each), 0);
}

describe("the measure of JSON", () => {
  it("is what a parser would count", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4, stringUnit: "binary" }), (text) => {
        const json = JSON.stringify(JSON.parse(text)); // without keys that are given twice
        const value: unknown = JSON.parse(json);
        expect(measureJson(Buffer.from(json))).toEqual({ depth: depthOf(value), tokens: 1 + tokensOf(value) });
      }),
      { numRuns: 300 },
    );
  });

  it.each([
    ['{"a":"[[[[[["}', 1],
    [String.raw`{"a":"\"[[[["}`, 1],
    [String.raw`{"a":"\\","b":[]}`, 2],
    [String.raw`{"a":"\\\"[["}`, 1],
    [String.raw`["\\\\",[[]]]`, 3],
    ['{"[[[":1}', 1],
  ])("does not count what stands in strings: %s", (json, depth) => {
    expect(measureJson(Buffer.from(json)).depth).toBe(depth);
  });

  it.each(['"', '"\\', '{"a', "]]]]", "", '"\\"'])("of broken JSON comes to an end: %j", (json) => {
    expect(measureJson(Buffer.from(json)).depth).toBeLessThanOrEqual(1);
  });
});

describe("a body", () => {
  const nested = (depth: number): string => '{"a":' + "[".repeat(depth - 1) + "]".repeat(depth - 1) + "}";

  it("may be as deep as the limit and no deeper", () => {
    expect(parseBody(Buffer.from(nested(MAX_JSON_DEPTH)))).toHaveProperty("a");
    expect(() => parseBody(Buffer.from(nested(MAX_JSON_DEPTH + 1)))).toThrow(
      "The request body is nested deeper than 64 levels.",
    );
  });

  it.each([
    ["nothing", "", "The request body is empty; it must be a JSON object."],
    ["half an object", '{"model":', "The request body is not valid JSON"],
    ["an array", "[]", "The request body must be a JSON object."],
    ["null", "null", "The request body must be a JSON object."],
    ["a string", '"hi"', "The request body must be a JSON object."],
    ["a form", "model=a&messages=", "The request body is not valid JSON"],
    ["a byte order mark", "\ufeff{}", "The request body is not valid JSON"],
  ])("of %s is refused", (_, text, message) => {
    expect(() => parseBody(Buffer.from(text))).toThrow(message);
  });

  it("that is not UTF-8 is refused", () => {
    expect(() => parseBody(Buffer.from('{"a":"\xe4"}', "latin1"))).toThrow("The request body is not valid UTF-8.");
  });

  it("is never repeated in what is said about it", () => {
    for (const text of ['{"key": s3cret}', '{"s3cret": 1,, }', "s3cret"]) {
      let message = "";
      try {
        parseBody(Buffer.from(text));
      } catch (reason) {
        message = String(reason);
      }
      expect(message).toContain("not valid JSON");
      expect(message).not.toContain("s3cret");
    }
  });

  it("of millions of brackets is refused before it is parsed", () => {
    const bomb = Buffer.alloc(8 * 1024 * 1024, "[");
    expect(() => parseBody(bomb)).toThrow("nested deeper");
  });

  it("of very many tiny fields is refused before it is parsed, and one of a few less is not", () => {
    const fields = (count: number): Buffer => Buffer.from(`{${'"a":1,'.repeat(count - 1)}"a":1}`);
    expect(() => parseBody(fields(2_000_000))).toThrow("more than 200000 keys and values");
    expect(parseBody(fields(MAX_JSON_TOKENS / 2))).toEqual({ a: 1 });
  });
});
