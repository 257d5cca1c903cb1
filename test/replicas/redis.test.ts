import { readFileSync } from "node:fs";
import { join } from "node:path";
import { inspect } from "node:util";
import fc from "fast-check";
import { describe, expect, it, onTestFinished } from "vitest";
import { systemClock } from "../../src/core/clock.ts";
import { NOTE_LASTS_MS } from "../../src/core/health-notes.ts";
import { LEASE_MS, type RateDecision, type RateDemand, RateStoreError } from "../../src/limits/rates.ts";
import { openRedisRates, type RedisRates, type RedisRatesOptions } from "../../src/limits/redis.ts";
import type { SubjectState } from "../../src/limits/state.ts";
import { decide, giveBack, renewLeases } from "../limits/states.ts";
import { demandOf, subjectOf } from "../limits/demands.ts";
import { describeRateStore, toRelease } from "../limits/rate-store-contract.ts";
import { startRedis } from "../support/redis.ts";

const key = subjectOf("key:1", { requestsPerMinute: 1000, tokensPerMinute: 100_000, concurrentRequests: 1000 });

/** A time limit for busy machines, above that of requests. */
const PATIENT_MS = 20_000;
const USUAL_MS = 50;

interface Step {
  readonly act: "take" | "release" | "renew";
  readonly waitMs: number;
  readonly which: number;
  readonly tokens: number;
  readonly used: number;
  readonly usedRequests: 0 | 1;
  readonly changed: boolean;
}

async function open(url: string, more: Pick<RedisRatesOptions, "commandMs" | "nowMs"> = {}): Promise<RedisRates> {
  const rates = await openRedisRates({ url, clock: systemClock, burstMs: 60_000, commandMs: PATIENT_MS, ...more });
  onTestFinished(() => rates.close());
  return rates;
}

/** Duration and outcome. */
async function time(work: Promise<unknown>): Promise<{ readonly ms: number; readonly error: unknown }> {
  const beganMs = performance.now();
  const error = await work.then(
    () => undefined,
    (reason: unknown) => reason,
  );
  return { ms: performance.now() - beganMs, error };
}

describeRateStore("Redis", async () => {
  const { url } = await startRedis();
  return { stores: await Promise.all([open(url), open(url), open(url)]) };
});

describe("notes about upstream models in Redis", () => {
  it("are the latest one of each other replica, until that writes no more", async () => {
    const redis = await startRedis();
    let nowMs = 1_700_000_000_000;
    const [one, two] = await Promise.all([0, 1].map(() => open(redis.url, { nowMs: () => nowMs })));
    expect(await one!.exchange("one", { down: ["a/m"], up: ['b/m " x'] })).toEqual([]);
    expect(await two!.exchange("two", { down: [], up: [] })).toEqual([{ down: ["a/m"], up: ['b/m " x'] }]);
    expect(await one!.exchange("one", { down: [], up: ["a/m"] })).toEqual([{ down: [], up: [] }]);
    nowMs += NOTE_LASTS_MS - 1;
    expect(await two!.exchange("two", { down: [], up: [] })).toEqual([{ down: [], up: ["a/m"] }]);
    nowMs += 1;
    expect(await two!.exchange("two", { down: [], up: [] })).toEqual([]);
    // After the clock has moved back.
    nowMs -= 3_600_000;
    expect(await one!.exchange("one", { down: [], up: [] })).toEqual([]);
    expect(await redis.ask(["HKEYS", "parley:health"])).toEqual(["one"]);
  });
});

