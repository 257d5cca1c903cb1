import { describe, expect, it } from "vitest";
import { toStrictSchema } from "../../src/providers/wire/strict-schema.ts";
import { toAnswerSchema } from "../../src/providers/gemini/schema.ts";
import { MAX_OMISSIONS, TranslationLog } from "../../src/providers/wire/translation.ts";

const LONG = "n".repeat(100_000);
const RULES = 2_000;

/** One rule that no provider enforces for each entry, below a long name. */
const below = (name: string, rules = RULES): Record<string, unknown> => ({
  type: "object",
  properties: { [name]: Object.fromEntries(Array.from({ length: rules }, (_, index) => [`x${index}`, 1])) },
});

/** A long name at each of the levels that a request may have. */
function nested(levels: number): Record<string, unknown> {
  let schema: Record<string, unknown> = { pattern: "x" };
  for (let level = 0; level < levels; level++) schema = { properties: { ["n".repeat(1_000)]: schema } };
  return schema;
}

describe.each([
  ["anthropic", (schema: Record<string, unknown>) => toStrictSchema(schema, "schema").unenforced],
  ["gemini", (schema: Record<string, unknown>) => toAnswerSchema(schema, "schema").dropped],
])("paths of rules that %s does not enforce", (_, pathsOf) => {
  it("do not repeat a long name for each rule", () => {
    const paths = pathsOf(below(LONG));
    expect(paths).toHaveLength(RULES);
    expect(paths.join("").length).toBeLessThan(RULES * 128);
    expect(paths[0]).toBe(`schema.properties.${"n".repeat(64)}.x0`);
  });

  it("do not grow with each level", () => {
    expect(pathsOf(nested(30)).map(({ length }) => length < 512)).toEqual([true]);
  });

  it("are reported up to a number", () => {
    const log = new TranslationLog();
    for (const path of pathsOf(below("n"))) log.omit(path);
    expect(log.finish({}, { streamed: false, maxTokens: 1 }).omitted).toHaveLength(MAX_OMISSIONS);
  });
});
