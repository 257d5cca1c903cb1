import { spawnSync } from "node:child_process";
import { join } from "node:path";
import { beforeEach, describe, expect, it } from "vitest";
import { idleMemoryChore } from "../../src/gateway/idle-memory.ts";

const MIB = 1024 * 1024;
const { signal } = new AbortController();

describe("memory that is given back", () => {
  const calls = { active: 0, opened: 0 };
  let heapMiB = 0;
  let collections = 0;
  const collect = async (): Promise<void> => {
    collections += 1;
    await Promise.resolve();
    heapMiB = 20;
  };
  const chore = (): ReturnType<typeof idleMemoryChore> =>
    idleMemoryChore({ calls, heapBytes: () => heapMiB * MIB, collect });

  beforeEach(() => {
    Object.assign(calls, { active: 0, opened: 0 });
    heapMiB = 100;
    collections = 0;
  });

  it("is what a start and a busy time leave, once each", async () => {
    const { run } = chore();
    expect([await run(signal), await run(signal)]).toEqual([80, 0]);
    calls.opened += 1000;
    heapMiB = 120;
    expect([await run(signal), await run(signal), await run(signal)]).toEqual([0, 100, 0]);
  });

  it("waits until no call is under way, and none has been since the last look", async () => {
    const { run } = chore();
    calls.active = 1;
    expect(await run(signal)).toBe(0);
    calls.active = 0;
    calls.opened += 1;
    expect(await run(signal)).toBe(0);
    expect(await run(signal)).toBe(80);
  });

  it("is given back in the next pause when calls came before all of it was", async () => {
    let collected = (): void => undefined;
    const { run } = idleMemoryChore({
      calls,
      heapBytes: () => heapMiB * MIB,
      collect: () => {
        collections += 1;
        return new Promise((resolve) => (collected = resolve));
      },
    });
    const first = run(signal);
    calls.opened += 1;
    heapMiB = 150;
    collected();
    expect(await first).toBe(0);
    expect([await run(signal), collections]).toEqual([0, 1]);
    const second = run(signal);
    heapMiB = 20;
    collected();
    expect([await second, collections]).toEqual([130, 2]);
  });

  it("is left alone when it is little", async () => {
    const { run } = chore();
    await run(signal);
    heapMiB = 30;
    expect(await run(signal)).toBe(0);
    expect(collections).toBe(1);
  });

  it("is left alone by a Node that cannot be asked to collect", async () => {
    const { run } = idleMemoryChore({ calls, heapBytes: () => heapMiB * MIB, collect: undefined });
    expect(await run(signal)).toBe(0);
  });

  it("is given back by a real heap", () => {
    const module = join(import.meta.dirname, "../../src/gateway/idle-memory.ts");
    const code = `
      const { idleMemoryChore, ownHeap } = await import(${JSON.stringify(module)});
      let kept = Array.from({ length: 1_000_000 }, (_, index) => ({ index }));
      kept = undefined;
      const before = ownHeap.heapBytes();
      const awake = setInterval(() => undefined, 1_000);
      const given = await idleMemoryChore({ calls: { active: 0, opened: 0 }, ...ownHeap }).run(new AbortController().signal);
      clearInterval(awake);
      console.log(JSON.stringify({ given, less: before - ownHeap.heapBytes() }));`;
    const { stdout } = spawnSync(process.execPath, ["--expose-gc", "--input-type=module", "-e", code], {
      encoding: "utf8",
    });
    const { given, less } = JSON.parse(stdout) as { given: number; less: number };
    expect(given).toBeGreaterThan(16);
    expect(less).toBeGreaterThan(16 * MIB);
  });
});
