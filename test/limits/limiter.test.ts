import { describe, expect, it, onTestFinished } from "vitest";
import { Failure } from "../../src/core/failure.ts";
import type { Demand } from "../../src/core/limiter.ts";
import { type Limits, NO_LIMITS, type Principal } from "../../src/core/principal.ts";
import type { BudgetDecision, BudgetDemand, BudgetStore } from "../../src/limits/budgets.ts";
import { createLimiter } from "../../src/limits/limiter.ts";
import { createMemoryRates } from "../../src/limits/memory.ts";
import { LEASE_MS, type RateStore } from "../../src/limits/rates.ts";
import { FakeClock } from "../support/fake-clock.ts";

interface Given {
  readonly key?: Partial<Limits>;
  readonly account?: Partial<Limits>;
  readonly defaults?: Partial<Limits>;
  /** What is spent and held by each subject. Default: nothing. */
  readonly taken?: number;
  readonly decide?: (demand: BudgetDemand) => Promise<BudgetDecision>;
}

/** A limiter on in-memory rates and budgets, and the calls of its stores. */
function createWorld({ key = {}, account = {}, defaults = {}, taken = 0, decide }: Given) {
  const clock = new FakeClock(Date.UTC(2026, 10, 21));
  const memory = createMemoryRates({ clock, burstMs: 60_000 });
  const asked = { takes: 0, held: [] as BudgetDemand[], cancelled: [] as string[] };
  const rates: RateStore = {
    ...memory,
    take(demand) {
      asked.takes += 1;
      return memory.take(demand);
    },
  };
  const budgets: BudgetStore = {
    async hold(demand) {
      asked.held.push(demand);
      return (await decide?.(demand)) ?? { admitted: true };
    },
    cancel: async (id) => void asked.cancelled.push(id),
    reap: async () => 0,
  };
  const limiter = createLimiter({
    rates,
    budgets,
    spending: async (subjects) => subjects.map(() => ({ spentMicroUsd: taken - 1, heldMicroUsd: 1 })),
    defaults: { ...NO_LIMITS, ...defaults },
    burstMs: 60_000,
    clock,
    replicaId: "one",
  });
  onTestFinished(() => limiter.close());
  const principal: Principal = {
    keyId: "k1",
    keyFamilyId: "k1",
    keyName: "test",
    accountId: "a1",
    models: undefined,
    capabilities: new Set(["chat"]),
    limits: { ...NO_LIMITS, ...key },
    accountLimits: { ...NO_LIMITS, ...account },
  };
  let count = 0;
  const reserve = (demand: Partial<Demand> = {}) => {
    count += 1;
    const completionId = `c${count}`;
    return limiter.reserve({ principal, completionId, tokens: 100, costMicroUsd: 10, lastsMs: 600_000, ...demand });
  };
  return { asked, clock, limiter, principal, reserve };
}

async function failureOf(work: Promise<unknown>): Promise<Failure> {
  const reason: unknown = await work.then(
    () => undefined,
    (error: unknown) => error,
  );
  if (!(reason instanceof Failure)) throw new Error("it did not fail");
  return reason;
}

