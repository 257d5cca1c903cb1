import { Agent, request } from "undici";
import { expect, inject, it } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { type Limits, NO_LIMITS } from "../../src/core/principal.ts";
import { HeldCalls } from "../replicas/support/held-calls.ts";
import { MAX_TOKENS, MODEL, startDeployment } from "../replicas/support/deployment.ts";
import { createDatabase } from "../support/postgres.ts";
import { startRedis } from "../support/redis.ts";
import { builtProgram } from "../support/built-program.ts";
import { figure } from "./support/figures.ts";
import { scale, timeLimit } from "../support/scale.ts";

const STARTS = scale(5, 50);
const REPLICAS = 3;
const REQUESTS = 300;
const RATE = 50;
const CONCURRENT = 4;
/** How long one of the replicas is stopped in the middle of the burst, in every other start. */
const STOPPED_MS = 200;

it(
  `${REPLICAS} freshly started replicas, ${STARTS} times, admit at most the limits out of ${REQUESTS} simultaneous requests`,
  async () => {
    const redis = await startRedis();
    const databaseUrl = await createDatabase(inject("postgresUrl"));
    const program = await builtProgram();
    const held = new HeldCalls();
    let over = 0;
    let alone = 0;
    for (let start = 0; start < STARTS; start++) {
      const deployment = await startDeployment({ replicas: REPLICAS, databaseUrl, redisUrl: redis.url, program });
      const agent = new Agent({ connections: REQUESTS });
      try {
        deployment.upstream.script(MODEL, [held.act]);
        const make = async (limits: Partial<Limits>): Promise<string> => {
          const all = { ...NO_LIMITS, ...limits };
          return (await createKey({ store: deployment.store.keys, clock: systemClock }, { name: "cold", limits: all }))
            .secret;
        };
        const keys = [await make({ requestsPerMinute: RATE }), await make({ concurrentRequests: CONCURRENT })] as const;
        const ask = async (key: string, index: number): Promise<number> => {
          const { statusCode, body } = await request(
            `${deployment.products[index % REPLICAS]!.url}/v1/chat/completions`,
            {
              dispatcher: agent,
              method: "POST",
              headers: { authorization: `Bearer ${key}`, "content-type": "application/json" },
              body: JSON.stringify({
                model: MODEL,
                max_tokens: MAX_TOKENS,
                messages: [{ role: "user", content: "hi" }],
              }),
            },
          );
          await body.dump();
          return statusCode;
        };
        for (const [key, limit] of [
          [keys[0], RATE],
          [keys[1], CONCURRENT],
        ] as const) {
          const beganMs = performance.now();
          let refused = 0;
          const statuses = Promise.all(
            Array.from({ length: REQUESTS }, async (_, index) => {
              const status = await ask(key, index);
              if (status !== 200) refused += 1;
              return status;
            }),
          );
          const stopped = deployment.products[start % REPLICAS]!;
          if (start % 2 === 1) {
            setTimeout(() => stopped.signal("SIGSTOP"), 20);
            setTimeout(() => stopped.signal("SIGCONT"), 20 + STOPPED_MS);
          }
          await expect.poll(() => held.count + refused, { timeout: 30_000 }).toBe(REQUESTS);
          const elapsedMs = performance.now() - beganMs;
          const admitted = held.release();
          expect(new Set(await statuses)).toEqual(new Set([200, 429]));
          // The rate refills during the burst.
          const most = limit === RATE ? limit + Math.floor((elapsedMs / 60_000) * RATE) : limit;
          if (admitted > most) over += 1;
        }
        for (const { operationsUrl } of deployment.products) {
          const text = await (await fetch(`${operationsUrl}/metrics`)).text();
          alone += Number(/^parley_rates_local_decisions_total (\d+)$/m.exec(text)?.[1]);
        }
      } finally {
        await agent.destroy();
        await deployment.close();
      }
    }
    figure({ name: "cold starts: bursts that were admitted beyond a limit", value: over, unit: "", atMost: 0 });
    figure({ name: "cold starts: requests decided on by a replica alone", value: alone, unit: "" });
  },
  timeLimit(180, 900),
);
