import { describe, expect, it } from "vitest";
import { Failure } from "../../src/core/failure.ts";
import { createWorld, fails, serves, stream, type World } from "./routed.ts";

const unavailable = new Failure("upstream_unavailable", "It is down.", { transient: false });
const IDLE_MS = 60_000;

/** Checks the only model, which then answers, or fails with this. */
async function check(world: World, reason?: Failure): Promise<boolean | undefined> {
  const { router, clock, models } = world;
  const ask = async (): Promise<void> => {
    if (reason !== undefined) throw reason;
  };
  return clock.drive(router.check(models[0]!, { ask, idleMs: IDLE_MS, signal: new AbortController().signal }));
}

describe("a check", () => {
  it("is due when the model was not called for a time", async () => {
    const world = createWorld({ scripts: { a: [serves("hi")] } });
    expect(await check(world)).toBe(true);
    expect(await check(world)).toBeUndefined();
    world.clock.advance(IDLE_MS);
    await stream(world);
    expect(await check(world)).toBeUndefined();
    world.clock.advance(IDLE_MS);
    expect(await check(world, unavailable)).toBe(false);
  });

  it("opens the breaker, and closes it as a probe", async () => {
    const world = createWorld({ scripts: { a: [serves("hi")] }, breaker: { failures: 2, openMs: 1_000 } });
    const isOpen = (): boolean => world.router.openingOf(world.models[0]!) !== undefined;
    for (let count = 0; count < 2; count++) {
      expect(isOpen()).toBe(false);
      await check(world, unavailable);
      world.clock.advance(IDLE_MS);
    }
    expect(isOpen()).toBe(true);
    expect(await check(world)).toBe(true);
    expect(isOpen()).toBe(false);
  });

  it("is not made while the breaker is open", async () => {
    const world = createWorld({ scripts: { a: [fails(unavailable)] }, breaker: { failures: 1, openMs: IDLE_MS } });
    await stream(world);
    world.clock.advance(IDLE_MS / 2);
    expect(await check(world)).toBeUndefined();
  });

  it("says nothing when it fails because of itself", async () => {
    const world = createWorld({ scripts: { a: [serves("hi")] }, breaker: { failures: 1 } });
    expect(await check(world, new Failure("invalid_request", "The model cannot take it."))).toBeUndefined();
    expect(world.router.openingOf(world.models[0]!)).toBeUndefined();
  });

  it("ends after the time for the first content", async () => {
    const world = createWorld({ scripts: { a: [serves("hi")] } });
    const { router, clock, models } = world;
    const beganMs = clock.monotonic();
    const never = (): Promise<void> => new Promise(() => undefined);
    const checking = router.check(models[0]!, { ask: never, idleMs: 0, signal: new AbortController().signal });
    expect(await clock.drive(checking)).toBe(false);
    expect([clock.monotonic() - beganMs, clock.pending]).toEqual([60_000, 0]);
  });
});
