import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import { expect, it } from "vitest";
import { ownCopy } from "../../src/encoding/own-copy.ts";

setFlagsFromString("--expose-gc");
const collect = runInNewContext("gc") as () => void;

const MIB = 1024 * 1024;
const TEXTS = 16;

function heapBytes(): number {
  collect();
  return process.memoryUsage().heapUsed;
}

it("keeps nothing of the text that it was cut out of", () => {
  const before = heapBytes();
  const kept = Array.from({ length: TEXTS }, (_, at) =>
    ownCopy(
      String(at)
        .padEnd(4 * MIB, "x")
        .slice(0, 256),
    ),
  );
  expect(heapBytes() - before).toBeLessThan(TEXTS * MIB);
  expect(kept[7]).toBe("7".padEnd(256, "x"));
});

it("is well-formed", () => {
  expect(ownCopy("a\ud800b")).toBe("a\ufffdb");
});
