import { setTimeout as delay } from "node:timers/promises";
import { join } from "node:path";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { createDice } from "../../src/simulator/dice.ts";
import { type Deployment, MODEL, startDeployment } from "../replicas/support/deployment.ts";
import { startLoad } from "../replicas/support/load.ts";
import { spread } from "../replicas/support/traffic.ts";
import { idsIn } from "../replicas/support/written-ids.ts";
import { createDatabase } from "../support/postgres.ts";
import { says } from "../support/scripted-upstream.ts";
import { builtProgram } from "../support/built-program.ts";
import { UNLIMITED } from "../support/unlimited.ts";
import { figure } from "./support/figures.ts";
import { scale, seed, timeLimit } from "../support/scale.ts";

const CALLERS = 16;
/** Upper bound of the random time between the first end that a caller received and the SIGKILL. */
const LOAD_MS = 400;
const START_MS = 2_000;
/** With `ledger.durability: interval`: the interval, and a write on a busy machine. */
const LOST_MS = 50 + 250;

const noDatabase = async (): Promise<undefined> => undefined;
const postgres = () => createDatabase(inject("postgresUrl"));

/** One end that a caller received, and how long before the SIGKILL. */
interface SeenEnd {
  readonly id: string;
  readonly ageMs: number;
}

/** Kills the only process again and again under load. Returns the ends that callers received before, and how long starts took. */
async function killAgain(deployment: Deployment, { kills, place }: { kills: number; place: string }) {
  deployment.upstream.script(MODEL, [says("one two three")]);
  const keys = { store: deployment.store.keys, clock: systemClock };
  const { secret: key } = await createKey(keys, { name: "crash" });
  const dice = createDice(`kills on ${place}, ${seed()}`);
  const seen: SeenEnd[] = [];
  const startsMs: number[] = [];
  for (let count = 0; count < kills; count++) {
    const product = deployment.products[0]!;
    const load = startLoad({ callers: CALLERS, key, pick: () => product.url });
    await expect.poll(() => load.ended.length, { timeout: 30_000 }).toBeGreaterThan(0);
    await delay(dice.roll(LOAD_MS));
    product.signal("SIGKILL");
    const killedMs = performance.now();
    await Promise.all([product.ending, load.stop()]);
    seen.push(...load.ended.map((id, index) => ({ id, ageMs: killedMs - load.endsMs[index]! })));
    const beganMs = performance.now();
    await deployment.restart(0);
    startsMs.push(performance.now() - beganMs);
  }
  return { seen, startsMs };
}

interface Crashes {
  readonly database: "SQLite" | "PostgreSQL";
  readonly durability: "reply" | "interval";
  readonly kills: number;
  readonly databaseUrl: string | undefined;
}

/** Kills a process under load, and reads its ledger. `lost`: ends that callers received and that have no entry. */
async function lostAfterKills({ database, durability, kills, databaseUrl }: Crashes): Promise<{
  readonly damage: readonly string[];
  readonly lost: readonly SeenEnd[];
}> {
  const place = `${database}, ${durability}`;
  const deployment = await startDeployment({
    replicas: 1,
    databaseUrl,
    redisUrl: undefined,
    config: { limits: UNLIMITED, ledger: { durability } },
    program: await builtProgram(),
  });
  onTestFinished(() => deployment.close());
  const { seen, startsMs } = await killAgain(deployment, { kills, place });
  const damage = await deployment.store.findDamage();
  const written = await idsIn(join(deployment.products[0]!.home, "data"), databaseUrl);
  const inLedger = new Set(written);
  figure({ name: `SIGKILLs under load on ${place}`, value: kills, unit: "", atLeast: kills });
  figure({ name: `ends that callers saw before those on ${place}`, value: seen.length, unit: "", atLeast: kills });
  const doubled = written.length - inLedger.size;
  figure({ name: `duplicate entries on ${place}`, value: doubled, unit: "", atMost: 0 });
  const medianMs = Math.round(spread(startsMs).p50);
  figure({ name: `start after a kill on ${place}, median`, value: medianMs, unit: "ms", atMost: START_MS });
  return { damage, lost: seen.filter(({ id }) => !inLedger.has(id)) };
}

describe.each([
  ["SQLite", scale(14, 800), noDatabase],
  ["PostgreSQL", scale(6, 200), postgres],
] as const)("a process on %s that receives SIGKILL %i times under load", (database, kills, open) => {
  it(
    "has every completion whose end a caller received in its ledger, once",
    async () => {
      const { damage, lost } = await lostAfterKills({
        database,
        durability: "reply",
        kills,
        databaseUrl: await open(),
      });
      expect(damage).toEqual([]);
      figure({ name: `of these missing from the ledger on ${database}`, value: lost.length, unit: "", atMost: 0 });
    },
    timeLimit(300, 7_200),
  );
});

describe.each([
  ["SQLite", scale(8, 200), noDatabase],
  ["PostgreSQL", scale(4, 100), postgres],
] as const)("a process on %s with an interval that receives SIGKILL %i times under load", (database, kills, open) => {
  it(
    "loses only completions of the last moment from its ledger",
    async () => {
      const { damage, lost } = await lostAfterKills({
        database,
        durability: "interval",
        kills,
        databaseUrl: await open(),
      });
      expect(damage).toEqual([]);
      const oldestMs = Math.round(Math.max(0, ...lost.map(({ ageMs }) => ageMs)));
      figure({ name: `oldest end that was lost on ${database}`, value: oldestMs, unit: "ms", atMost: LOST_MS });
    },
    timeLimit(300, 7_200),
  );
});
