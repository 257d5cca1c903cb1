import { create } from "@bufbuild/protobuf";
import { type Value, ValueSchema } from "@bufbuild/protobuf/wkt";
import { describe, expect, it } from "vitest";
import { ClampSchema } from "../../gen/parley/v1/report_pb.js";
import { describeClamp } from "../../web/format/clamp.ts";

const number = (value: number): Value => create(ValueSchema, { kind: { case: "numberValue", value } });
const word = (value: string): Value => create(ValueSchema, { kind: { case: "stringValue", value } });

describe("a clamped field", () => {
  it.each([
    ["temperature", number(1.5), number(1), "temperature 1.5 → 1"],
    ["reasoning.effort", word("REASONING_EFFORT_MAX"), word("REASONING_EFFORT_HIGH"), "reasoning.effort max → high"],
    ["tools[0].cache_mark.ttl", word("600s"), word("3600s"), "tools[0].cache_mark.ttl 600s → 3600s"],
  ])("is shown with both values: %s", (field, requested, sent, text) => {
    expect(describeClamp(create(ClampSchema, { field, requested, sent }))).toBe(text);
  });
});
