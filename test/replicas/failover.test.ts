import { hostname } from "node:os";
import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { createKey, revokeKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { createDatabase, queryPostgres, startPostgres } from "../support/postgres.ts";
import { says } from "../support/scripted-upstream.ts";
import { MODEL, startDeployment } from "./support/deployment.ts";
import { countOutcomes, latencies, startTraffic } from "./support/traffic.ts";
import { idsIn } from "./support/written-ids.ts";

const BACK_MS = 15_000;

it("replicas with several database hosts follow a failover under load by themselves", async () => {
  const primary = await startPostgres();
  onTestFinished(() => primary.stop());
  const direct = await createDatabase(primary.url);
  const standby = await startPostgres({ standbyOf: primary });
  onTestFinished(() => standby.stop());
  const hosts = [standby, primary].map(({ url }) => new URL(url).host).join(",");
  const { username, password, pathname } = new URL(direct);
  // The standby first: it must be passed over at the start.
  const databaseUrl = `postgres://${username}:${password}@${hosts}${pathname}?target_session_attrs=read-write`;
  const promoted = standby.url.replace(/\/postgres$/, pathname);

  const deployment = await startDeployment({ replicas: 2, databaseUrl, redisUrl: undefined });
  onTestFinished(() => deployment.close());
  const { store, products, upstream } = deployment;
  upstream.script(MODEL, [(call) => void delay(10).then(() => says("one two")(call))]);
  const make = (limits: object) =>
    createKey({ store: store.keys, clock: systemClock }, { name: "failover", limits: { ...NO_LIMITS, ...limits } });
  const [plain, budget] = [await make({}), await make({ monthlyBudgetMicroUsd: 1_000_000_000 })];
  const urls = products.map(({ url }) => url);
  const traffic = startTraffic(urls, [
    { name: "plain", everyMs: 50, key: () => plain.secret },
    { name: "budget", everyMs: 100, key: () => budget.secret },
  ]);
  await delay(2_000);
  await primary.halt();
  await delay(2_000);
  await queryPostgres(promoted, "select pg_promote()");
  const promotedAtMs = performance.now();
  await expect
    .poll(
      () =>
        traffic.seen.some(
          ({ caller, outcome, beganMs }) => caller === "budget" && outcome === 200 && beganMs > promotedAtMs,
        ),
      { timeout: BACK_MS },
    )
    .toBe(true);
  const backMs = performance.now() - promotedAtMs;
  await delay(2_000);
  await traffic.stop();

  const plainSeen = traffic.seen.filter(({ caller }) => caller === "plain");
  const lastSeen = traffic.seen.filter(({ beganMs }) => beganMs > promotedAtMs + backMs + 1_000);
  console.log({
    plain: countOutcomes(plainSeen),
    budget: countOutcomes(traffic.seen.filter(({ caller }) => caller === "budget")),
    latency: latencies(plainSeen),
    backMs: Math.round(backMs),
  });
  expect(countOutcomes(plainSeen)).toEqual({ 200: plainSeen.length });
  expect(countOutcomes(lastSeen)).toEqual({ 200: lastSeen.length });
  // Those that waited in memory are written by now.
  const waiting = async (): Promise<unknown> => {
    const facts = await Promise.all(
      products.map(async ({ operationsUrl }) => (await fetch(`${operationsUrl}/readyz`)).json()),
    );
    return (facts as { ledger: { waiting: number } }[]).map(({ ledger }) => ledger.waiting);
  };
  await expect.poll(waiting, { timeout: 5_000 }).toEqual([0, 0]);
  const written = new Set(await idsIn("", promoted));
  const ended = traffic.seen.flatMap(({ id }) => (id === undefined ? [] : [id]));
  expect(ended.filter((id) => !written.has(id))).toEqual([]);

  const metrics = await Promise.all(
    products.map(async ({ operationsUrl }) => (await fetch(`${operationsUrl}/metrics`)).text()),
  );
  const refused = metrics.map((text) => Number(/^parley_unavailable_total\{what="database"\} (\d+)$/m.exec(text)?.[1]));
  expect(refused.reduce((sum, count) => sum + count, 0)).toBe(countOutcomes(traffic.seen)["503"]);
  expect(metrics.filter((text) => /^parley_database_up 1$/m.test(text))).toHaveLength(2);

  const lines = products[0]!.output.stderr.split("\n").filter((line) => line.startsWith("{"));
  expect(lines.length).toBeGreaterThan(0);
  expect(lines.filter((line) => !line.includes(`"replica":${JSON.stringify(hostname())},"pid":`))).toEqual([]);

  // Notifications come from the new primary.
  const listening = `select count(*)::int as count from pg_stat_activity where query like '%listen%' and pid <> pg_backend_pid()`;
  await expect
    .poll(async () => (await queryPostgres(promoted, listening))[0]!["count"], { timeout: 8_000 })
    .toBeGreaterThanOrEqual(2);
  await revokeKey({ store: store.keys, clock: systemClock }, plain.record.id);
  const statuses = () =>
    Promise.all(
      urls.map(
        async (url) =>
          (await fetch(`${url}/v1/models`, { headers: { authorization: `Bearer ${plain.secret}` } })).status,
      ),
    );
  // Without a notification within 4.5 s.
  await expect.poll(statuses, { timeout: 4_000 }).toEqual([401, 401]);
});
