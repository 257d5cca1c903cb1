import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { MAX_REQUEST_JSON, measureJson } from "../../../src/encoding/json-size.ts";
import { parseBodyText } from "../../../src/inbound/http/exchange.ts";
import { spliced } from "../../../src/providers/wire/splice.ts";

type Json = Readonly<Record<string, unknown>>;

/** Splices the text with these fields replaced; undefined for those that are removed. */
function splice(text: string, fields: Json = {}): string | undefined {
  const { source } = parseBodyText(Buffer.from(text));
  return source && spliced({ ...source.json, ...fields }, source);
}

describe("a body in its caller's bytes", () => {
  it.each<[string, string, Json, string]>([
    ["nothing", ' {\n "a" : 1.0,\t"b":[ ] }\n', {}, ' {\n "a" : 1.0,\t"b":[ ] }\n'],
    ["a value", '{ "model" : "m" , "a":1e2}', { model: "n" }, '{ "model" : "n" , "a":1e2}'],
    ["a removed first field", '{"a":{"b":"}\\""}, "c":2 }', { a: undefined }, '{ "c":2 }'],
    ["a removed last field", '{"a":12345678901234567890, "c":2 }', { c: undefined }, '{"a":12345678901234567890}'],
    ["the only field removed", '{ "a":[{}] }', { a: undefined }, "{}"],
    ["an added field", '{"2":0,"1":0}', { b: [1] }, '{"2":0,"1":0,"b":[1]}'],
    ["a field of an empty object", "{ }", { b: 1 }, '{"b":1}'],
    [
      "a name in escapes that hide nothing",
      '{"\\u00e4":"\\u003c\\ud800"}',
      { b: 1 },
      '{"\\u00e4":"\\u003c\\ud800","b":1}',
    ],
  ])("has %s changed", (_, text, fields, expected) => {
    expect(splice(text, fields)).toBe(expected.replace(/^ /, ""));
  });

  it.each([
    ["two fields of one name", '{"a":1,"b":2,"a":1}'],
    ["two of one name below", '{"a":[{"b":{"type":"x","type":"x"}}]}'],
    ["two of one name in different letters", '{"\\u00e4":1,"ä":1}'],
    ["a name that is hidden", '{"cache_c\\u006fntrol":1}'],
    ["a value that is hidden", '{"a":"\\u0041"}'],
  ])("is written anew when it has %s", (_, text) => {
    expect(splice(text)).toBeUndefined();
  });

  it("says the same as the body that is written anew, in any text", () => {
    const space = fc.constantFrom("", " ", "\n\t");
    // V8 may take the name `\"` for `\`, when it has read an object with that.
    const any = fc.string({ maxLength: 3 }).filter((name) => !name.includes("\\"));
    const key = fc.oneof(fc.constantFrom("a", "b", "__proto__", "1", '"', "ü"), any);
    const { value } = fc.letrec<{ value: string; object: string }>((tie) => ({
      value: fc.oneof(
        { maxDepth: 3 },
        fc.constantFrom("null", "1.0", "1E+2", "-0", "12345678901234567890", '"}{"', '"\\\\\\""', '","'),
        tie("object"),
        fc.tuple(fc.array(tie("value"), { maxLength: 3 }), space).map(([all, gap]) => `[${gap}${all.join(`${gap},`)}]`),
      ),
      object: fc
        .tuple(fc.array(fc.tuple(key, tie("value")), { maxLength: 4 }), space)
        .map(
          ([all, gap]) =>
            `{${gap}${all.map(([name, each]) => `${JSON.stringify(name)}${gap}:${gap}${each}`).join(`,${gap}`)}}`,
        ),
    }));
    const objects = value.filter((text) => text.startsWith("{"));
    const change = fc.dictionary(key, fc.oneof(fc.constant(undefined), fc.jsonValue({ maxDepth: 1 })), { maxKeys: 3 });
    fc.assert(
      fc.property(objects, change, (text, fields) => {
        const { json, source } = parseBodyText(Buffer.from(text));
        const own = Object.fromEntries([...Object.entries(json), ...Object.entries(fields)]);
        const body = source && spliced(own, source);
        const size = (of: string): number => measureJson(of, MAX_REQUEST_JSON).values;
        const hasTwice = size(JSON.stringify(json)) !== size(text);
        expect(body === undefined).toBe(hasTwice);
        const written = JSON.stringify(own);
        expect(JSON.stringify(JSON.parse(body ?? written))).toEqual(JSON.stringify(JSON.parse(written)));
      }),
      { numRuns: 2_000 },
    );
  });
});
