import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { LEASE_MS, type RateDemand, type RateSubject } from "../../src/limits/rates.ts";
import type { SubjectState } from "../../src/limits/state.ts";
import { demandOf, subjectOf } from "./demands.ts";
import { decide, giveBack, renewLeases } from "./states.ts";

const MINUTE = 60_000;

/** Keeps states as a database would. */
function createKeeper(burstMs = MINUTE) {
  const states = new Map<string, SubjectState>();
  const keep = (changed: ReadonlyMap<string, SubjectState>): void => {
    for (const [subject, state] of changed) states.set(subject, JSON.parse(JSON.stringify(state)) as SubjectState);
  };
  return {
    states,
    take(demand: RateDemand, nowMs: number) {
      const { decision, states: changed } = decide(states, demand, { nowMs, burstMs });
      keep(changed);
      return decision;
    },
    release(
      demand: RateDemand,
      usedTokens: number,
      { nowMs, usedRequests = 1 }: { nowMs: number; usedRequests?: 0 | 1 },
    ) {
      const { id, subjects, tokens } = demand;
      keep(giveBack(states, { id, subjects, reservedTokens: tokens, usedTokens, usedRequests }, { nowMs, burstMs }));
    },
    renew: (demand: RateDemand, nowMs: number) =>
      keep(
        renewLeases(
          states,
          demand.subjects.map(({ subject, accountId }) => ({ id: demand.id, subject, accountId })),
          { nowMs },
        ),
      ),
  };
}

describe("a bucket of requests", () => {
  const key = subjectOf("key:1", { requestsPerMinute: 3 });

  it("admits a minute's requests at once, and the next one exactly at the returned time", () => {
    const keeper = createKeeper();
    for (let index = 0; index < 3; index += 1) expect(keeper.take(demandOf([key]), 5000).admitted).toBe(true);
    const refused = keeper.take(demandOf([key]), 5000);
    expect(refused).toMatchObject({ admitted: false, subject: "key:1", limit: "requests", retryAfterMs: 20_000 });
    expect(keeper.take(demandOf([key]), 24_999)).toMatchObject({ admitted: false, retryAfterMs: 1 });
    expect(keeper.take(demandOf([key]), 25_000).admitted).toBe(true);
  });

  it("holds at least one request, however short the burst", () => {
    const keeper = createKeeper(1000);
    expect(keeper.take(demandOf([key]), 0).admitted).toBe(true);
    expect(keeper.take(demandOf([key]), 0)).toMatchObject({ admitted: false, retryAfterMs: 20_000 });
  });

  it("keeps its level when the limit changes, up to its new size", () => {
    const keeper = createKeeper();
    const wide = subjectOf("key:1", { requestsPerMinute: 100 });
    keeper.take(demandOf([wide]), 0);
    expect(keeper.take(demandOf([key]), 0).levels[0]?.requests).toEqual({ capacity: 3, level: 2, perMinute: 3 });
    expect(keeper.take(demandOf([wide]), 0).levels[0]?.requests).toEqual({ capacity: 100, level: 1, perMinute: 100 });
  });

  it("returns the request itself if it was not started", () => {
    const keeper = createKeeper();
    const demand = demandOf([key]);
    keeper.take(demand, 0);
    keeper.release(demand, 0, { nowMs: 0, usedRequests: 0 });
    expect(keeper.take(demandOf([key]), 0).levels[0]?.requests?.level).toBe(2);
  });

  it("neither fills nor stops for more than a minute when the clock moves back", () => {
    const keeper = createKeeper();
    for (let index = 0; index < 3; index += 1) keeper.take(demandOf([key]), 10_000_000);
    expect(keeper.take(demandOf([key]), 9_990_000)).toMatchObject({ admitted: false, retryAfterMs: 30_000 });
    expect(keeper.take(demandOf([key]), 1_000_000)).toMatchObject({ admitted: false, retryAfterMs: 20_000 });
    expect(keeper.take(demandOf([key]), 1_020_000).admitted).toBe(true);
  });
});

