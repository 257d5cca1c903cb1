import { expect, it } from "vitest";
import { releaseMemory } from "../../src/core/release-memory.ts";

it("releases the memory of large pieces, and never memory that others share", () => {
  const large = Buffer.alloc(64 * 1024, "a");
  const most = Buffer.allocUnsafeSlow(100_000).fill("b").subarray(100);
  const pooled = Buffer.from("a short text");
  const half = Buffer.alloc(200_000, "c").subarray(0, 100_000);
  releaseMemory([large, large, most, pooled, half]);
  expect([large, most, pooled, half].map(({ length }) => length)).toEqual([0, 0, 12, 100_000]);
  expect(pooled.toString()).toBe("a short text");
});
