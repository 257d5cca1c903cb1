import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const IDLE_MS = 300;

/** Fills the heap, works for a while, and prints how large it was, is after it was collected, and how long nothing was done before. */
const CODE = `
  const collect = globalThis.gc;
  const heapMiB = () => process.memoryUsage().heapTotal / 1024 / 1024;
  let workedMs = performance.now();
  let idleMs;
  let minor = 0;
  globalThis.gc = (options) => {
    idleMs ??= performance.now() - workedMs;
    collect(options);
    if (options.type !== "minor" || ++minor < 3) return;
    clearInterval(working);
    console.log(JSON.stringify({ fullMiB, leftMiB: heapMiB(), idleMs }));
  };
  const { giveBackWhenIdle } = await import(process.argv[1]);
  const noteWork = giveBackWhenIdle(${IDLE_MS});
  const kept = Array.from({ length: 1_000_000 }, (_, index) => ({ index }));
  const fullMiB = heapMiB();
  let left = 10;
  const working = setInterval(() => {
    if (left-- <= 0) return;
    workedMs = performance.now();
    noteWork();
  }, 50);
  setTimeout(() => process.exit(1), 30_000).unref();
`;

describe("the heap of the database's thread", () => {
  it("is given back when nothing has been done for a while, and not before", () => {
    const module = join(import.meta.dirname, "../../src/store/idle-heap.ts");
    const args = ["--expose-gc", "--input-type=module", "-e", CODE, module];
    const { stdout, stderr } = spawnSync(process.execPath, args, { encoding: "utf8" });
    expect(stderr).toBe("");
    const { fullMiB, leftMiB, idleMs } = JSON.parse(stdout) as Record<"fullMiB" | "leftMiB" | "idleMs", number>;
    expect(leftMiB).toBeLessThan(fullMiB / 2);
    expect(idleMs).toBeGreaterThanOrEqual(IDLE_MS - 1);
  });
});
