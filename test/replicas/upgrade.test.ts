import { setTimeout as delay } from "node:timers/promises";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { createDice } from "../../src/simulator/dice.ts";
import { builtProgram } from "../support/built-program.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";
import { makeHome, runProduct } from "../support/product.ts";
import { type Act, says } from "../support/scripted-upstream.ts";
import { startBalancer } from "./support/balancer.ts";
import { type Deployment, MODEL, startDeployment } from "./support/deployment.ts";
import { type LaterRelease, makeLaterRelease } from "./support/later-release.ts";
import { startLoad } from "./support/load.ts";

const VERSION = MIGRATIONS.length;
const USABLE_FROM = Math.max(...MIGRATIONS.map(({ usableFrom = 0 }) => usableFrom));
const CALLERS = 12;
const TIMEOUT_MS = 180_000;

/** An expanding migration: columns of the ledger and of what every call under a budget writes, and a table. */
const EXPAND = `{
    name: "an expansion",
    async up(database) {
      await addColumn(database, "spending", ["note", "text"]);
      await addColumn(database, "completions", ["note", "text"]);
      await database.schema.createTable("notes").addColumn("id", "text", (column) => column.primaryKey()).execute();
    },
  }`;
/** The contraction of a column that the release with version VERSION uses, and the one after it no longer. */
const CONTRACT = `{
    name: "a contraction",
    usableFrom: ${VERSION + 1},
    async up({ schema }) {
      await schema.alterTable("accounts").dropColumn("aliases").execute();
    },
  }`;

function laterRelease(...migrations: readonly string[]): LaterRelease {
  const release = makeLaterRelease(migrations);
  onTestFinished(() => release.remove());
  return release;
}

/** Runs a command of a release on the database. */
async function run(argv: readonly string[], { program, env }: LaterRelease, databaseUrl: string) {
  const home = makeHome();
  const { output, ending } = runProduct(argv, { home, program, env: { ...env, PARLEY_DATABASE_URL: databaseUrl } });
  const { code } = await ending;
  return { code, ...output };
}

/** Stops a replica in an orderly way and starts another release in its place. */
async function replace(deployment: Deployment, index: number, program: Pick<LaterRelease, "program" | "env">) {
  const product = deployment.products[index]!;
  product.signal("SIGTERM");
  expect(await product.ending).toEqual({ code: 0, signal: null });
  await deployment.restart(index, program);
}

