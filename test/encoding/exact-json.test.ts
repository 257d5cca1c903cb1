import fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { readTokens } from "../../src/providers/wire/openai-content.ts";
import { MAX_KEPT_NUMBERS, parseExactly } from "../../src/encoding/exact-json.ts";
import { count, isObject, number } from "../../src/providers/wire/json.ts";

describe("JSON that is parsed exactly", () => {
  it.each([
    "12345678901234567890",
    "-9007199254740993",
    "1234567.12345678901234567890",
    "1e400",
    "1E5",
    "1.50",
    "1.0",
    "-0",
    "-0.0",
    '{"ids":[1,9223372036854775807],"text":"1.50"}',
  ])("is written again as it was: %s", (text) => {
    expect(JSON.stringify(parseExactly(text))).toBe(text);
  });

  it("holds ordinary numbers wherever nothing would change", () => {
    expect(parseExactly('{"id":12345678901234567890,"days":3}')).toHaveProperty("days", 3);
  });

  it("gives kept numbers to those who want to count with them, and to nobody as objects", () => {
    const kept = parseExactly("12.50");
    expect([number(kept), count(kept), isObject(kept)]).toEqual([12.5, 12, false]);
    expect(number("12.50")).toBeUndefined();
  });

  it("does not lose a probability that was written with more digits than a double has", () => {
    const content = '[{"token":"a","logprob":-0.12345678901234567890123},{"token":"b","logprob":-0.0}]';
    const tokens = readTokens(parseExactly(content));
    expect(tokens.map(({ logprob }) => logprob)).toEqual([-0.12345678901234568, -0]);
  });

  it("has no tokens that are longer than those of any vocabulary", () => {
    const long = { token: "x".repeat(1025), logprob: -1 };
    const tokens = readTokens([long, { token: "x".repeat(1024), logprob: -1, top_logprobs: [long] }]);
    expect(tokens).toMatchObject([{ logprob: -1, top: [] }]);
  });

  it("is JSON however deep it is nested", () => {
    const depth = 20_000;
    const text = `{"id":12345678901234567890,"deep":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    expect(parseExactly(text)).toHaveProperty("id");
    expect(parseExactly(text, (_, value) => value)).toHaveProperty("id");
  });

  it.each(["1.50x", "01.50", "1.e5", "--1.50", "[1.50", "{1.50:1}", '{"a":1.50,2.50:1}', '"1.50"1.50', "[1.50 1.50]"])(
    "is refused as it is without the digits: %s",
    (text) => {
      const refusalOf = (parse: (text: string) => unknown): unknown => {
        try {
          return { value: parse(text) };
        } catch (reason) {
          return String(reason);
        }
      };
      const said = refusalOf(parseExactly);
      expect(said).toMatch(/^SyntaxError/);
      expect(said).toBe(refusalOf(JSON.parse));
    },
  );

  it.each([
    ['{"a":1.50,"a":2.50}', '{"a":2.50}'],
    ['{"b":1.50,"2":1e3,"1":1e2}', '{"1":1e2,"2":1e3,"b":1.50}'],
    ['{"__proto__":1.50,"toString":{"a":1e1}}', '{"__proto__":1.50,"toString":{"a":1e1}}'],
  ])("keeps its digits under keys of any kind: %s", (text, written) => {
    expect(JSON.stringify(parseExactly(text))).toBe(written);
  });

  it("keeps the digits of a large text, up to a number of them, and is valid JSON beyond it", () => {
    const text = (numbers: number): string => `[${"1.50,".repeat(numbers)}1]`;
    expect(JSON.stringify(parseExactly(text(MAX_KEPT_NUMBERS)))).toBe(text(MAX_KEPT_NUMBERS));
    const more = `${"1.50,".repeat(MAX_KEPT_NUMBERS)}1.5`;
    expect(JSON.stringify(parseExactly(`[${more}0]`))).toBe(`[${more}]`);
  });

  it.each([
    ["in each of 2,000,000 values", `[${"1.50,".repeat(2_000_000)}1]`],
    ["in one of 2,000,000 values", `[${"1,".repeat(2_000_000)}1.50]`],
    ["under keys", `{"a":[${`{"b":1.00000000000000000001},`.repeat(400_000)}1e5]}`],
  ])("calls no function for each value with unusual digits %s, which would take ten times as long", (_, text) => {
    const parse = vi.spyOn(JSON, "parse");
    try {
      parseExactly(text);
      expect(parse.mock.calls.map((passed) => passed.length)).toEqual([1]);
    } finally {
      parse.mockRestore();
    }
  });

  it.each([
    ["a fingerprint with a digit before an e", '{"system_fingerprint":"fp_a1b2c3d4e5","created":1741569952}'],
    ["numbers in texts", '{"content":"costs: 1.50, or 1e5 [12345678901234567890 -0 \\" 2.0"}'],
    ["arguments as a text", String.raw`{"arguments":"{\"a\": 1.50,\"b\":[1e400]}"}`],
    ["probabilities that a double holds", '{"logprobs":[-0.0001234567890123,-12.345678901234567, 0.1]}'],
  ])("looks at each value only where a number would change, not for %s", (_, text) => {
    const parse = vi.spyOn(JSON, "parse");
    try {
      parseExactly(text);
      expect(parse.mock.calls).toEqual([[text]]);
    } finally {
      parse.mockRestore();
    }
  });

  it("finds a number that would change wherever it stands", () => {
    const numeral = fc.constantFrom(
      "1.50",
      "-0",
      "1e3",
      "12345678901234567890",
      "0.10",
      "7",
      "-1.5",
      "1234567890123456",
    );
    const text = fc.constantFrom('"a"', '"1.50"', String.raw`"\" 1.50"`, String.raw`"\\"`, '"fp_1e5"', "null");
    const space = fc.constantFrom("", " ", "\n");
    const value = fc.oneof(numeral, text);
    const list = fc
      .array(fc.tuple(space, value, space).map((parts) => parts.join("")))
      .map((all) => `[${all.join(",")}]`);
    fc.assert(
      fc.property(list, (json) => {
        const packed = json.replace(/("(?:\\.|[^"\\])*")|\s+/g, "$1");
        expect(JSON.stringify(parseExactly(json))).toBe(packed);
      }),
    );
  });
});
