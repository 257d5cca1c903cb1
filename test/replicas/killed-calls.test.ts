import { readdirSync } from "node:fs";
import { join } from "node:path";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished, inject } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { monthOf, systemClock } from "../../src/core/clock.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";
import { says } from "../support/scripted-upstream.ts";
import { MAX_TOKENS, MODEL, startDeployment, WORST_CASE_MICRO_USD } from "./support/deployment.ts";
import { postChat } from "../support/post-json.ts";

const CALLERS = 24;
/** A lease, and the time in which others renew theirs and settle. */
const SETTLED_MS = 60_000;
const LATENCY_MS = 150;

/** Sends one completion after the other until the replica is gone. */
async function callUntilGone(url: string, key: string, ended: string[]): Promise<void> {
  for (;;) {
    const response = await postChat(url, key, { model: MODEL, max_tokens: MAX_TOKENS });
    if (response.status !== 200) throw new Error(`status ${response.status}: ${await response.text()}`);
    ended.push(((await response.json()) as { id: string }).id);
  }
}

it("settles every call that a killed replica sent to a provider, in another replica, when its lease has ended", async () => {
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const deployment = await startDeployment({ replicas: 2, databaseUrl, redisUrl: undefined });
  onTestFinished(() => deployment.close());
  const { store, upstream, products } = deployment;
  let asked = 0;
  upstream.script(MODEL, [
    (call) => {
      asked += 1;
      void delay(LATENCY_MS).then(() => says("one two")(call));
    },
  ]);
  const make = (limits: object) =>
    createKey({ store: store.keys, clock: systemClock }, { name: "killed", limits: { ...NO_LIMITS, ...limits } });
  const plain = await make({});
  const budget = await make({ monthlyBudgetMicroUsd: 1_000_000_000 });
  const ended: string[] = [];
  const victim = products[0]!;
  const calls = Array.from({ length: CALLERS }, (_, caller) =>
    callUntilGone(victim.url, caller % 2 === 0 ? plain.secret : budget.secret, ended).catch((error: unknown) => error),
  );
  await expect.poll(() => ended.length, { timeout: 30_000 }).toBeGreaterThan(3 * CALLERS);
  const begun = async (keyId: string): Promise<number> =>
    Number(
      (
        await queryPostgres(
          databaseUrl,
          `select count(*) from begun_completions, jsonb_array_elements(entry::jsonb) as begun
           where begun->>'keyId' = '${keyId}'
             and not exists (select 1 from completions where id = begun->>'completionId')
             and not exists (select 1 from ledger_segments where entries like '%' || (begun->>'completionId') || '%')`,
        )
      )[0]!["count"],
    );
  // Calls with a key come in waves, between which none is with the provider.
  await expect
    .poll(async () => Math.min(await begun(plain.record.id), await begun(budget.record.id)), {
      timeout: 30_000,
      interval: 20,
    })
    .toBeGreaterThan(2);
  victim.signal("SIGKILL");
  await Promise.all([victim.ending, ...calls]);
  const killedAtMs = performance.now();

  const count = "select outcome, key_id, count(*)::int as count, sum(cost_micro_usd)::int as cost from completions";
  const sums = () => queryPostgres(databaseUrl, `${count} where estimated = 1 group by 1, 2`);
  const inFlight = async (): Promise<number> =>
    Number((await queryPostgres(databaseUrl, "select count(*) as count from begun_completions"))[0]!["count"]);
  const cut = await inFlight();
  expect(cut).toBeGreaterThan(0);
  // Nobody settles them while its lease may last.
  expect(await sums()).toEqual([]);
  await expect.poll(inFlight, { timeout: SETTLED_MS, interval: 500 }).toBe(0);
  const settledMs = performance.now() - killedAtMs;

  const written = await queryPostgres(databaseUrl, "select id, outcome from completions");
  const lost = written.filter(({ outcome }) => outcome === "process_lost");
  console.log({ asked, ended: ended.length, lost: lost.length, settledMs: Math.round(settledMs) });
  expect(new Set(written.map(({ id }) => id)).size).toBe(written.length);
  const ids = new Set(written.map(({ id }) => id));
  expect(ended.filter((id) => !ids.has(id))).toEqual([]);
  // One for each call that the provider got, and for none more than those in flight.
  expect(written.length).toBeGreaterThanOrEqual(asked);
  expect(written.length).toBeLessThanOrEqual(ended.length + CALLERS);
  const costs = new Map((await sums()).map((row) => [row["key_id"], Number(row["cost"]) / Number(row["count"])]));
  expect(costs.get(budget.record.id)).toBe(WORST_CASE_MICRO_USD);
  expect(costs.get(plain.record.id)).toBeGreaterThan(0);

  const [spending] = await store.ledger.spending([`key:${budget.record.id}`], monthOf(systemClock.now()));
  const ofBudget = `select sum(cost_micro_usd)::bigint as cost from completions where key_id = '${budget.record.id}'`;
  expect(spending).toEqual({
    spentMicroUsd: Number((await queryPostgres(databaseUrl, ofBudget))[0]!["cost"]),
    heldMicroUsd: 0,
  });
  expect(await queryPostgres(databaseUrl, "select id from budget_holds")).toEqual([]);
});

it("settles on SQLite, in the next process, every call that a killed process sent to a provider, after the lease", async () => {
  const deployment = await startDeployment({ replicas: 1, databaseUrl: undefined, redisUrl: undefined });
  onTestFinished(() => deployment.close());
  const { store, upstream } = deployment;
  let asked = 0;
  upstream.script(MODEL, [() => void (asked += 1)]);
  const { secret } = await createKey({ store: store.keys, clock: systemClock }, { name: "killed", limits: NO_LIMITS });
  const victim = deployment.products[0]!;
  const calls = Array.from({ length: CALLERS }, () => callUntilGone(victim.url, secret, []).catch(() => undefined));
  await expect.poll(() => asked, { timeout: 30_000 }).toBe(CALLERS);
  victim.signal("SIGKILL");
  await Promise.all([victim.ending, ...calls]);
  await deployment.restart(0);
  const lost = async (): Promise<number> =>
    (await store.ledger.list({ limit: 99, outcome: "process_lost" })).entries.length;
  expect(await lost()).toBe(0);
  await expect.poll(lost, { timeout: 2 * SETTLED_MS, interval: 500 }).toBe(CALLERS);
  const files = readdirSync(join(deployment.products[0]!.home, "data")).filter((name) => name.startsWith("begun-"));
  expect(files).toEqual([]);
});
