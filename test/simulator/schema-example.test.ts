import { describe, expect, it } from "vitest";
import * as z from "zod";
import { makeExample } from "../../src/simulator/schema-example.ts";

const node = z.object({
  label: z.string(),
  get next() {
    return node.optional();
  },
});

describe("an example of a schema", () => {
  it.each<[string, z.ZodType]>([
    ["an object with required and optional fields", z.object({ a: z.string(), b: z.int().optional() })],
    ["numeric bounds", z.object({ a: z.int().min(5).max(9), b: z.number().gt(2).lt(3), c: z.int().max(-4) })],
    ["string lengths", z.object({ a: z.string().min(30), b: z.string().max(3) })],
    ["enumerations and constants", z.object({ a: z.enum(["x", "y"]), b: z.literal(7) })],
    ["arrays with bounds", z.object({ a: z.array(z.boolean()).min(3), b: z.tuple([z.string(), z.int()]) })],
    ["formats", z.object({ a: z.email(), b: z.uuid(), c: z.iso.date(), d: z.iso.datetime(), e: z.url(), f: z.ipv4() })],
    ["unions and null", z.object({ a: z.union([z.null(), z.int()]), b: z.string().nullable() })],
    ["intersections", z.intersection(z.object({ a: z.string() }), z.object({ b: z.int() }))],
    ["a recursive schema", node],
    ["multipleOf", z.object({ a: z.int().multipleOf(5).min(7) })],
  ])("satisfies %s", (_, schema) => {
    const example = makeExample(z.toJSONSchema(schema));
    expect(schema.safeParse(example)).toEqual({ success: true, data: example });
  });

  it("supports upper-case type names", () => {
    expect(makeExample({ type: "OBJECT", properties: { n: { type: "INTEGER" } } })).toEqual({ n: 1 });
  });

  it("is an empty object without a schema", () => {
    expect(makeExample(undefined)).toEqual({});
  });
});
