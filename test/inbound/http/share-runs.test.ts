import { describe, expect, it } from "vitest";
import { shareRuns } from "../../../src/inbound/http/share-runs.ts";

/** Runs that the test ends. */
function createRuns() {
  const begun: PromiseWithResolvers<number>[] = [];
  const ask = shareRuns(() => {
    const run = Promise.withResolvers<number>();
    begun.push(run);
    return run.promise;
  });
  return { begun, ask };
}

describe("shared runs", () => {
  it("serve all who ask before they begin, and later ones with the next run", async () => {
    const { begun, ask } = createRuns();
    const first = [ask(), ask()];
    await expect.poll(() => begun.length).toBe(1);
    const second = [ask(), ask(), ask()];
    begun[0]!.resolve(1);
    expect(await Promise.all(first)).toEqual([1, 1]);
    await expect.poll(() => begun.length).toBe(2);
    begun[1]!.resolve(2);
    expect(await Promise.all(second)).toEqual([2, 2, 2]);
    expect(begun).toHaveLength(2);
  });

  it("continue after one that has failed", async () => {
    const { begun, ask } = createRuns();
    const failed = ask();
    await expect.poll(() => begun.length).toBe(1);
    begun[0]!.reject(new Error("no"));
    await expect(failed).rejects.toThrow("no");
    const next = ask();
    await expect.poll(() => begun.length).toBe(2);
    begun[1]!.resolve(2);
    expect(await next).toBe(2);
  });

  it("take at most a tenth of the time", async () => {
    const runs: { readonly begunMs: number; readonly endedMs: number }[] = [];
    const ask = shareRuns(async () => {
      const begunMs = performance.now();
      while (performance.now() - begunMs < 5);
      runs.push({ begunMs, endedMs: performance.now() });
    });
    for (let count = 0; count < 4; count++) await ask();
    // A timer may be a millisecond early.
    for (const [index, { begunMs, endedMs }] of runs.slice(0, -1).entries())
      expect(runs[index + 1]!.begunMs - endedMs).toBeGreaterThan(Math.min(9 * (endedMs - begunMs), 1_000) - 2);
  });
});
