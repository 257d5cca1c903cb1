import { setTimeout as delay } from "node:timers/promises";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { createKey, type CreatedKey, revokeKey } from "../../src/access/keys.ts";
import { createStop } from "../../src/access/stops.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openGrpcCalls, openHttpCalls, type WaitingCall } from "../support/open-calls.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";
import { begins } from "../support/scripted-upstream.ts";
import { type Deployment, MODEL, startDeployment } from "./support/deployment.ts";

const TRIALS = 200;
/** Keys revoked at a time, and requests per replica: few enough that the test's callers are not the bottleneck. */
interface Pace {
  readonly atOnce: number;
  readonly pollMs: number;
}

const FOR_MILLISECONDS: Pace = { atOnce: 10, pollMs: 5 };
const FOR_SECONDS: Pace = { atOnce: 40, pollMs: 50 };

let databaseUrl: string;
let deployment: Deployment;
beforeAll(async () => {
  databaseUrl = await createDatabase(inject("postgresUrl"));
  deployment = await startDeployment({ replicas: 3, databaseUrl, redisUrl: undefined });
});
afterAll(() => deployment?.close());

const statusAt = async (url: string, key: string): Promise<number> => {
  const response = await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${key}` } });
  await response.body?.cancel();
  return response.status;
};

/** Time from `revoke` until the last replica refuses the cached key, in milliseconds. */
async function trial(revoke: (id: string) => Promise<unknown>, pollMs: number): Promise<number> {
  const keys = { store: deployment.store.keys, clock: systemClock };
  const { secret, record } = await createKey(keys, { name: "revoked" });
  const urls = deployment.products.map(({ url }) => url);
  expect(await Promise.all(urls.map((url) => statusAt(url, secret)))).toEqual([200, 200, 200]);
  await revoke(record.id);
  const beganMs = performance.now();
  const refusedAfterMs = await Promise.all(
    urls.map(async (url) => {
      while ((await statusAt(url, secret)) !== 401) await delay(pollMs);
      const elapsedMs = performance.now() - beganMs;
      // A refusal is final.
      expect(await statusAt(url, secret)).toBe(401);
      return elapsedMs;
    }),
  );
  return Math.max(...refusedAfterMs);
}

/** Measures up to three times until all is in time: the load of other programs varies, and a fault of the product does not. */
async function quickest<T>(isInTime: (measured: T) => boolean, measure: (turn: number) => Promise<T>): Promise<T> {
  let measured = await measure(0);
  for (let turn = 1; turn < 3 && !isInTime(measured); turn++) measured = await measure(turn);
  return measured;
}

async function trials(
  { atOnce, pollMs }: Pace,
  revoke: (id: string) => Promise<unknown>,
): Promise<{ p99: number; max: number }> {
  const latenciesMs: number[] = [];
  while (latenciesMs.length < TRIALS) {
    latenciesMs.push(...(await Promise.all(Array.from({ length: atOnce }, () => trial(revoke, pollMs)))));
  }
  const sorted = latenciesMs.toSorted((a, b) => a - b);
  const [median, p99, max] = [0.5, 0.99, 1].map((share) => sorted[Math.ceil(share * sorted.length) - 1]!);
  console.log(
    `${TRIALS} revocations: ${[median, p99, max].map((ms) => ms!.toFixed(0)).join(", ")} ms (median, p99, max)`,
  );
  return { p99: p99!, max: max! };
}

describe("revoked keys are refused by every replica", () => {
  it(`within a second, ${TRIALS} times`, async () => {
    const revoke = (id: string) => revokeKey({ store: deployment.store.keys, clock: systemClock }, id);
    const { p99, max } = await quickest(
      (seen) => seen.p99 < 1_000 && seen.max < 5_000,
      () => trials(FOR_MILLISECONDS, revoke),
    );
    expect(p99).toBeLessThan(1_000);
    expect(max).toBeLessThan(5_000);
  }, 300_000);

  it(`within five seconds without a notification, ${TRIALS} times`, async () => {
    // The row changes without a notification.
    const revoke = (id: string) =>
      queryPostgres(databaseUrl, `update api_keys set revoked_at_ms = ${Date.now()} where id = '${id}'`);
    const { max } = await quickest(
      (seen) => seen.max < 5_000,
      () => trials(FOR_SECONDS, revoke),
    );
    expect(max).toBeLessThan(5_000);
  }, 300_000);
});

/** Simultaneous calls of each entrance of each replica. */
const CALLS = 5;

interface Endings {
  readonly codes: string[];
  readonly lastMs: number;
}

/** Time from `change` until the last call in flight of the key has ended, on all replicas, and the received codes. */
async function endingsAfter(change: (key: CreatedKey) => Promise<unknown>, endUserId?: string): Promise<Endings> {
  const key = await createKey({ store: deployment.store.keys, clock: systemClock }, { name: "in use" });
  const { upstream, products } = deployment;
  upstream.script(MODEL, [begins("some words", "silence")]);
  const before = upstream.calls(MODEL).length;
  const calls: WaitingCall[] = [];
  for (const product of products) {
    for (let time = 0; time < CALLS; time++) {
      const asked = { key: key.secret, model: MODEL, ...(endUserId !== undefined && { endUserId }) };
      calls.push(...openHttpCalls(product, asked), ...openGrpcCalls(product, asked));
    }
  }
  await expect.poll(() => upstream.calls(MODEL).length - before, { timeout: 10_000 }).toBe(calls.length);
  // Longer than the key cache's lifetime, without another request of the key.
  await delay(6_000);
  const changedMs = performance.now();
  await change(key);
  const endings = await Promise.all(calls.map(({ ended }) => ended));
  // The provider call continues for `timeouts.settle_ms`.
  const open = (): number => upstream.calls(MODEL).filter(({ state }) => state === "open").length;
  await expect.poll(open, { timeout: 5_000 }).toBe(0);
  const lastMs = Math.round(Math.max(...endings.map(({ atMs }) => atMs)) - changedMs);
  console.log(`${calls.length} calls on ${products.length} replicas: the last one ended after ${lastMs} ms`);
  return { codes: [...new Set(endings.map(({ code }) => code))], lastMs };
}

const within =
  (limitMs: number) =>
  ({ lastMs }: Endings): boolean =>
    lastMs < limitMs;

describe("the calls in flight of a key end on every replica", () => {
  it("within a second when it is revoked", async () => {
    const context = { store: deployment.store.keys, clock: systemClock };
    const { codes, lastMs } = await quickest(within(1_000), () =>
      endingsAfter(({ record }) => revokeKey(context, record.id)),
    );
    expect(codes).toEqual(["unauthenticated"]);
    expect(lastMs).toBeLessThan(1_000);
  }, 120_000);

  it.each([
    { lost: "revocation", set: `revoked_at_ms = ${Date.now()}`, code: "unauthenticated" },
    { lost: "expiry", set: `expires_at_ms = ${Date.now()}`, code: "unauthenticated" },
    { lost: "other models", set: `models = '["another"]'`, code: "permission_denied" },
  ])(
    "within five seconds without a notification: $lost",
    async ({ set, code }) => {
      const { codes, lastMs } = await quickest(within(5_000), () =>
        endingsAfter(({ record }) =>
          queryPostgres(databaseUrl, `update api_keys set ${set} where id = '${record.id}'`),
        ),
      );
      expect(codes).toEqual([code]);
      expect(lastMs).toBeLessThan(5_000);
    },
    120_000,
  );

  it("within a second when their end user is stopped, and within five without a notification", async () => {
    const stop = { accountId: DEFAULT_ACCOUNT_ID, kind: "end_user", lengthMs: 60_000 } as const;
    const actor = { actorId: DEFAULT_ACCOUNT_ID, network: undefined };
    const log = { record: async () => undefined };
    const { stops } = deployment.store;
    const first = await quickest(within(1_000), (turn) => {
      const value = `ann ${turn}`;
      return endingsAfter(() => createStop({ stops, clock: systemClock, log }, { ...stop, value, actor }), value);
    });
    expect(first.codes).toEqual(["permission_denied"]);
    expect(first.lastMs).toBeLessThan(1_000);
    const later = await quickest(within(5_000), (turn) => {
      const value = `ben ${turn}`;
      const others = JSON.stringify([{ kind: "end_user", value, untilMs: Date.now() + 600_000 }]);
      const update = `update accounts set stops = '${others}' where id = '${DEFAULT_ACCOUNT_ID}'`;
      return endingsAfter(() => queryPostgres(databaseUrl, update), value);
    });
    expect(later.codes).toEqual(["permission_denied"]);
    expect(later.lastMs).toBeLessThan(5_000);
  }, 240_000);
});
