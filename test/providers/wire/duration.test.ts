import { create, fromJson } from "@bufbuild/protobuf";
import { DurationSchema } from "@bufbuild/protobuf/wkt";
import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { toDurationText } from "../../../src/providers/wire/duration.ts";

describe("a duration as text", () => {
  it.each([
    [0n, 0, "0s"],
    [12n, 500_000_000, "12.5s"],
    [0n, 1, "0.000000001s"],
    [-1n, -20_000_000, "-1.02s"],
    [3600n, 0, "3600s"],
  ])("of %s s and %i ns is %s", (seconds, nanos, text) => {
    expect(toDurationText(create(DurationSchema, { seconds, nanos }))).toBe(text);
  });

  it("is read as the same duration", () => {
    const nanos = fc.integer({ min: 0, max: 999_999_999 });
    fc.assert(
      fc.property(fc.integer({ min: 0, max: 315_576_000 }), nanos, fc.constantFrom(1, -1), (whole, part, sign) => {
        const duration = create(DurationSchema, { seconds: BigInt(sign * whole), nanos: sign * part || 0 });
        expect(fromJson(DurationSchema, toDurationText(duration))).toEqual(duration);
      }),
    );
  });
});
