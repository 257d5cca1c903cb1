import { describe, expect, it } from "vitest";
import { Failure } from "../../src/core/failure.ts";
import { createMemoryRates } from "../../src/limits/memory.ts";
import { type RateStore, RateStoreError, type RateSubject } from "../../src/limits/rates.ts";
import { createRequestRate, KnownLevels } from "../../src/limits/request-rate.ts";
import { somebody } from "../support/core-ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { demandOf, subjectOf } from "./demands.ts";

const WRONG = new Failure("invalid_request", "It is wrong.");

const createWorld = (...subjects: RateSubject[]) => createWorldWith({ burstMs: 60_000 }, ...subjects);

function createWorldWith({ burstMs }: { readonly burstMs: number }, ...subjects: RateSubject[]) {
  const clock = new FakeClock();
  const world = { subjects, away: false };
  const memory = createMemoryRates({ clock, burstMs });
  const rates: RateStore = {
    ...memory,
    async take(demand) {
      if (world.away) throw new RateStoreError("away");
      return memory.take(demand);
    },
  };
  const known = new KnownLevels(burstMs);
  const rate = createRequestRate({ rates, known, subjectsOf: () => world.subjects, burstMs, clock });
  return { clock, world, rate, rates };
}

/** Returns the refusal of the next request; undefined when it is admitted. */
function refusalOf({ rate }: ReturnType<typeof createWorld>): Failure | undefined {
  try {
    rate.requireRequestRate(somebody);
    return undefined;
  } catch (reason) {
    return reason as Failure;
  }
}

const settled = (): Promise<void> => new Promise((resolve) => setImmediate(resolve));

describe("the request rate of refused requests", () => {
  it("is used up by one invalid request, and refills", async () => {
    const world = createWorld(subjectOf("key:1", { requestsPerMinute: 1, concurrentRequests: 1 }));
    expect(refusalOf(world)).toBeUndefined();
    world.rate.countRefused(somebody, WRONG);
    for (const _ of [1, 2]) {
      const refusal = refusalOf(world)!;
      expect([refusal.code, refusal.retryAfterMs]).toEqual(["rate_limited", 60_000]);
      expect(refusal.message).toBe("Rate limit reached for this API key: 1 request per minute. Try again in 60 s.");
      expect(refusal.limits?.requests).toMatchObject({ limit: 1, remaining: 0 });
      await settled();
    }
    world.clock.advance(59_000);
    expect(refusalOf(world)?.retryAfterMs).toBe(1000);
    world.clock.advance(1000);
    expect(refusalOf(world)).toBeUndefined();
  });

  it("is also that of the account", async () => {
    const world = createWorld(
      subjectOf("key:1", { requestsPerMinute: 100 }),
      subjectOf("account:1", { requestsPerMinute: 2 }),
    );
    world.rate.countRefused(somebody, WRONG);
    await settled();
    expect(refusalOf(world)).toBeUndefined();
    world.rate.countRefused(somebody, WRONG);
    await settled();
    expect(refusalOf(world)?.message).toContain("this account: 2 requests per minute");
  });

  it.each(["request_too_large", "model_not_found", "permission_denied", "stopped"] as const)("counts %s", (code) => {
    const world = createWorld(subjectOf("key:1", { requestsPerMinute: 1 }));
    world.rate.countRefused(somebody, new Failure(code, "It is wrong."));
    expect(refusalOf(world)?.code).toBe("rate_limited");
  });

  it.each(["rate_limited", "overloaded", "cancelled", "deadline_exceeded", "internal", "upstream_timeout"] as const)(
    "does not count %s",
    async (code) => {
      const world = createWorld(subjectOf("key:1", { requestsPerMinute: 1 }));
      world.rate.countRefused(somebody, new Failure(code, "It is not wrong."));
      await settled();
      expect(refusalOf(world)).toBeUndefined();
      expect((await world.rates.take(demandOf(world.world.subjects))).admitted).toBe(true);
    },
  );

  it("takes no tokens and no slot", async () => {
    const world = createWorld(subjectOf("key:1", { requestsPerMinute: 9, tokensPerMinute: 10, concurrentRequests: 1 }));
    world.rate.countRefused(somebody, WRONG);
    await settled();
    expect((await world.rates.take(demandOf(world.world.subjects, 10))).admitted).toBe(true);
  });

  it("is not checked for a principal without a limit", async () => {
    const world = createWorld(subjectOf("key:1", { tokensPerMinute: 1 }));
    for (const _ of [1, 2, 3]) world.rate.countRefused(somebody, WRONG);
    await settled();
    expect(refusalOf(world)).toBeUndefined();
  });

  it("is read from the store again after the limit was raised", async () => {
    const world = createWorld(subjectOf("key:1", { requestsPerMinute: 1 }));
    world.rate.countRefused(somebody, WRONG);
    await settled();
    world.world.subjects = [subjectOf("key:1", { requestsPerMinute: 100 })];
    expect(refusalOf(world)).toBeUndefined();
  });

  it("is counted in this process while the store is unavailable", async () => {
    const world = createWorld(subjectOf("key:1", { requestsPerMinute: 2 }));
    world.world.away = true;
    world.rate.countRefused(somebody, WRONG);
    world.rate.countRefused(somebody, WRONG);
    await settled();
    expect(refusalOf(world)?.code).toBe("rate_limited");
  });

  it("admits at most its limit of invalid requests, whatever their rate", async () => {
    for (const perMinute of [1, 60, 600, 60_000, 1_000_000]) {
      // The burst of a second, at least one request.
      const world = createWorldWith({ burstMs: 1_000 }, subjectOf("key:1", { requestsPerMinute: perMinute }));
      const burst = Math.max(1, Math.floor(perMinute / 60));
      let read = 0;
      // 200 ms, with a request each 0.1 ms once the burst is used up.
      for (let at = 0; at < burst + 2000; at++) {
        if (at >= burst) world.clock.advance(0.1);
        if (refusalOf(world) !== undefined) continue;
        read += 1;
        world.rate.countRefused(somebody, WRONG);
        await Promise.resolve();
      }
      await settled();
      const came = (perMinute * 200) / 60_000;
      expect(read).toBeGreaterThanOrEqual(burst);
      expect(read).toBeLessThanOrEqual(burst + 1.2 * came + 2);
    }
  });
});