describe("a bucket of tokens", () => {
  const key = subjectOf("key:1", { tokensPerMinute: 600 });

  it("gives a demand beyond its size everything when it is full", () => {
    const keeper = createKeeper();
    expect(keeper.take(demandOf([key], 100_000), 0).levels[0]?.tokens?.level).toBe(0);
    expect(keeper.take(demandOf([key], 100_000), 0)).toMatchObject({ limit: "tokens", retryAfterMs: MINUTE });
    expect(keeper.take(demandOf([key], 100_000), MINUTE).admitted).toBe(true);
  });

  it("holds a minute's tokens, however short the burst", () => {
    expect(createKeeper(1000).take(demandOf([key], 600), 0).admitted).toBe(true);
  });

  it("gets unused tokens back, and goes into debt for tokens beyond the reservation", () => {
    const keeper = createKeeper();
    const [thrifty, greedy] = [demandOf([key], 500), demandOf([key], 100)];
    keeper.take(thrifty, 0);
    keeper.take(greedy, 0);
    keeper.release(thrifty, 200, { nowMs: 0 });
    keeper.release(greedy, 700, { nowMs: 0 });
    expect(keeper.take(demandOf([key], 1), 0)).toMatchObject({ admitted: false, retryAfterMs: 30_100 });
    expect(keeper.take(demandOf([key], 0), 0).admitted).toBe(true);
  });

  it("forgives a debt that would last for more than an hour", () => {
    const keeper = createKeeper();
    const demand = demandOf([key], 1);
    keeper.take(demand, 0);
    keeper.release(demand, 1e15, { nowMs: 0 });
    expect(keeper.take(demandOf([key], 1), 3_600_100).admitted).toBe(true);
  });
});

describe("concurrency slots", () => {
  const key = subjectOf("key:1", { concurrentRequests: 2 });

  it("are held until they are released", () => {
    const keeper = createKeeper();
    const demands = [demandOf([key]), demandOf([key])] as const;
    for (const demand of demands) expect(keeper.take(demand, 0).admitted).toBe(true);
    expect(keeper.take(demandOf([key]), 0)).toMatchObject({ limit: "concurrency", retryAfterMs: 1000 });
    keeper.release(demands[0], 0, { nowMs: 0 });
    expect(keeper.take(demandOf([key]), 0).admitted).toBe(true);
  });

  it("expire when their lease is not renewed", () => {
    const keeper = createKeeper();
    const [silent, alive] = [demandOf([key]), demandOf([key])];
    keeper.take(silent, 0);
    keeper.take(alive, 0);
    keeper.renew(alive, 10_000);
    expect(keeper.take(demandOf([key]), LEASE_MS - 1).admitted).toBe(false);
    expect(keeper.take(demandOf([key]), LEASE_MS).admitted).toBe(true);
    expect(keeper.take(demandOf([key]), LEASE_MS).admitted).toBe(false);
  });

  it("are held for at most a lease when the clock moves back", () => {
    const keeper = createKeeper();
    keeper.take(demandOf([key]), 10_000_000);
    keeper.take(demandOf([key]), 10_000_000);
    expect(keeper.take(demandOf([key]), 0).admitted).toBe(false);
    expect(keeper.take(demandOf([key]), LEASE_MS).admitted).toBe(true);
  });
});

describe("several subjects", () => {
  it("returns the one with the longest wait, and takes from none", () => {
    const keeper = createKeeper();
    const key = subjectOf("key:1", { requestsPerMinute: 60, concurrentRequests: 5 });
    const account = subjectOf("account:1", { requestsPerMinute: 1 });
    keeper.take(demandOf([account]), 0);
    const refused = keeper.take(demandOf([key, account]), 0);
    expect(refused).toMatchObject({ admitted: false, subject: "account:1", retryAfterMs: MINUTE });
    expect(refused.levels[0]?.requests?.level).toBe(60);
    expect(keeper.states.get("key:1")?.places).toEqual({});
  });
});

