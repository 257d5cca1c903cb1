import { expect, it } from "vitest";
import { releaseDecoded, releaseMemory } from "../../src/core/release-memory.ts";

it("releases the memory of large pieces, and never memory that others share", () => {
  const large = Buffer.alloc(64 * 1024, "a");
  const most = Buffer.allocUnsafeSlow(100_000).fill("b").subarray(100);
  const pooled = Buffer.from("a short text");
  const half = Buffer.alloc(200_000, "c").subarray(0, 100_000);
  releaseMemory([large, large, most, pooled, half]);
  expect([large, most, pooled, half].map(({ length }) => length)).toEqual([0, 0, 12, 100_000]);
  expect(pooled.toString()).toBe("a short text");
});

it("releases the bytes of a decoded message, whose fields of bytes get memory of their own", () => {
  const bytes = Buffer.allocUnsafeSlow(200_000).fill("a");
  const message = { parts: [{ kind: { case: "image", value: { data: bytes.subarray(10, 90_000) } } }], name: "b" };
  releaseDecoded(bytes, message);
  expect(bytes).toHaveLength(0);
  const { data } = message.parts[0]!.kind.value;
  expect(Buffer.from(data).equals(Buffer.alloc(89_990, "a"))).toBe(true);
});

it("leaves the memory of a decoded message to the field that has most of it, and gives others their own", () => {
  const bytes = Buffer.allocUnsafeSlow(200_000).fill("a");
  const message = { picture: bytes.subarray(0, 150_000), small: bytes.subarray(150_000, 150_003) };
  releaseDecoded(bytes, message);
  expect(message.picture.buffer).toBe(bytes.buffer);
  releaseMemory([message.picture]);
  expect([bytes.length, Buffer.from(message.small).toString()]).toEqual([0, "aaa"]);
});
