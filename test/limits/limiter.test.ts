import { describe, expect, it, onTestFinished } from "vitest";
import type { AttributionLimits } from "../../src/core/attribution.ts";
import { Failure } from "../../src/core/failure.ts";
import type { Demand } from "../../src/core/limiter.ts";
import { type Limits, NO_LIMITS, type Principal } from "../../src/core/principal.ts";
import type { BudgetDecision, BudgetDemand, BudgetStore } from "../../src/limits/budgets.ts";
import { createLimiter } from "../../src/limits/limiter.ts";
import { createMemoryRates } from "../../src/limits/memory.ts";
import { LEASE_MS, type RateStore } from "../../src/limits/rates.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { rejectionsOf } from "../support/errors.ts";

interface Given {
  readonly key?: Partial<Limits>;
  readonly account?: Partial<Limits>;
  readonly defaults?: Partial<Limits>;
  readonly attribution?: AttributionLimits;
  /** What is spent and held by each subject. Default: nothing. */
  readonly taken?: number;
  readonly decide?: (demand: BudgetDemand) => Promise<BudgetDecision>;
}

/** A limiter on in-memory rates and budgets, and the calls of its stores. */
function createWorld({ key = {}, account = {}, defaults = {}, attribution, taken = 0, decide }: Given) {
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
  let defaultLimits: Limits = { ...NO_LIMITS, ...defaults };
  const limiter = createLimiter({
    rates,
    budgets,
    spending: async (subjects) => subjects.map(() => ({ spentMicroUsd: taken - 1, heldMicroUsd: 1 })),
    defaults: () => defaultLimits,
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
    attributionLimits: attribution,
  };
  let count = 0;
  const reserve = (demand: Partial<Demand> = {}) => {
    count += 1;
    const completionId = `c${count}`;
    return limiter.reserve({ principal, completionId, tokens: 100, costMicroUsd: 10, lastsMs: 600_000, ...demand });
  };
  const changeDefaults = (limits: Partial<Limits>): void => void (defaultLimits = { ...NO_LIMITS, ...limits });
  return { asked, clock, limiter, principal, reserve, changeDefaults };
}

const failureOf = rejectionsOf(Failure);

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

  it("takes changed defaults for requests that begin after the change", async () => {
    const { reserve, changeDefaults, asked } = createWorld({
      account: { tokensPerMinute: 10_000 },
      defaults: { requestsPerMinute: 2, tokensPerMinute: 100 },
    });
    const [first] = [await reserve(), await reserve()];
    expect((await failureOf(reserve())).message).toMatch("2 requests per minute");
    changeDefaults({ concurrentRequests: 3, monthlyBudgetMicroUsd: 500 });
    // Those of before have no unit of concurrency.
    const later = [await reserve(), await reserve(), await reserve()];
    expect(later.map(({ facts }) => facts.requests)).toEqual([undefined, undefined, undefined]);
    expect((await failureOf(reserve())).message).toMatch("3 requests at a time");
    first.release(0);
    expect((await failureOf(reserve())).message).toMatch("3 requests at a time");
    changeDefaults({ concurrentRequests: 2 });
    later[0]!.release(0);
    expect((await failureOf(reserve())).message).toMatch("2 requests at a time");
    later[1]!.release(0);
    expect((await reserve()).facts.tokens).toMatchObject({ limit: 10_000 });
    expect(asked.held.map(({ holds }) => holds)).toEqual(
      [1, 2, 3].map(() => [{ subject: "account:a1", limitMicroUsd: 500 }]),
    );
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
        "4.987 USD are spent or held for requests in flight.",
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

describe("a limiter of end users and sessions", () => {
  const ann = { attribution: { endUser: "ann@example.com" } };
  const ben = { attribution: { endUser: "ben" } };

  it("gives each end user a rate, and reports the limits of the key", async () => {
    const { reserve } = createWorld({ key: { requestsPerMinute: 10 }, attribution: { endUserRequestsPerMinute: 2 } });
    for (let index = 0; index < 2; index += 1) await reserve(ann);
    expect(await failureOf(reserve(ann))).toMatchObject({
      code: "rate_limited",
      message: "Rate limit reached for this end user: 2 requests per minute. Try again in 30 s.",
      retryAfterMs: 30_000,
      limits: { requests: { limit: 10, remaining: 8 } },
    });
    expect((await reserve(ben)).facts.requests).toMatchObject({ limit: 10, remaining: 7 });
    expect((await reserve()).facts.requests).toMatchObject({ limit: 10, remaining: 6 });
  });

  it("returns the unused tokens of an end user", async () => {
    const { reserve } = createWorld({ attribution: { endUserTokensPerMinute: 150 } });
    const reservation = await reserve(ann);
    expect((await failureOf(reserve(ann))).message).toContain("this end user: 150 tokens per minute");
    reservation.release(10);
    await reserve(ann);
  });

  it("holds money of the end user and of the session, by digests of their names, and names them for the entry", async () => {
    const { asked, limiter, principal, reserve } = createWorld({
      key: { monthlyBudgetMicroUsd: 9 },
      attribution: { endUserBudgetMicroUsd: 100, sessionBudgetMicroUsd: 50 },
    });
    const { budgets } = await reserve({ attribution: { endUser: "ann@example.com", session: "x".repeat(200) } });
    const [key, user, session] = asked.held[0]!.holds;
    expect(key).toEqual({ subject: "key:k1", limitMicroUsd: 9 });
    expect(user).toMatchObject({ limitMicroUsd: 100, period: "day" });
    expect(user!.subject).toMatch(/^end_user:k1:[\w-]{22}$/);
    expect(session).toMatchObject({ limitMicroUsd: 50, period: "session" });
    expect(session!.subject).toMatch(/^session:k1:[\w-]{22}$/);
    expect(budgets).toEqual([user, session].map((hold) => ({ subject: hold!.subject, period: hold!.period })));
    await reserve({ attribution: { agent: "codex" } });
    expect(asked.held[1]!.holds).toEqual([key]);
    expect(limiter.hasBudget(principal)).toBe(true);
  });

  it.each([
    ["day", "The daily budget of this end user, 0.0001 USD, is spent. It begins anew on 22 November 2026 (UTC).", 1],
    [
      "month",
      "The monthly budget of this end user, 0.0001 USD, is spent. It begins anew on 1 December 2026 (UTC).",
      10,
    ],
  ] as const)("says when the budget of a %s begins anew", async (period, message, days) => {
    const { reserve } = createWorld({
      attribution: { endUserBudgetMicroUsd: 100, endUserBudgetPeriod: period },
      decide: async ({ holds: [hold] }) => ({ admitted: false, ...hold!, takenMicroUsd: 100 }),
    });
    const failure = await failureOf(reserve(ann));
    expect(failure).toMatchObject({ code: "budget_spent", message, retryAfterMs: days * 86_400_000 });
  });

  it("asks for a new session when the budget of one has no room, also in a preview", async () => {
    const attribution = { sessionBudgetMicroUsd: 100 };
    const { limiter, principal, reserve } = createWorld({
      attribution,
      taken: 95,
      decide: async ({ holds: [hold] }) => ({ admitted: false, ...hold!, takenMicroUsd: 95 }),
    });
    const asked = { attribution: { session: "run 7" } };
    const failure = await failureOf(reserve(asked));
    expect(failure.message).toMatch(/^The budget of this session, 0\.0001 USD, has no room .* Begin a new session\.$/);
    expect(failure.retryAfterMs).toBeUndefined();
    const demand = { principal, completionId: "c", tokens: 1, costMicroUsd: 10, lastsMs: 0 };
    expect((await limiter.preview({ ...demand, ...asked }))[0]).toMatchObject({ message: failure.message });
    expect(await limiter.preview(demand)).toEqual([]);
  });

  it("refuses requests without an end user where one is required, and counts them", async () => {
    const { limiter, principal, reserve } = createWorld({
      key: { requestsPerMinute: 10 },
      attribution: { requiresEndUser: true },
    });
    expect(await failureOf(reserve({ attribution: { session: "run 7" } }))).toMatchObject({
      code: "invalid_request",
      violations: [{ field: "end_user_id" }],
    });
    expect(limiter.peek(principal).requests?.remaining).toBe(9);
    await reserve(ann);
  });

  it("permits no model without a price to a key whose end users have a budget", async () => {
    const { reserve } = createWorld({ attribution: { endUserBudgetMicroUsd: 100 } });
    const failure = await failureOf(reserve({ costMicroUsd: undefined }));
    expect(failure.message).toContain("end users or sessions of this API key have a budget");
  });
});