describe("a limiter", () => {
  it("calls no store for a principal without limits", async () => {
    const { asked, reserve, limiter, principal } = createWorld({});
    const reservation = await reserve({ costMicroUsd: undefined });
    reservation.release(5);
    expect(reservation.facts).toEqual({ requests: undefined, tokens: undefined });
    expect(limiter.peek(principal)).toEqual(reservation.facts);
    expect(asked).toEqual({ takes: 0, held: [], cancelled: [] });
  });

  it("refuses with the limit, the amount left and the time to wait", async () => {
    const { reserve } = createWorld({ key: { requestsPerMinute: 60 } });
    for (let index = 0; index < 60; index += 1) await reserve();
    const failure = await failureOf(reserve());
    expect(failure).toMatchObject({
      code: "rate_limited",
      message: "Rate limit reached for this API key: 60 requests per minute. Try again in 1 s.",
      retryAfterMs: 1000,
      limits: { requests: { limit: 60, remaining: 0, resetMs: 60_000 }, tokens: undefined },
    });
    expect(failure.with({ attempts: [] }).limits).toBe(failure.limits);
  });

  it.each([
    [{ tokensPerMinute: 150 }, "150 tokens per minute, and this request may take 100. Try again in 20 s."],
    [{ concurrentRequests: 1 }, "1 request at a time. Try again in 1 s."],
  ])("names the limit of the account: %j", async (account, words) => {
    const { reserve } = createWorld({ account });
    await reserve();
    expect((await failureOf(reserve())).message).toBe(`Rate limit reached for this account: ${words}`);
  });

  it("takes the defaults for an account field by field, and not for a key", async () => {
    const { reserve } = createWorld({
      account: { requestsPerMinute: 10 },
      defaults: { requestsPerMinute: 5, tokensPerMinute: 1000 },
    });
    const { facts } = await reserve();
    expect(facts).toEqual({
      requests: { limit: 10, remaining: 9, resetMs: 6000 },
      tokens: { limit: 1000, remaining: 900, resetMs: 6000 },
    });
  });

  it("returns the level of the subject with less left, and updates it with later requests", async () => {
    const { reserve, limiter, principal, clock } = createWorld({
      key: { requestsPerMinute: 10 },
      account: { requestsPerMinute: 100 },
    });
    expect(limiter.peek(principal).requests).toEqual({ limit: 10, remaining: 10, resetMs: 0 });
    const { facts } = await reserve();
    expect(facts.requests).toEqual({ limit: 10, remaining: 9, resetMs: 6000 });
    clock.advance(4000);
    expect(limiter.peek(principal).requests).toEqual({ limit: 10, remaining: 9, resetMs: 2000 });
    clock.advance(2000);
    expect(limiter.peek(principal).requests).toEqual({ limit: 10, remaining: 10, resetMs: 0 });
  });

  it("returns unused tokens, once", async () => {
    const { reserve } = createWorld({ key: { tokensPerMinute: 1000, concurrentRequests: 1 } });
    const first = await reserve({ tokens: 600 });
    first.release(100);
    first.release(100);
    expect((await reserve({ tokens: 100 })).facts.tokens?.remaining).toBe(800);
  });

  it("occupies a concurrency slot until release, for at most the longest duration of a request", async () => {
    const { reserve, clock } = createWorld({ key: { concurrentRequests: 1 } });
    await reserve({ lastsMs: 5 * LEASE_MS });
    await clock.pass(5 * LEASE_MS - 1);
    expect((await failureOf(reserve())).code).toBe("rate_limited");
    await clock.pass(LEASE_MS + 1);
    await reserve();
  });
});

