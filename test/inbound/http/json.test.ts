import { describe, expect, it } from "vitest";
import { MAX_REQUEST_JSON } from "../../../src/encoding/json-size.ts";
import { parseBodyText } from "../../../src/inbound/http/exchange.ts";

const parseBody = (body: Buffer): unknown => parseBodyText(body).json;

describe("a body", () => {
  const nested = (depth: number): string => '{"a":' + "[".repeat(depth - 1) + "]".repeat(depth - 1) + "}";

  it("may be as deep as the limit and no deeper", () => {
    expect(parseBody(Buffer.from(nested(MAX_REQUEST_JSON.depth)))).toHaveProperty("a");
    expect(() => parseBody(Buffer.from(nested(MAX_REQUEST_JSON.depth + 1)))).toThrow(
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
    const fields = (count: number): Buffer => Buffer.from(`{"b":{${'"a":1,'.repeat(count - 1)}"a":1}}`);
    expect(() => parseBody(fields(2_000_000))).toThrow("more than 100000 keys and values");
    expect(parseBody(fields(MAX_REQUEST_JSON.values / 2 - 3))).toEqual({ b: { a: 1 } });
  });

  it("has at most 1,000 fields of its own", () => {
    const fields = (count: number): Buffer =>
      Buffer.from(JSON.stringify(Object.fromEntries(Array.from({ length: count }, (_, at) => [`a${at}`, [at, {}]]))));
    expect(() => parseBody(fields(1_001))).toThrow("The request body has more than 1000 fields.");
    expect(Object.keys(parseBody(fields(1_000)) as object)).toHaveLength(1_000);
  });
});
