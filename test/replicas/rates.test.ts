import { expect, inject, it, onTestFinished } from "vitest";
import type { RateStore } from "../../src/limits/rates.ts";
import { openStore } from "../../src/store/store.ts";
import { describeRateStore } from "../limits/rate-store-contract.ts";
import { createDatabase } from "../support/postgres.ts";

/** Three replicas on one empty database. */
async function openReplicas(): Promise<RateStore[]> {
  const location = { dataDir: "/nowhere", databaseUrl: await createDatabase(inject("postgresUrl")) };
  return Promise.all(
    Array.from({ length: 3 }, async () => {
      const store = await openStore(location);
      onTestFinished(() => store.close());
      return store.createRates({ burstMs: 60_000 });
    }),
  );
}

describeRateStore("PostgreSQL", async () => ({ stores: await openReplicas() }));

it("a concurrency slot can be released by another replica", async () => {
  const rates = await openReplicas();
  const limits = { requestsPerMinute: undefined, tokensPerMinute: undefined, concurrentRequests: 20 };
  const subjects = ["key:k", "account:a"].map((subject) => ({ subject, accountId: "a", ...limits }));
  const demands = Array.from({ length: 90 }, (_, index) => ({ id: `c${index}`, subjects, tokens: 1 }));
  const decisions = await Promise.all(demands.map((demand, index) => rates[index % 3]!.take(demand)));
  const admitted = demands.filter((_, index) => decisions[index]!.admitted);
  expect(admitted).toHaveLength(20);
  await Promise.all(
    admitted.map(({ id }, index) => rates[index % 3]!.release({ id, subjects, reservedTokens: 1, usedTokens: 1 })),
  );
  const again = await Promise.all(
    demands.slice(0, 30).map((demand) => rates[0]!.take({ ...demand, id: `${demand.id}x` })),
  );
  expect(again.filter((decision) => decision.admitted)).toHaveLength(20);
});

it("replicas register with each other", async () => {
  const rates = await openReplicas();
  const counts: number[] = [];
  for (const [index, each] of rates.entries()) counts.push(await each.renew({ replica: `r${index}`, held: [] }));
  expect(counts).toEqual([1, 2, 3]);
  expect(await rates[0]!.renew({ replica: "r0", held: [] })).toBe(3);
});
