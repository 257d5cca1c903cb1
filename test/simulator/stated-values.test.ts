import { describe, expect, it } from "vitest";
import * as z from "zod";
import { makeExample, readStatedValues } from "../../src/simulator/schema-example.ts";

describe("the values stated in a message", () => {
  it.each<[string, number[], string[]]>([
    ["What is magic_function(3)?", [3], []],
    ["From -4.5 to 10.", [-4.5, 10], []],
    ["gpt-5-mini, v2, 1.2.3 and 7th", [], []],
    ["a customer named '你好啊集团', in \"Oslo\" or “Åland”", [], ["你好啊集团", "Oslo", "Åland"]],
    ["It's the keeper's lamp", [], []],
    ["", [], []],
  ])("are the numbers and quoted texts of: %s", (message, numbers, texts) => {
    expect(readStatedValues(message)).toEqual({ numbers, texts });
  });
});

describe("an example with stated values", () => {
  const stated = { numbers: [2.5, 500, 7], texts: ["a word", "b"] };

  it.each<[string, z.ZodType, unknown]>([
    ["each value once and in order", z.object({ x: z.number(), y: z.number() }), { x: 2.5, y: 500 }],
    ["no number outside the bounds", z.object({ x: z.int().lt(10), y: z.int().gt(600) }), { x: 7, y: 601 }],
    ["no number that violates multipleOf", z.object({ x: z.int().multipleOf(100) }), { x: 500 }],
    ["no text of another length", z.object({ s: z.string().max(1), t: z.string().min(2) }), { s: "b", t: "a word" }],
    ["no text in place of a format", z.object({ s: z.email() }), { s: "someone@example.com" }],
    ["no value in place of an enumeration", z.object({ s: z.enum(["x"]), b: z.boolean() }), { s: "x", b: true }],
  ])("uses %s", (_, schema, expected) => {
    const example = makeExample(z.toJSONSchema(schema), stated);
    expect(example).toEqual(expected);
    expect(schema.safeParse(example).success).toBe(true);
  });
});
