import { describe, expect, it } from "vitest";
import { Failure } from "../../src/core/failure.ts";
import type { RateDemand, RateRelease, RateStore, RateSubject } from "../../src/limits/rates.ts";
import { createRequestRate, KnownLevels } from "../../src/limits/request-rate.ts";
import { somebody } from "../support/core-ports.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { demandOf, subjectOf } from "./demands.ts";

/** The fresh stores under test. */
export interface RateStoreWorld {
  /** Several stores with shared state if this kind can be shared; they are used in turn. */
  readonly stores: readonly RateStore[];
}

/**
 * Registers the suite that every RateStore has to pass. `create` starts empty stores with a burst of one minute, and
 * closes them after the test.
 */
export function describeRateStore(kind: string, create: () => Promise<RateStoreWorld>): void {
  describe(`a store of rates in ${kind}`, () => {
    const subjects: readonly (readonly [string, RateSubject, number])[] = [
      ["requests", subjectOf("key:1", { requestsPerMinute: 50 }), 0],
      ["tokens", subjectOf("key:1", { tokensPerMinute: 5000 }), 100],
      ["slots", subjectOf("key:1", { concurrentRequests: 50 }), 0],
      ["requests of an end user", subjectOf("end_user:1:u", { requestsPerMinute: 50 }), 0],
    ];
    it.each(subjects)("admits exactly the limit under simultaneous demands: %s", async (_kind, subject, tokens) => {
      const { stores } = await create();
      const beganMs = performance.now();
      const asked = Array.from({ length: 600 }, (_, index) =>
        stores[index % stores.length]!.take(demandOf([subject], tokens)),
      );
      const admitted = (await Promise.all(asked)).filter((decision) => decision.admitted).length;
      // One more is added each 1.2 s if the test takes that long; slots are not added.
      const came = subject.concurrentRequests === undefined ? (performance.now() - beganMs) / 1200 : 0;
      expect(admitted).toBeGreaterThanOrEqual(50);
      expect(admitted).toBeLessThanOrEqual(50 + came);
    });

    it("counts refused invalid requests in any replica", async () => {
      const { stores } = await create();
      const [first, last] = [stores[0]!, stores.at(-1)!];
      const key = subjectOf("key:1", { requestsPerMinute: 3, tokensPerMinute: 100, concurrentRequests: 1 });
      const rateOf = (rates: RateStore) =>
        createRequestRate({
          rates,
          known: new KnownLevels(60_000),
          subjectsOf: () => [key],
          burstMs: 60_000,
          clock: new FakeClock(),
        });
      const levels = async (): Promise<unknown> => (await last.take(demandOf([key], 101))).levels[0];
      const wrong = new Failure("invalid_request", "It is wrong.");
      expect((await first.take(demandOf([key], 100))).admitted).toBe(true);
      rateOf(first).countRefused(somebody, wrong);
      rateOf(last).countRefused(somebody, wrong);
      // Tokens and the slot of the request in flight stay taken.
      const left = {
        requests: { level: expect.closeTo(0, 0) as number },
        tokens: { level: expect.closeTo(0, -1) as number },
      };
      await expect.poll(levels).toMatchObject(left);
      expect(await last.take(demandOf([key]))).toMatchObject({ admitted: false, limit: "requests" });
    });

    it("takes from all subjects or from none, and returns the refusing one", async () => {
      const { stores } = await create();
      const store = stores[0]!;
      const key = subjectOf("key:1", { requestsPerMinute: 10, concurrentRequests: 10 });
      const account = subjectOf("account:1", { tokensPerMinute: 600 });
      expect((await store.take(demandOf([account], 600))).admitted).toBe(true);
      const refused = await store.take(demandOf([key, account], 300));
      expect(refused).toMatchObject({ admitted: false, subject: "account:1", limit: "tokens" });
      expect(refused.levels[0]).toMatchObject({
        subject: "key:1",
        requests: { capacity: 10, level: 10, perMinute: 10 },
      });
      expect(!refused.admitted && refused.retryAfterMs).toBeGreaterThan(20_000);
      expect(!refused.admitted && refused.retryAfterMs).toBeLessThanOrEqual(30_000);
    });

    it("returns slots, unused tokens, and the request if it was not started", async () => {
      const { stores } = await create();
      const store = stores[0]!;
      const key = subjectOf("key:1", { requestsPerMinute: 2, tokensPerMinute: 1000, concurrentRequests: 1 });
      const first = demandOf([key], 900);
      expect((await store.take(first)).admitted).toBe(true);
      expect(await store.take(demandOf([key], 500))).toMatchObject({ admitted: false });
      await store.release(toRelease(first, 0, { usedRequests: 0 }));
      const second = await store.take(demandOf([key], 1000));
      expect(second.admitted).toBe(true);
      expect(Math.floor(second.levels[0]?.requests?.level ?? -1)).toBe(1);
    });

    it("keeps a token debt", async () => {
      const { stores } = await create();
      const store = stores[0]!;
      const key = subjectOf("key:1", { tokensPerMinute: 1000 });
      const demand = demandOf([key], 100);
      await store.take(demand);
      await store.release(toRelease(demand, 3000));
      const refused = await store.take(demandOf([key], 1));
      expect(refused.levels[0]?.tokens?.level).toBeLessThan(-1500);
      expect(!refused.admitted && refused.retryAfterMs).toBeGreaterThan(90_000);
    });

    it("occupies a slot again that is renewed after it expired", async () => {
      const { stores } = await create();
      const store = stores[0]!;
      const key = subjectOf("key:1", { concurrentRequests: 1 });
      expect(
        await store.renew({ replica: "a", held: [{ id: "forgotten", subject: "key:1", accountId: "acct_1" }] }),
      ).toBeGreaterThan(0);
      expect(await store.take(demandOf([key]))).toMatchObject({ admitted: false, limit: "concurrency" });
      await store.release({ id: "forgotten", subjects: [key], reservedTokens: 0, usedTokens: 0 });
      expect((await store.take(demandOf([key]))).admitted).toBe(true);
    });

    it("renews many slots at once", async () => {
      const { stores } = await create();
      const store = stores[0]!;
      const held = Array.from({ length: 1200 }, (_, index) => ({
        id: `held-${index}`,
        subject: "key:1",
        accountId: "acct_1",
      }));
      await store.renew({ replica: "a", held });
      const wide = subjectOf("key:1", { concurrentRequests: 1201 });
      expect((await store.take(demandOf([wide]))).admitted).toBe(true);
      expect((await store.take(demandOf([wide]))).admitted).toBe(false);
    });

    it("ignores the release of an unknown ID", async () => {
      const { stores } = await create();
      const store = stores[0]!;
      const key = subjectOf("key:1", { requestsPerMinute: 5, tokensPerMinute: 100, concurrentRequests: 1 });
      await store.release(toRelease(demandOf([key], 100), 0));
      const decision = await store.take(demandOf([key], 1));
      expect(decision.levels[0]?.tokens?.level).toBe(99);
    });
  });
}

/** Returns the release of a demand. */
export function toRelease(
  { id, subjects, tokens }: RateDemand,
  usedTokens: number,
  more: Pick<RateRelease, "usedRequests"> = {},
): RateRelease {
  return { id, subjects, reservedTokens: tokens, usedTokens, ...more };
}
