import { expect, it } from "vitest";
import { release } from "../../../src/inbound/http/stream.ts";

it("releases the memory of large pieces, and never memory that others share", () => {
  const large = Buffer.alloc(64 * 1024, "a");
  const most = Buffer.allocUnsafeSlow(1000).fill("b").subarray(100);
  const pooled = Buffer.from("a short text");
  const half = Buffer.alloc(1000, "c").subarray(0, 500);
  release([large, large, most, pooled, half]);
  expect([large, most, pooled, half].map(({ length }) => length)).toEqual([0, 0, 12, 500]);
  expect(pooled.toString()).toBe("a short text");
});