describe("a subject under any sequence of demands", () => {
  const limits = fc.record({
    requestsPerMinute: fc.option(fc.integer({ min: 1, max: 5000 }), { nil: undefined }),
    tokensPerMinute: fc.option(fc.integer({ min: 1, max: 100_000 }), { nil: undefined }),
    concurrentRequests: fc.option(fc.integer({ min: 1, max: 20 }), { nil: undefined }),
  });
  const steps = fc.array(
    fc.record({ waitMs: fc.integer({ min: 0, max: 5000 }), tokens: fc.integer({ min: 0, max: 20_000 }) }),
    { maxLength: 150 },
  );
  const bursts = fc.integer({ min: 1, max: 120_000 });

  it("admits at most a full bucket and its refill in any period", () => {
    const check = (
      given: Omit<RateSubject, "subject" | "accountId">,
      moves: { waitMs: number; tokens: number }[],
      burstMs: number,
    ) => {
      const subject = subjectOf("key:1", { ...given, concurrentRequests: undefined });
      const keeper = createKeeper(burstMs);
      const taken: { atMs: number; requests: number; tokens: number }[] = [];
      let atMs = 0;
      for (const { waitMs, tokens } of moves) {
        atMs += waitMs;
        const { admitted, levels } = keeper.take(demandOf([subject], tokens), atMs);
        const most = levels[0]?.tokens?.capacity ?? Infinity;
        if (admitted) taken.push({ atMs, requests: 1, tokens: Math.min(tokens, most) });
      }
      for (const kind of ["requests", "tokens"] as const) {
        const perMinute = given[kind === "requests" ? "requestsPerMinute" : "tokensPerMinute"];
        if (perMinute === undefined) continue;
        const least = kind === "requests" ? 1 : perMinute;
        const capacity = Math.max((perMinute * burstMs) / MINUTE, least);
        for (let from = 0; from < taken.length; from += 1) {
          let sum = 0;
          for (const one of taken.slice(from)) {
            sum += one[kind];
            const lastedMs = one.atMs - taken[from]!.atMs;
            expect(sum).toBeLessThanOrEqual(capacity + (perMinute * lastedMs) / MINUTE + 1e-6);
          }
        }
      }
    };
    fc.assert(fc.property(limits, steps, bursts, check), { numRuns: 60 });
  });

  it("takes from all subjects or from none, and admits after exactly the returned time", () => {
    const check = (one: object, other: object, moves: { waitMs: number; tokens: number }[]) => {
      const subjects = [subjectOf("key:1", one), subjectOf("account:1", other)];
      const keeper = createKeeper();
      let atMs = 0;
      for (const { waitMs, tokens } of moves) {
        atMs += waitMs;
        const demand = demandOf(subjects, tokens);
        const decision = keeper.take(demand, atMs);
        const held = subjects.map(({ subject }) => demand.id in keeper.states.get(subject)!.places);
        const limited = subjects.map(({ concurrentRequests }) => concurrentRequests !== undefined);
        expect(held).toEqual(limited.map((is) => is && decision.admitted));
        if (decision.admitted || decision.limit === "concurrency" || decision.retryAfterMs <= 1) continue;
        const early = decide(keeper.states, demand, { nowMs: atMs + decision.retryAfterMs - 1, burstMs: MINUTE });
        expect(early.decision.admitted).toBe(false);
        const onTime = decide(keeper.states, demand, { nowMs: atMs + decision.retryAfterMs, burstMs: MINUTE });
        expect(onTime.decision.admitted || onTime.decision.limit === "concurrency").toBe(true);
      }
    };
    fc.assert(fc.property(limits, limits, steps, check), { numRuns: 60 });
  });

  it("is unchanged after a complete release", () => {
    const check = (given: object, demands: { tokens: number }[]) => {
      const subject = subjectOf("key:1", given);
      const keeper = createKeeper();
      const probe = () => decide(keeper.states, demandOf([subject]), { nowMs: 0, burstMs: MINUTE }).decision.levels;
      const full = probe();
      const admitted = demands
        .map(({ tokens }) => demandOf([subject], tokens))
        .filter((demand) => keeper.take(demand, 0).admitted);
      for (const demand of admitted) keeper.release(demand, 0, { nowMs: 0, usedRequests: 0 });
      expect(probe()).toEqual(full);
      expect(keeper.states.get("key:1")?.places ?? {}).toEqual({});
    };
    fc.assert(fc.property(limits, steps, check), { numRuns: 60 });
  });
});