describe("changed keys in Redis", () => {
  it("are listed page by page since a time, and forgotten after 25 hours", async () => {
    const redis = await startRedis();
    let nowMs = 1_700_000_000_000;
    const rates = await open(redis.url, { nowMs: () => nowMs });
    const hashes = Array.from({ length: 1_500 }, (_, index) => `hash-${String(index).padStart(4, "0")}`);
    for (let from = 0; from < hashes.length; from += 500) {
      await rates.exchangeChanges(hashes.slice(from, from + 500), nowMs);
      nowMs += 1;
    }
    const told = new Set<string>();
    let page = await rates.exchangeChanges([], 0);
    for (let pages = 1; page.hasMore && pages < 5; pages++) {
      for (const { hash } of page.changes) told.add(hash);
      page = await rates.exchangeChanges([], page.sinceMs);
    }
    for (const { hash } of page.changes) told.add(hash);
    expect(told).toEqual(new Set(hashes));
    expect(await rates.exchangeChanges(["again"], page.sinceMs)).toMatchObject({
      changes: [{ hash: "again", atMs: nowMs }],
      hasMore: false,
    });
    nowMs += 25 * 3_600_000 + 1;
    expect((await rates.exchangeChanges([], 0)).changes).toEqual([]);
  });
});

describe("rates in Redis", () => {
  it("decide like the in-memory ones, for any sequence of calls at any times", async () => {
    const redis = await startRedis();
    let nowMs = 0;
    const rates = await open(redis.url, { nowMs: () => nowMs });
    const limits = fc.record({
      requestsPerMinute: fc.option(
        fc.integer({ min: 1, max: 1e9 }).chain((most) => fc.integer({ min: 1, max: most })),
        {
          nil: undefined,
        },
      ),
      tokensPerMinute: fc.option(fc.integer({ min: 1, max: 1e6 }), { nil: undefined }),
      concurrentRequests: fc.option(fc.integer({ min: 1, max: 2 }), { nil: undefined }),
    });
    const step = fc.record({
      act: fc.constantFrom<Step["act"][]>("take", "take", "take", "release", "renew"),
      // The clock also moves back, within and beyond the tolerance of a bucket.
      waitMs: fc.oneof(
        fc.integer({ min: 0, max: 20_000 }),
        fc.constantFrom(0, 1, LEASE_MS - 1, LEASE_MS),
        fc.integer({ min: -100_000, max: 0 }),
      ),
      which: fc.nat(20),
      tokens: fc.oneof(fc.constant(0), fc.nat(30_000)),
      used: fc.oneof(fc.nat(60_000), fc.constant(1e12)),
      usedRequests: fc.constantFrom(0 as const, 1 as const),
      changed: fc.boolean(),
    });
    let run = 0;
    const check = async ([first, second, other]: [object, object, object], steps: Step[]): Promise<void> => {
      run += 1;
      const states = new Map<string, SubjectState>();
      const taken: RateDemand[] = [];
      const decisions: [RateDecision, RateDecision][] = [];
      nowMs = 1_700_000_000_000;
      for (const { act, waitMs, which, tokens, used, usedRequests, changed } of steps) {
        nowMs += waitMs;
        const moment = { nowMs, burstMs: 60_000 };
        const keep = (next: ReadonlyMap<string, SubjectState>) =>
          next.forEach((state, name) => states.set(name, state));
        const demand = taken[which % Math.max(taken.length, 1)];
        if (act === "take") {
          const asked = demandOf(
            [subjectOf(`key:${run}`, changed ? other : first), subjectOf(`account:${run}`, second)],
            tokens,
          );
          const expected = decide(states, asked, moment);
          keep(expected.states);
          decisions.push([await rates.take(asked), expected.decision]);
          if (expected.decision.admitted) taken.push(asked);
        } else if (demand !== undefined && act === "release") {
          const release = toRelease(demand, used, { usedRequests });
          keep(giveBack(states, release, moment));
          await rates.release(release);
        } else if (demand !== undefined) {
          const held = demand.subjects.map(({ subject, accountId }) => ({ id: demand.id, subject, accountId }));
          keep(renewLeases(states, held, moment));
          await rates.renew({ replica: "a", held });
        }
      }
      expect(decisions.map(([decided]) => decided)).toEqual(decisions.map(([, expected]) => expected));
    };
    await fc.assert(fc.asyncProperty(fc.tuple(limits, limits, limits), fc.array(step, { maxLength: 60 }), check), {
      numRuns: 500,
    });
  });

  it("count the replicas that renew their registration", async () => {
    const { url } = await startRedis();
    const [one, two] = await Promise.all([open(url), open(url)]);
    expect(await one.renew({ replica: "one", held: [] })).toBe(1);
    expect(await two.renew({ replica: "two", held: [] })).toBe(2);
    expect(await one.renew({ replica: "one", held: [] })).toBe(2);
  });

  it("give every key in Redis a TTL, and use one prefix", async () => {
    const redis = await startRedis();
    const rates = await open(redis.url);
    const demand = demandOf([key], 10);
    await rates.take(demand);
    await rates.renew({ replica: "one", held: [{ id: demand.id, subject: key.subject, accountId: key.accountId }] });
    await rates.release(toRelease(demand, 20_000));
    const other = demandOf([subjectOf("key:2", { concurrentRequests: 1 })]);
    await rates.take(other);
    const kept = await redis.ask(["KEYS", "*"]);
    expect(kept).toHaveLength(3);
    for (const name of kept) {
      expect(name).toMatch(/^parley:(\{acct_1\}:|replicas$)/);
      expect(Number((await redis.ask(["PTTL", name]))[0])).toBeGreaterThan(0);
    }
  });

  it("reload their scripts after Redis has lost them", async () => {
    const redis = await startRedis();
    const rates = await open(redis.url);
    await rates.take(demandOf([key]));
    await redis.ask(["SCRIPT", "FLUSH"]);
    expect((await rates.take(demandOf([key]))).admitted).toBe(true);
  });

  it("fail at once while Redis is unreachable, and recover after it was killed and restarted", async () => {
    const redis = await startRedis();
    const rates = await open(redis.url, { commandMs: USUAL_MS });
    await expect.poll(async () => (await time(rates.take(demandOf([key])))).error).toBeUndefined();
    await redis.kill();
    await expect.poll(() => time(rates.take(demandOf([key])))).toMatchObject({ error: expect.any(RateStoreError) });
    const latenciesMs: number[] = [];
    for (let index = 0; index < 5; index += 1) latenciesMs.push((await time(rates.take(demandOf([key])))).ms);
    // The median, as the machine may be busy.
    expect(latenciesMs.toSorted((a, b) => a - b)[2]).toBeLessThan(150);
    await redis.start();
    await expect.poll(async () => (await time(rates.take(demandOf([key])))).error).toBeUndefined();
  });

  it("fail within the time limit while Redis hangs, do not accumulate, and recover", async () => {
    const redis = await startRedis();
    const rates = await open(redis.url, { commandMs: USUAL_MS });
    await expect.poll(async () => (await time(rates.take(demandOf([key])))).error).toBeUndefined();
    redis.freeze();
    const hung = await Promise.all(Array.from({ length: 3000 }, () => time(rates.take(demandOf([key])))));
    expect(hung.filter(({ error }) => error instanceof RateStoreError)).toHaveLength(3000);
    const full = hung.filter(({ error }) => error instanceof Error && error.message === "Redis does not keep up.");
    expect(full).toHaveLength(1000);
    redis.thaw();
    await expect.poll(async () => (await time(rates.take(demandOf([key])))).error, { timeout: 5000 }).toBeUndefined();
  });

  it("do not count the delay of a busy process as a timeout", async () => {
    const redis = await startRedis();
    const rates = await open(redis.url, { commandMs: USUAL_MS });
    await expect.poll(async () => (await time(rates.take(demandOf([key])))).error).toBeUndefined();
    for (let round = 0; round < 10; round += 1) {
      const takes = Array.from({ length: 30 }, () => time(rates.take(demandOf([key]))));
      // Before the commands are sent, and again before the responses are read.
      for (let blocks = 0; blocks < 2; blocks += 1) {
        const untilMs = performance.now() + 200;
        while (performance.now() < untilMs);
        await Promise.resolve();
      }
      expect((await Promise.all(takes)).filter(({ error }) => error !== undefined)).toEqual([]);
    }
  });

  it("keep the keys of one reservation in one slot of a cluster", async () => {
    const redis = await startRedis();
    const rates = await open(redis.url);
    const limits = { requestsPerMinute: 5, concurrentRequests: 5 };
    for (const accountId of ["acct_a", "acct_b"]) {
      const subjects = ["key:1", "account:1"].map((subject) =>
        subjectOf(`${subject}${accountId}`, { ...limits, accountId }),
      );
      await rates.take(demandOf(subjects));
    }
    const slots = new Map<string, Set<string>>();
    for (const name of await redis.ask(["KEYS", "parley:{*"])) {
      const [slot = ""] = await redis.ask(["CLUSTER", "KEYSLOT", name]);
      const account = /acct_./.exec(name)![0];
      slots.set(account, (slots.get(account) ?? new Set()).add(slot));
    }
    expect([...slots.values()].map((each) => each.size)).toEqual([1, 1]);
  });

  it("release an admission that Redis returns after the time limit", async () => {
    const redis = await startRedis();
    const rates = await open(redis.url, { commandMs: USUAL_MS });
    const one = subjectOf("key:1", { concurrentRequests: 1 });
    redis.freeze();
    await expect(rates.take(demandOf([one]))).rejects.toThrow("within 50 ms");
    redis.thaw();
    await expect
      .poll(async () => (await rates.take(demandOf([one])).catch(() => ({ admitted: false }))).admitted, {
        timeout: 5000,
      })
      .toBe(true);
  });

  const refusals: readonly (readonly [string, string[]])[] = [
    ["OOM", ["CONFIG", "SET", "maxmemory", "1"]],
    ["READONLY", ["REPLICAOF", "127.0.0.1", "1"]],
    ["MISCONF or NOREPLICAS", ["CONFIG", "SET", "min-replicas-to-write", "1"]],
  ];
  it.each(refusals)("count an error of Redis as a failure: %s", async (_word, command) => {
    const redis = await startRedis();
    const rates = await open(redis.url);
    await rates.take(demandOf([key]));
    await redis.ask(command);
    await expect(rates.take(demandOf([key]))).rejects.toThrow(/^Redis failed: [A-Z]+\.$/);
  });

  it("need no more permissions of a user than documented", async () => {
    const page = readFileSync(join(import.meta.dirname, "../../docs/operations/replicas.md"), "utf8");
    const [, first = "", second = ""] =
      /A user of an ACL needs `([^`]*)`, the commands of the scripts \(`([^`]*)`\)/.exec(page)!;
    const redis = await startRedis();
    await redis.ask(["ACL", "SETUSER", "rates", "on", ">secret", "~parley:*", ...`${first} ${second}`.split(" ")]);
    const rates = await open(redis.url.replace("//", "//rates:secret@"));
    const demand = demandOf([key], 10);
    expect((await rates.take(demand)).admitted).toBe(true);
    await rates.renew({ replica: "one", held: [{ id: demand.id, subject: key.subject, accountId: key.accountId }] });
    await rates.release(toRelease(demand, 20));
    await rates.exchange("one", { down: ["a/m"], up: [] });
    expect(await redis.ask(["ACL", "LOG"])).toEqual([]);
  });

  it("never log the password", async () => {
    const { port } = await startRedis(["--requirepass", "right-secret"]);
    const rates = await open(`redis://:wrong-secret@127.0.0.1:${port}`);
    const { error } = await time(rates.take(demandOf([key])));
    expect(error).toBeInstanceOf(RateStoreError);
    expect(inspect(error, { depth: 10, showHidden: true })).not.toContain("secret");
    await expect(open("redis//:wrong-secret@nowhere")).rejects.toThrow("has to look like");
    const right = await open(`redis://:right-secret@127.0.0.1:${port}`);
    expect((await right.take(demandOf([key]))).admitted).toBe(true);
  });
});
