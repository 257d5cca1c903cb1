import { describe, expect, it, onTestFinished } from "vitest";
import { exchangeKeyChanges } from "../../src/gateway/key-changes.ts";
import type { ChangesPage } from "../../src/limits/redis.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** A Redis of which each page has two changes. */
function setUp() {
  const clock = new FakeClock();
  const redis = { isAway: false, aheadMs: 0, noted: [] as { hash: string; atMs: number }[] };
  const exchange = async (changed: readonly string[], sinceMs: number): Promise<ChangesPage> => {
    if (redis.isAway) throw new Error("away");
    const nowMs = clock.now() + redis.aheadMs;
    redis.noted.push(...changed.map((hash) => ({ hash, atMs: nowMs })));
    const found = redis.noted.filter(({ atMs }) => atMs >= sinceMs);
    const changes = found.slice(0, 2);
    if (found.length <= 2) return { changes, nowMs, sinceMs: nowMs, hasMore: false };
    return { changes, nowMs, sinceMs: Math.max(changes.at(-1)!.atMs, sinceMs + 1), hasMore: true };
  };
  const start = async () => {
    const heard: string[] = [];
    const changedAtMs: number[] = [];
    let tell: (hash: string | undefined) => void = () => undefined;
    const stop = await exchangeKeyChanges({
      exchange,
      feed: {
        subscribe(changed) {
          tell = changed;
          return () => undefined;
        },
      },
      keys: {
        invalidateSince(hash, atMs) {
          heard.push(hash);
          changedAtMs.push(atMs);
        },
      },
      clock,
    });
    onTestFinished(stop);
    return { heard, changedAtMs, stop, tell: (hash: string | undefined) => tell(hash) };
  };
  return { clock, redis, start };
}

describe("changed keys", () => {
  it("reach a process without notifications of the database within a second", async () => {
    const { clock, start } = setUp();
    const [one, two] = [await start(), await start()];
    one.tell("a");
    await clock.pass(1_000);
    await clock.pass(1_000);
    expect(two.heard).toContain("a");
  });

  it("of the time before its start reach a process before it serves, all pages", async () => {
    const { clock, redis, start } = setUp();
    for (const hash of ["a", "b", "c", "d", "e"]) {
      redis.noted.push({ hash, atMs: clock.now() });
      clock.advance(10);
    }
    expect(new Set((await start()).heard)).toEqual(new Set(["a", "b", "c", "d", "e"]));
  });

  it("have their age by the clock of Redis, which may differ, and go back with a new master", async () => {
    const { clock, redis, start } = setUp();
    redis.aheadMs = -600_000;
    const one = await start();
    one.tell("a");
    await clock.pass(1_000);
    expect(one.changedAtMs[0]).toBeGreaterThan(clock.now() - 1_000);
    redis.aheadMs = -900_000;
    one.heard.length = 0;
    redis.noted.push({ hash: "b", atMs: clock.now() + redis.aheadMs });
    await clock.pass(1_000);
    expect(one.heard).toContain("b");
  });

  it("wait while Redis is unavailable", async () => {
    const { clock, redis, start } = setUp();
    redis.isAway = true;
    const one = await start();
    one.tell("a");
    one.tell(undefined);
    await clock.pass(1_000);
    redis.isAway = false;
    await clock.pass(1_000);
    expect(redis.noted.map(({ hash }) => hash)).toEqual(["a"]);
    one.stop();
    await clock.pass(0);
    expect(clock.pending).toBe(0);
  });
});
