import { setTimeout as delay } from "node:timers/promises";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createDatabase } from "../support/postgres.ts";
import { says } from "../support/scripted-upstream.ts";
import { MODEL, startDeployment } from "./support/deployment.ts";
import { startLoad } from "./support/load.ts";
import { idsIn } from "./support/written-ids.ts";

const CALLERS = 16;
/** Each takes more than a second, and a merge has not so much time. */
const SQLITE_KILLS = process.env["CI"] === "true" ? 40 : 100;
/** A kill comes at a random moment of the load's first so many milliseconds. */
const LOAD_MS = 400;
const START_MS = 2_000;

const noDatabase = async (): Promise<undefined> => undefined;

describe.each([
  ["SQLite", SQLITE_KILLS, noDatabase],
  ["PostgreSQL", 20, () => createDatabase(inject("postgresUrl"))],
] as const)("a process on %s that is killed %i times under load", (_, kills, database) => {
  it(
    "leaves a ledger with every completion whose end was seen, once",
    async () => {
      const databaseUrl: string | undefined = await database();
      const deployment = await startDeployment({ replicas: 1, databaseUrl, redisUrl: undefined });
      onTestFinished(() => deployment.close());
      deployment.upstream.script(MODEL, [says("one two three")]);
      const keys = { store: deployment.store.keys, clock: systemClock };
      const { secret: key } = await createKey(keys, { name: "crash" });
      const seen: string[] = [];
      const startsMs: number[] = [];
      for (let count = 0; count < kills; count++) {
        const product = deployment.products[0]!;
        const load = startLoad({ callers: CALLERS, key, pick: () => product.url });
        await delay(Math.random() * LOAD_MS);
        product.signal("SIGKILL");
        await Promise.all([product.ending, load.stop()]);
        seen.push(...load.ended);
        const beganMs = performance.now();
        await deployment.restart(0);
        startsMs.push(performance.now() - beganMs);
      }
      expect(await deployment.store.findDamage()).toEqual([]);
      const written = await idsIn(join(deployment.products[0]!.home, "data"), databaseUrl);
      expect(seen.length).toBeGreaterThan(kills);
      expect(new Set(written).size).toBe(written.length);
      const inLedger = new Set(written);
      expect(seen.filter((id) => !inLedger.has(id))).toEqual([]);
      const sorted = startsMs.toSorted((a, b) => a - b);
      const medianMs = sorted[sorted.length >> 1]!;
      console.log(
        `${kills} kills, ${seen.length} ends seen, ${written.length} entries;` +
          ` start after a kill: median ${medianMs.toFixed(0)} ms, longest ${sorted.at(-1)!.toFixed(0)} ms`,
      );
      expect(medianMs).toBeLessThan(START_MS);
    },
    15 * 60_000,
  );
});