describe("a limiter with budgets", () => {
  const budget = { monthlyBudgetMicroUsd: 5_000_000 };

  it("holds the maximum cost for the key and for its account", async () => {
    const { asked, reserve } = createWorld({ key: budget, defaults: { monthlyBudgetMicroUsd: 9_000_000 } });
    await reserve({ costMicroUsd: 1234 });
    expect(asked.held).toEqual([
      {
        id: "c1",
        holds: [
          { subject: "key:k1", limitMicroUsd: 5_000_000 },
          { subject: "account:a1", limitMicroUsd: 9_000_000 },
        ],
        amountMicroUsd: 1234,
        lastsMs: 600_000,
        replica: "one",
      },
    ]);
  });

  it.each([
    [5_000_000, "is spent."],
    [
      4_987_000,
      "has no room for this request, which may cost 0.0135 USD (less with a lower max_tokens): " +
        "4.987 USD are spent or held for requests under way.",
    ],
  ])("reports when a budget of which %d is spent restarts, and counts the request", async (taken, state) => {
    const refusal: BudgetDecision = {
      admitted: false,
      subject: "key:k1",
      limitMicroUsd: 5_000_000,
      takenMicroUsd: taken,
    };
    const limits = { ...budget, requestsPerMinute: 10, tokensPerMinute: 1000, concurrentRequests: 1 };
    const { reserve, limiter, principal } = createWorld({ key: limits, decide: async () => refusal });
    const failure = await failureOf(reserve({ costMicroUsd: 13_500 }));
    expect(failure).toMatchObject({
      code: "budget_spent",
      message: `The monthly budget of this API key, 5.00 USD, ${state} It begins anew on 1 December 2026 (UTC).`,
      retryAfterMs: 10 * 86_400_000,
    });
    expect(failure.message).not.toMatch(/quota|billing|credit/i);
    await failureOf(reserve());
    // With the slot or the tokens still taken, this would be another failure.
    expect((await failureOf(reserve())).code).toBe("budget_spent");
    expect(limiter.peek(principal).requests?.remaining).toBe(7);
  });

  it("refuses requests when budgets cannot be checked", async () => {
    const { asked, reserve } = createWorld({
      key: { ...budget, concurrentRequests: 1 },
      decide: () => Promise.reject(new Error("no database")),
    });
    for (let index = 0; index < 3; index += 1) {
      const failure = await failureOf(reserve());
      expect(failure).toMatchObject({
        code: "overloaded",
        message: expect.stringContaining("Budgets cannot be checked"),
      });
    }
    expect(asked.cancelled).toEqual(["c1", "c2", "c3"]);
  });

  it("permits no model without a price under a budget", async () => {
    const { limiter, principal, reserve } = createWorld({ account: { ...budget, requestsPerMinute: 5 } });
    const failure = await failureOf(reserve({ costMicroUsd: undefined }));
    expect(failure).toMatchObject({ code: "permission_denied", message: expect.stringContaining("has no price") });
    expect(limiter.peek(principal).requests).toMatchObject({ remaining: 4 });
  });

  it("does not check budgets for requests without cost", async () => {
    const { asked, reserve } = createWorld({ key: budget });
    await reserve({ costMicroUsd: 0 });
    expect(asked.held).toEqual([]);
  });

  describe("that previews a demand", () => {
    const demandOf = (principal: Principal, tokens: number, costMicroUsd?: number): Demand => ({
      principal,
      completionId: "c",
      tokens,
      costMicroUsd,
      lastsMs: 0,
    });

    it("names what would refuse it, in the same words, and takes nothing", async () => {
      const given = { key: { ...budget, tokensPerMinute: 1_000 }, taken: 4_999_995 };
      const { asked, limiter, principal, reserve } = createWorld(given);
      expect(await limiter.preview(demandOf(principal, 1_000, 5))).toEqual([]);
      const [money, ...others] = await limiter.preview(demandOf(principal, 1_000, 6));
      expect(others).toEqual([]);
      expect(money).toMatchObject({
        code: "budget_spent",
        message: expect.stringContaining("has no room for this request"),
      });
      expect(asked).toMatchObject({ takes: 0, held: [] });
      await reserve({ tokens: 600, costMicroUsd: 0 });
      const [tokens] = await limiter.preview(demandOf(principal, 500, 0));
      expect(tokens).toEqual(await failureOf(reserve({ tokens: 500, costMicroUsd: 0 })));
      expect(await limiter.preview(demandOf(principal, 400, 0))).toEqual([]);
    });

    it("names a budget without a price, and no limit for a principal without any", async () => {
      const { limiter, principal } = createWorld({ key: budget });
      expect(await limiter.preview(demandOf(principal, 1))).toMatchObject([{ code: "permission_denied" }]);
      const free = createWorld({});
      expect(await free.limiter.preview(demandOf(free.principal, 1e9))).toEqual([]);
    });
  });
});