describe("a release and the next one", () => {
  it(
    "serve side by side under load, through the migration, and back, without a failed call or a lost entry",
    async () => {
      const databaseUrl = await createDatabase(inject("postgresUrl"));
      const present = await builtProgram();
      const next = laterRelease(EXPAND);
      const config = { shutdown: { delay_ms: 1_500 } };
      const deployment = await startDeployment({
        replicas: 2,
        databaseUrl,
        redisUrl: undefined,
        config,
        program: present,
      });
      onTestFinished(() => deployment.close());
      const dice = createDice("upgrades");
      const slowly: Act = (call) => void setTimeout(() => says("one two three")(call), dice.roll(300));
      deployment.upstream.script(MODEL, [slowly]);
      const { secret: key } = await createKey(
        { store: deployment.store.keys, clock: systemClock },
        { name: "upgrade", limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: 1e12 } },
      );
      const balancer = startBalancer(() => deployment.products.map(({ url }) => url));
      const load = startLoad({ callers: CALLERS, key, pick: balancer.pick });

      const plan = await run(["migrate", "--plan"], next, databaseUrl);
      expect(plan.stdout).toContain(`programs that know version ${VERSION} continue to work`);
      expect(plan.stdout).toMatch(/alter table "completions" add column "note" text\n +locks completions for a moment/);
      expect(await versionOf(databaseUrl)).toEqual({ version: VERSION, usable_from: USABLE_FROM });

      // A report that reads both tables keeps the migration from its locks, for three seconds from its first wait on.
      const report = new pg.Client(databaseUrl);
      await report.connect();
      await report.query("begin; select count(*) from completions; select count(*) from spending");
      const released = untilMigrationWaits(databaseUrl)
        .then(() => delay(3_000))
        .then(() => report.query("commit"));
      const [first, second] = await Promise.all([
        run(["migrate"], next, databaseUrl),
        run(["migrate"], next, databaseUrl),
      ]);
      await released;
      await report.end();
      expect([first.code, second.code]).toEqual([0, 0]);
      expect([first.stdout, second.stdout].join("")).toContain(`from version ${VERSION} to ${VERSION + 1}`);
      expect(await versionOf(databaseUrl)).toEqual({ version: VERSION + 1, usable_from: USABLE_FROM });

      await delay(1_000);
      await replace(deployment, 0, next);
      await delay(1_000);
      // The present release also starts on the database of the next one.
      await replace(deployment, 1, present);
      await delay(1_000);
      await replace(deployment, 1, next);
      // The way back: the program only, not the data.
      await replace(deployment, 0, present);
      await replace(deployment, 1, present);
      await load.stop();
      await balancer.stop();

      expect(load.failures).toEqual([]);
      expect(load.ended.length).toBeGreaterThan(100);
      const selection = { by: "none", step: "all", sinceMs: 0, untilMs: Date.now() + 60_000 } as const;
      const { rows } = await deployment.store.usage.summarize(selection);
      expect(rows[0]?.sums).toMatchObject({ completions: load.ended.length, failed: 0 });
      const ids = (await queryPostgres(databaseUrl, "select id from completions")).map(({ id }) => String(id));
      expect(ids.toSorted()).toEqual(load.ended.toSorted());
      console.log(`${load.ended.length} completions, ${load.failures.length} failed`);
    },
    TIMEOUT_MS,
  );

  it(
    "but one, with a contraction, waits until no process of the release before runs",
    async () => {
      const databaseUrl = await createDatabase(inject("postgresUrl"));
      const present = await builtProgram();
      const afterNext = laterRelease(EXPAND, CONTRACT);
      const deployment = await startDeployment({ replicas: 1, databaseUrl, redisUrl: undefined, program: present });
      onTestFinished(() => deployment.close());
      const plan = await run(["migrate", "--plan"], afterNext, databaseUrl);
      expect(plan.stdout).toContain(`1 process uses it. Programs that do not know version ${VERSION + 1} stop working`);
      const migrating = run(["migrate"], afterNext, databaseUrl);
      await delay(3_000);
      expect(await versionOf(databaseUrl)).toEqual({ version: VERSION, usable_from: USABLE_FROM });
      await deployment.products[0]!.stop();
      expect((await migrating).stdout).toContain(`from version ${VERSION} to ${VERSION + 2}`);
      expect(await versionOf(databaseUrl)).toEqual({ version: VERSION + 2, usable_from: VERSION + 1 });
      const back = await run(["migrate"], { ...present, remove: () => undefined }, databaseUrl);
      expect(back.stderr).toContain(`Programs have to know version ${VERSION + 1} at least`);
    },
    TIMEOUT_MS,
  );
});

/** Resolves when a migration waits for the lock of a table. Rejects after half a minute. */
async function untilMigrationWaits(databaseUrl: string): Promise<void> {
  const waiting = "select 1 from pg_stat_activity where wait_event_type = 'Lock' and query like 'alter table%'";
  for (let polls = 0; (await queryPostgres(databaseUrl, waiting)).length === 0; polls++) {
    if (polls > 600) throw new Error("no migration waits for a lock");
    await delay(50);
  }
}

async function versionOf(databaseUrl: string) {
  const rows = await queryPostgres(databaseUrl, "select to_jsonb(s) as row from parley_schema s");
  const row = rows[0]?.["row"] as { version: number; usable_from?: number };
  return { usable_from: 0, ...row };
}
