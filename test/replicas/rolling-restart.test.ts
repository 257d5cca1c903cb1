import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { type Act, says } from "../support/scripted-upstream.ts";
import { startBalancer } from "./support/balancer.ts";
import { MODEL, startDeployment } from "./support/deployment.ts";
import { startLoad } from "./support/load.ts";

const REPLICAS = 3;
const ROUNDS = 5;
const CALLERS = 24;
const NOTICE_MS = 1_000;

/** Answers that take their time, so that a restart always finds some in the middle. */
const slowly: Act = (call) => void setTimeout(() => says("one two three")(call), Math.random() * 400);

it(
  `replicas that are restarted one after the other, ${ROUNDS} times each, fail no request and cut no stream`,
  async () => {
    const redis = await startRedis();
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const config = { shutdown: { notice_ms: NOTICE_MS } };
    const deployment = await startDeployment({ replicas: REPLICAS, databaseUrl, redisUrl: redis.url, config });
    onTestFinished(() => deployment.close());
    deployment.upstream.script(MODEL, [slowly]);
    const { secret: key } = await createKey({ store: deployment.store.keys, clock: systemClock }, { name: "rolling" });
    const balancer = startBalancer(() => deployment.products.map(({ url }) => url));
    const load = startLoad({ callers: CALLERS, key, pick: balancer.pick });
    for (let round = 0; round < ROUNDS; round++) {
      for (let index = 0; index < REPLICAS; index++) {
        await delay(200);
        const product = deployment.products[index]!;
        product.signal("SIGTERM");
        expect(await product.ending).toEqual({ code: 0, signal: null });
        await deployment.restart(index);
      }
    }
    await load.stop();
    await balancer.stop();
    console.log(`${load.ended.length} completions over ${ROUNDS * REPLICAS} restarts, ${load.failures.length} failed`);
    expect(load.failures).toEqual([]);
    const { sinceMs, untilMs } = { sinceMs: 0, untilMs: Date.now() + 60_000 };
    const [row] = await deployment.store.usage.summarize({ by: "none", step: "all", sinceMs, untilMs });
    expect(row?.sums).toMatchObject({ completions: load.ended.length, failed: 0 });
  },
  5 * 60_000,
);
