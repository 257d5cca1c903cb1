import { execFileSync } from "node:child_process";
import { readdirSync, readFileSync } from "node:fs";
import { join } from "node:path";
import { afterAll, beforeAll, describe, expect, inject, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { openStore } from "../../src/store/store.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { createDatabase } from "../support/postgres.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { launchRedis, type RedisServer } from "../support/redis.ts";
import { complete, configOf, keepAsking, startProvider } from "./monitoring/load.ts";
import { type Prometheus, startPrometheus } from "./monitoring/prometheus.ts";

const DASHBOARDS = join(import.meta.dirname, "../../deploy/grafana/dashboards");
/** Calls of a model whose counts are compared, for each replica. */
const COUNTED = 40;

const undo: (() => Promise<unknown> | void)[] = [];
let products: Product[];
let redis: RedisServer;
let prometheus: Prometheus;
let stopAsking: () => Promise<void>;

beforeAll(async () => {
  const provider = await startProvider();
  undo.push(() => provider.close());
  redis = await launchRedis();
  undo.push(() => redis.stop());
  const databaseUrl = await createDatabase(inject("postgresUrl"));
  const env = { PARLEY_DATABASE_URL: databaseUrl, PARLEY_REDIS_URL: redis.url };
  const config = configOf(provider);
  // One of them has two workers behind its addresses.
  products = await Promise.all(
    [{}, { workers: 2 }].map((more) => startProduct({ config: { ...config, ...more }, env })),
  );
  undo.push(() => Promise.all(products.map((product) => product.stop())));
  const store = await openStore({ dataDir: makeHome(), databaseUrl });
  undo.push(() => store.close());
  const context = { store: store.keys, clock: systemClock };
  const free = await createKey(context, { name: "free", tags: ["batch"] });
  const limits = { ...NO_LIMITS, requestsPerMinute: 1 };
  const limited = await createKey(context, { name: "limited", tags: ["trial"], limits });
  prometheus = await startPrometheus(products.map(({ operationsUrl }) => new URL(operationsUrl).host));
  undo.push(() => prometheus.stop());
  const stopping = new AbortController();
  const keys = { free: free.secret, limited: limited.secret };
  const asking = keepAsking(products, keys, stopping.signal);
  stopAsking = async () => {
    stopping.abort();
    await asking;
  };
  undo.push(stopAsking);
  await Promise.all(
    products.flatMap((product) =>
      Array.from({ length: COUNTED }, (_, place) =>
        complete(product, keys.free, { model: "good", stream: place % 2 === 0 }),
      ),
    ),
  );
}, 90_000);

afterAll(async () => {
  for (const step of undo.splice(0).toReversed()) await step();
}, 60_000);

/** The queries of a dashboard, as Grafana would send them for the last minute. */
function queriesOf(file: string): string[] {
  const text = readFileSync(join(DASHBOARDS, file), "utf8");
  return [...text.matchAll(/"expr": (".*"),?$/gm)].map(([, expr = ""]) =>
    (JSON.parse(expr) as string).replaceAll("$__rate_interval", "1m").replaceAll("$instance", ".+"),
  );
}

const activeAlerts = async (): Promise<{ name: string; annotations: Readonly<Record<string, string>> }[]> => {
  const { alerts } = await prometheus.get<{
    alerts: { labels: Record<string, string>; annotations: Record<string, string> }[];
  }>("/api/v1/alerts");
  return alerts.map(({ labels, annotations }) => ({ name: labels["alertname"]!, annotations }));
};

const names = async (): Promise<string[]> => (await activeAlerts()).map(({ name }) => name);

describe("a Prometheus that scrapes two replicas, one with two workers", () => {
  it("has the counts of Redis that does not answer, and its alert", async () => {
    redis.freeze();
    await expect
      .poll(async () => (await prometheus.query("sum(parley_store_errors_total)"))[0]?.value ?? 0, { timeout: 20_000 })
      .toBeGreaterThan(0);
    await expect.poll(names, { timeout: 20_000 }).toContain("ParleyLimitsLocal");
    redis.thaw();
    await expect.poll(names, { timeout: 20_000 }).not.toContain("ParleyLimitsLocal");
  }, 60_000);

  it.each(readdirSync(DASHBOARDS).filter((file) => file.endsWith(".json")))(
    "has data for every query of %s",
    async (file) => {
      const queries = queriesOf(file);
      expect(queries.length).toBeGreaterThan(5);
      const without = async (): Promise<string[]> => {
        const results = await Promise.all(queries.map((query) => prometheus.query(query)));
        return queries.filter((_, place) => results[place]!.length === 0);
      };
      await expect.poll(without, { timeout: 30_000, interval: 500 }).toEqual([]);
    },
  );

  it("finds every rule valid, and what is wrong here", async () => {
    // Some need minutes of it; the others are pending or fire.
    await expect
      .poll(names, { timeout: 30_000, interval: 500 })
      .toEqual(
        expect.arrayContaining([
          "ParleyCompletionsFailing",
          "ParleyCredentialRefused",
          "ParleyTargetFailing",
          "ParleyProviderRateLimited",
          "ParleyBreakerOpen",
          "ParleyCostUnreserved",
          "ParleyCostEstimated",
        ]),
      );
    const { groups } = await prometheus.get<{
      groups: { rules: { name: string; health: string; lastError?: string }[] }[];
    }>("/api/v1/rules");
    const rules = groups.flatMap((group) => group.rules);
    expect(rules.length).toBeGreaterThan(20);
    expect(rules.filter(({ health }) => health !== "ok")).toEqual([]);
    const texts = (await activeAlerts()).flatMap(({ annotations }) => Object.values(annotations));
    // A mistake in a template is in its text.
    expect(texts.filter((text) => /error|<no value>|\{\{/i.test(text))).toEqual([]);
  });

  it("counts as many completions as were asked of all replicas and workers together", async () => {
    await stopAsking();
    const logged = (): number =>
      products.reduce((sum, { output }) => sum + output.stderr.split('"msg":"completion"').length - 1, 0);
    const difference = async (counter: string): Promise<number> =>
      (await prometheus.query(`sum(${counter}{job="parley"})`))[0]!.value - logged();
    const counters = ["parley_completions_total", "parley_key_completions_total"];
    await expect.poll(() => Promise.all(counters.map(difference)), { timeout: 10_000 }).toEqual([0, 0]);
    expect(logged()).toBeGreaterThan(2 * COUNTED);
    // A replica is one target, whatever its workers.
    expect((await prometheus.query('parley_info{job="parley"}')).length).toBe(2);
    expect((await prometheus.query("sum(parley_workers_ready)"))[0]?.value).toBe(2);
    expect((await prometheus.query("max(parley_replicas)"))[0]?.value).toBe(3);
  });

  it("shows a worker that was killed, and keeps what it had counted", async () => {
    const total = async (): Promise<number> =>
      (await prometheus.query('sum(parley_completions_total{job="parley"})'))[0]!.value;
    const before = await total();
    const [, fleet] = products as [Product, Product];
    const workers = execFileSync("pgrep", ["-P", String(fleet.pid)], { encoding: "utf8" })
      .trim()
      .split("\n")
      .map(Number);
    process.kill(Math.max(...workers), "SIGKILL");
    await expect
      .poll(async () => (await prometheus.query("sum(parley_workers_replaced_total)"))[0]?.value, { timeout: 20_000 })
      .toBe(1);
    await expect.poll(names, { timeout: 20_000 }).toContain("ParleyWorkersReplaced");
    expect(await total()).toBe(before);
  }, 60_000);

  it("misses a replica that was killed", async () => {
    products[0]!.signal("SIGKILL");
    await expect.poll(names, { timeout: 20_000 }).toContain("ParleyDown");
  });
});
