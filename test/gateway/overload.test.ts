import { describe, expect, it } from "vitest";
import { watchMemory } from "../../src/gateway/overload.ts";

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
