import { describe, expect, it } from "vitest";
import { arrivingBytesOf, largestOf, shareOf, watchMemory, youngGenerationBytes } from "../../src/gateway/overload.ts";

const MIB = 1024 * 1024;

describe("with less than 512 MiB", () => {
  it("bodies and answers have limits by what an idle process leaves, and all bodies together less", () => {
    expect(largestOf(512 * MIB)).toBeUndefined();
    expect(largestOf(320 * MIB)).toEqual({ body: 16 * MIB, answer: 32 * MIB });
    expect(largestOf(128 * MIB)).toEqual({ body: 0, answer: 0 });
    expect(arrivingBytesOf(512 * MIB)).toEqual({
      key: 16 * MIB,
      account: 32 * MIB,
      process: 64 * MIB,
      held: 128 * MIB,
    });
    expect(arrivingBytesOf(320 * MIB)).toEqual({ key: 8 * MIB, account: 16 * MIB, process: 32 * MIB, held: 64 * MIB });
    expect(arrivingBytesOf(8_192 * MIB)).toMatchObject({ key: 40 * MIB, process: 512 * MIB, held: 2_048 * MIB });
  });
});

it("workers have limits by what their parent leaves", () => {
  expect(shareOf(512 * MIB, 1)).toBe(512 * MIB);
  expect(shareOf(512 * MIB, 2)).toBe(224 * MIB);
  expect(shareOf(32 * MIB, 2)).toBe(0);
});

it.each([
  // As V8 has them in containers of these sizes.
  [200, 6],
  [256, 6],
  [320, 12],
  [512, 12],
  [700, 24],
  [1_024, 24],
  [1_536, 48],
  [3_072, 96],
  [16_384, 96],
])("of V8's heap limit in %d MiB, the young generation has %d MiB", (memory, young) => {
  expect(youngGenerationBytes(memory * MIB)).toBe(young * MIB);
});

describe("memory that cannot be measured", () => {
  it("keeps its last value, and is logged once", () => {
    const told: unknown[] = [];
    const noDescriptor = Object.assign(new Error("EMFILE: too many open files, uv_resident_set_memory"), {
      code: "EMFILE",
    });
    let isOut = false;
    const share = watchMemory(1000, {
      failed: (error) => void told.push(error),
      readSystem: () => {
        if (isOut) throw noDescriptor;
        return { ownBytes: 990, freeBytes: 10 };
      },
    });
    expect(share()).toBe(0.99);
    isOut = true;
    for (let count = 0; count < 20; count++) expect(share()).toBe(0.99);
    expect(told).toEqual([noDescriptor]);
  });
});
