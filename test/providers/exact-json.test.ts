import { describe, expect, it } from "vitest";
import { parseExactly } from "../../src/providers/exact-json.ts";
import { count, isObject, number } from "../../src/providers/lenient.ts";
import { readLogprobs } from "../../src/providers/openai/logprobs.ts";

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
    const content = '{"content":[{"token":"a","logprob":-0.12345678901234567890123},{"token":"b","logprob":-0.0}]}';
    const { content: tokens } = readLogprobs(parseExactly(content)) ?? {};
    expect(tokens?.map(({ logprob }) => logprob)).toEqual([-0.12345678901234568, -0]);
  });

  it("is JSON however deep it is nested", () => {
    const depth = 20_000;
    const text = `{"id":12345678901234567890,"deep":${"[".repeat(depth)}${"]".repeat(depth)}}`;
    expect(parseExactly(text)).toHaveProperty("id");
    expect(parseExactly(text, (_, value) => value)).toHaveProperty("id");
  });
});
