import { setTimeout as delay } from "node:timers/promises";
import { expect, inject, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createDice } from "../../src/simulator/dice.ts";
import { startBalancer } from "../replicas/support/balancer.ts";
import { MODEL, startDeployment } from "../replicas/support/deployment.ts";
import { startLoad } from "../replicas/support/load.ts";
import { createDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { type Act, says } from "../support/scripted-upstream.ts";
import { builtProgram } from "../support/built-program.ts";
import { figure } from "./support/figures.ts";
import { scale, seed, timeLimit } from "../support/scale.ts";

const REPLICAS = 3;
/** Replicas restart in rotation. */
const RESTARTS = scale(3, 50);
const CALLERS = 24;
const SHUTDOWN_DELAY_MS = 1_000;

it(
  `rolling restarts of replicas, ${RESTARTS} in total, fail no request and cut no stream`,
  async () => {
    const redis = await startRedis();
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const program = await builtProgram();
    const config = { shutdown: { delay_ms: SHUTDOWN_DELAY_MS } };
    const deployment = await startDeployment({ replicas: REPLICAS, databaseUrl, redisUrl: redis.url, config, program });
    onTestFinished(() => deployment.close());
    const dice = createDice(`rolling restarts, ${seed()}`);
    /** Slow answers, so that every restart interrupts some. */
    const slowly: Act = (call) => void setTimeout(() => says("one two three")(call), dice.roll(400));
    deployment.upstream.script(MODEL, [slowly]);
    const { secret: key } = await createKey({ store: deployment.store.keys, clock: systemClock }, { name: "rolling" });
    const balancer = startBalancer(() => deployment.products.map(({ url }) => url));
    const load = startLoad({ callers: CALLERS, key, pick: balancer.pick });
    for (let restart = 0; restart < RESTARTS; restart++) {
      await delay(200);
      const index = restart % REPLICAS;
      const product = deployment.products[index]!;
      product.signal("SIGTERM");
      expect(await product.ending).toEqual({ code: 0, signal: null });
      await deployment.restart(index);
    }
    await load.stop();
    await balancer.stop();
    figure({ name: "rolling restarts", value: RESTARTS, unit: "", atLeast: RESTARTS });
    figure({ name: "completions meanwhile", value: load.ended.length, unit: "", atLeast: RESTARTS * CALLERS });
    if (load.failures.length > 0) console.log(load.failures);
    figure({ name: "of these failed", value: load.failures.length, unit: "", atMost: 0 });
    const { sinceMs, untilMs } = { sinceMs: 0, untilMs: Date.now() + 60_000 };
    const { rows } = await deployment.store.usage.summarize({ by: "none", step: "all", sinceMs, untilMs });
    expect(rows[0]?.sums).toMatchObject({ completions: load.ended.length, failed: 0 });
  },
  timeLimit(180, 1_800),
);
