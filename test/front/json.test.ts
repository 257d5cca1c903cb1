import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { isDeeperThan, MAX_JSON_DEPTH, parseBody } from "../../src/front/json.ts";

/** How deep a value is nested, the slow and sure way. */
function depthOf(value: unknown): number {
  if (typeof value !== "object" || value === null) return 0;
  return 1 + Math.max(0, ...Object.values(value).map(depthOf));
}

describe("the depth of JSON", () => {
  it("is counted as a parser would", () => {
    fc.assert(
      fc.property(fc.json({ maxDepth: 4, stringUnit: "binary" }), (json) => {
        const depth = depthOf(JSON.parse(json));
        expect(isDeeperThan(Buffer.from(json), depth)).toBe(false);
        expect(isDeeperThan(Buffer.from(json), depth - 1)).toBe(depth > 0);
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
    expect(isDeeperThan(Buffer.from(json), depth)).toBe(false);
    expect(isDeeperThan(Buffer.from(json), depth - 1)).toBe(true);
  });

  it.each(['"', '"\\', '{"a', "]]]]", "", '"\\"'])("of broken JSON ends the count: %j", (json) => {
    expect(isDeeperThan(Buffer.from(json), 64)).toBe(false);
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
});
