import { Agent, request } from "undici";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { createKey, type KeyRequest } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { type Limits, NO_LIMITS } from "../../src/core/principal.ts";
import { createDatabase } from "../support/postgres.ts";
import { launchRedis, type RedisServer } from "../support/redis.ts";
import { scale } from "../support/scale.ts";
import {
  type Backing,
  type Deployment,
  MAX_TOKENS,
  MODEL,
  startDeployment,
  WORST_CASE_MICRO_USD,
} from "./support/deployment.ts";
import { HeldCalls } from "./support/held-calls.ts";

/** Rounds of a limit of a key in several replicas; less where the same code decides with fewer parties. */
const ROUNDS = scale(10, 50);
const FEWER_ROUNDS = scale(5, 15);
const REQUESTS = 200;
const ADMITTED = 50;
/** One in fifty may be refused although the limit was not reached. */
const MIN_ADMITTED = ADMITTED * 0.98;

type Limited = Pick<KeyRequest, "attributionLimits"> & { readonly limits?: Partial<Limits> };

const LIMITS: readonly (readonly [name: string, limited: Limited])[] = [
  ["budget", { limits: { monthlyBudgetMicroUsd: ADMITTED * WORST_CASE_MICRO_USD } }],
  ["request rate", { limits: { requestsPerMinute: ADMITTED } }],
  ["concurrency", { limits: { concurrentRequests: ADMITTED } }],
  ["budget of an end user", { attributionLimits: { endUserBudgetMicroUsd: ADMITTED * WORST_CASE_MICRO_USD } }],
  ["request rate of an end user", { attributionLimits: { endUserRequestsPerMinute: ADMITTED } }],
];

let redis: RedisServer;
beforeAll(async () => {
  redis = await launchRedis();
});
afterAll(() => redis?.stop());

const newDatabase = (): Promise<string> => createDatabase(inject("postgresUrl"));

const MODES: readonly (readonly [name: string, replicas: number, backing: () => Promise<Backing>])[] = [
  ["one process", 1, async () => ({ databaseUrl: undefined, redisUrl: undefined })],
  ["three replicas on PostgreSQL", 3, async () => ({ databaseUrl: await newDatabase(), redisUrl: undefined })],
  [
    "three replicas on PostgreSQL and Redis",
    3,
    async () => ({ databaseUrl: await newDatabase(), redisUrl: redis.url }),
  ],
];

describe.each(MODES)("%s", (_, replicas, backing) => {
  const held = new HeldCalls();
  let deployment: Deployment;
  let agent: Agent;
  beforeAll(async () => {
    deployment = await startDeployment({ replicas, ...(await backing()) });
    deployment.upstream.script(MODEL, [held.act]);
    agent = new Agent({ connections: REQUESTS });
  });
  afterAll(async () => {
    await agent?.destroy();
    await deployment?.close();
  });

  const ask = async (index: number, key: string): Promise<number> => {
    const { url } = deployment.products[index % replicas]!;
    const { statusCode, body } = await request(`${url}/v1/chat/completions`, {
      dispatcher: agent,
      method: "POST",
      headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
      body: JSON.stringify({
        model: MODEL,
        user: "ann",
        max_tokens: MAX_TOKENS,
        messages: [{ role: "user", content: "hi" }],
      }),
    });
    await body.dump();
    return statusCode;
  };

  /** Number of requests decided by replicas with their local share. */
  const decidedAlone = async (): Promise<number> => {
    const counts = await Promise.all(
      deployment.products.map(async ({ operationsUrl }) => {
        const text = await (await fetch(`${operationsUrl}/metrics`)).text();
        return Number(/^parley_rates_local_decisions_total (\d+)$/m.exec(text)?.[1]);
      }),
    );
    return counts.reduce((sum, count) => sum + count, 0);
  };

  /** Sends all requests at once; the upstream responds when each has been admitted or refused. */
  const race = async ({ limits, attributionLimits }: Limited) => {
    const keys = { store: deployment.store.keys, clock: systemClock };
    const { secret } = await createKey(keys, { name: "race", limits: { ...NO_LIMITS, ...limits }, attributionLimits });
    const beganMs = performance.now();
    let refused = 0;
    const statuses = Promise.all(
      Array.from({ length: REQUESTS }, async (__, index) => {
        const status = await ask(index, secret);
        if (status !== 200) refused += 1;
        return status;
      }),
    );
    await expect.poll(() => held.count + refused, { timeout: 20_000 }).toBe(REQUESTS);
    const elapsedMs = performance.now() - beganMs;
    const admitted = held.release();
    const seen = await statuses;
    expect(new Set(seen)).toEqual(new Set([200, 429]));
    expect(seen.filter((status) => status === 200)).toHaveLength(admitted);
    return { admitted, elapsedMs };
  };

  it.each(LIMITS)(
    `admits at most its ${ADMITTED} of ${REQUESTS} simultaneous requests, in any round: %s`,
    async (name, limited) => {
      const most = replicas === 1 || limited.limits === undefined ? FEWER_ROUNDS : ROUNDS;
      let slow = 0;
      for (let rounds = 0; rounds < most && slow < most;) {
        const before = await decidedAlone();
        const { admitted, elapsedMs } = await race(limited);
        // A replica that gets no response from the shared store in time uses its local share, which other tests check.
        // On a busy machine such a round is invalid.
        if (!name.includes("budget") && (await decidedAlone()) > before) {
          slow += 1;
          continue;
        }
        rounds += 1;
        // A rate refills during the round.
        const refilled = name.includes("request rate") ? Math.floor((elapsedMs / 60_000) * ADMITTED) : 0;
        expect(admitted).toBeLessThanOrEqual(ADMITTED + refilled);
        expect(admitted).toBeGreaterThanOrEqual(MIN_ADMITTED);
      }
      expect(slow).toBeLessThan(most);
      console.log(`${name}: ${most} rounds, and ${slow} in which the shared state was too slow`);
    },
    10 * 60_000,
  );
});
