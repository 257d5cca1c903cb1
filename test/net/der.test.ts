import { describe, expect, it } from "vitest";
import { readDer, readDerTime, TAG } from "../../src/net/der.ts";

const bytes = (hex: string): Buffer => Buffer.from(hex, "hex");

describe("DER", () => {
  it("is read value by value, with lengths of one byte and of several", () => {
    const values = readDer(Buffer.concat([bytes("020105"), bytes("30820100"), Buffer.alloc(256), bytes("0500")]));
    expect(values.map(({ tag, content }) => [tag, content.length])).toEqual([
      [TAG.integer, 1],
      [TAG.sequence, 256],
      [5, 0],
    ]);
  });

  it.each([
    ["cut off", "0205aa"],
    ["cut off in its length", "3082"],
    ["of indefinite length", "3080020105"],
    ["longer than any file", "308501ffffffff"],
  ])("is refused when a value is %s", (_, hex) => {
    expect(() => readDer(bytes(hex))).toThrow(Error);
  });

  it("has times of two kinds", () => {
    const time = (tag: number, text: string) =>
      readDerTime({ tag, whole: Buffer.alloc(0), content: Buffer.from(text) });
    expect(time(TAG.utcTime, "261127083000Z")).toBe(Date.UTC(2026, 10, 27, 8, 30));
    expect(time(TAG.utcTime, "500101000000Z")).toBe(Date.UTC(1950, 0, 1));
    expect(time(TAG.generalizedTime, "20501127083000Z")).toBe(Date.UTC(2050, 10, 27, 8, 30));
    expect(time(TAG.generalizedTime, "soon")).toBeUndefined();
    expect(time(TAG.integer, "20501127083000Z")).toBeUndefined();
  });
});
