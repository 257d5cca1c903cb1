import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { type Act, says } from "../support/scripted-upstream.ts";
import { MODEL, startDeployment } from "./support/deployment.ts";
import { startLoad } from "./support/load.ts";

const REPLICAS = 3;
const ROUNDS = 5;
const CALLERS = 24;

/** Answers that take their time, so that a restart always finds some in the middle. */
const slowly: Act = (call) => void setTimeout(() => says("one two three")(call), Math.random() * 400);

it(
  `replicas that are restarted one after the other, ${ROUNDS} times each, fail no request and cut no stream`,
  async () => {
    const redis = await startRedis();
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const deployment = await startDeployment({ replicas: REPLICAS, databaseUrl, redisUrl: redis.url });
    onTestFinished(() => deployment.close());
    deployment.upstream.script(MODEL, [slowly]);
    const { secret: key } = await createKey({ store: deployment.store.keys, clock: systemClock }, { name: "rolling" });
    let turn = 0;
    const load = startLoad({ callers: CALLERS, key, pick: () => deployment.products[turn++ % REPLICAS]!.url });
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
    console.log(`${load.ended.length} completions over ${ROUNDS * REPLICAS} restarts, ${load.failures.length} failed`);
    expect(load.failures).toEqual([]);
    const { sinceMs, untilMs } = { sinceMs: 0, untilMs: Date.now() + 60_000 };
    const [row] = await deployment.store.ledger.usage({ by: "model", sinceMs, untilMs });
    expect(row).toMatchObject({ completions: load.ended.length, failed: 0 });
  },
  5 * 60_000,
);
