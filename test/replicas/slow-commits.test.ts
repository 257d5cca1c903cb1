import { setTimeout as delay } from "node:timers/promises";
import { expect, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { createDatabase, startPostgres } from "../support/postgres.ts";
import { says } from "../support/scripted-upstream.ts";
import { MODEL, startDeployment } from "./support/deployment.ts";
import { countOutcomes, latencies, type Seen, startTraffic } from "./support/traffic.ts";
import { idsIn } from "./support/written-ids.ts";

const COMMIT_MS = 100;

it("a response waits for about two slow commits, however many replicas write for the same key", async () => {
  // The delay applies to synchronous commits, which the other tests disable.
  const settings = { fsync: "on", commit_delay: COMMIT_MS * 1_000, commit_siblings: 0 };
  const postgres = await startPostgres({ settings });
  onTestFinished(() => postgres.stop());
  const databaseUrl = await createDatabase(postgres.url);
  const deployment = await startDeployment({ replicas: 3, databaseUrl, redisUrl: undefined });
  onTestFinished(() => deployment.close());
  deployment.upstream.script(MODEL, [(call) => void delay(10).then(() => says("one two")(call))]);
  const make = async (limits: object) =>
    createKey(
      { store: deployment.store.keys, clock: systemClock },
      { name: "slow", limits: { ...NO_LIMITS, ...limits } },
    );
  const plain = await make({});
  const budget = await make({ monthlyBudgetMicroUsd: 1_000_000_000 });
  const seen: Seen[] = [];
  let medianMs = Infinity;
  // Again if it took longer: the load of other programs varies, and a fault of the product does not.
  for (let turn = 0; turn < 3 && medianMs >= 3 * COMMIT_MS; turn++) {
    const traffic = startTraffic(
      deployment.products.map(({ url }) => url),
      [
        { name: "plain", everyMs: 30, key: () => plain.secret },
        { name: "budget", everyMs: 150, key: () => budget.secret },
      ],
    );
    await delay(8_000);
    await traffic.stop();
    seen.push(...traffic.seen);
    const of = (caller: string) => latencies(traffic.seen.filter((one) => one.caller === caller));
    console.log({ plain: of("plain"), budget: of("budget"), calls: traffic.seen.length });
    medianMs = of("plain").p50;
  }
  expect(countOutcomes(seen)).toEqual({ 200: seen.length });
  expect(medianMs).toBeLessThan(3 * COMMIT_MS);
  const written = await idsIn("", databaseUrl);
  const ended = seen.map(({ id }) => id);
  expect(written).toHaveLength(ended.length);
  expect(new Set(written)).toEqual(new Set(ended));
});
