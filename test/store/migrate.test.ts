import { DatabaseSync } from "node:sqlite";
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import type { Kysely } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { connect, connectUnlimited, type DatabaseLocation } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrate.ts";
import { type Effect, effectOf, planMigration, statementsOf } from "../../src/store/migration-plan.ts";
import { type Migration, MIGRATIONS } from "../../src/store/migrations.ts";
import { explainOpening } from "../../src/store/open-database.ts";
import { openStore } from "../../src/store/store.ts";

let location: DatabaseLocation;
beforeEach(() => {
  location = { dataDir: mkdtempSync(join(tmpdir(), "parley-migrate-")), databaseUrl: undefined };
});
afterEach(() => rmSync(location.dataDir, { recursive: true }));

/** Makes a table of its name. */
function step(name: string, usableFrom?: number): Migration {
  return {
    name,
    ...(usableFrom !== undefined && { usableFrom }),
    async up({ schema }) {
      await schema.createTable(name).addColumn("x", "integer").execute();
    },
  };
}

async function migrateTo(migrations: readonly Migration[]) {
  const database = await connect(location);
  try {
    return await migrate(database, () => connectUnlimited(location), { migrations, waitMs: 100 });
  } catch (error) {
    throw explainOpening("the file", error);
  } finally {
    await database.close();
  }
}

function query(sql: string): unknown {
  const database = new DatabaseSync(join(location.dataDir, "parley.db"));
  try {
    return database.prepare(sql).all();
  } finally {
    database.close();
  }
}

const tables = () => query("select name from sqlite_master where name not like 'sqlite_%' order by name");

describe("migrations", () => {
  it("are applied once, all or none, and a failure is named", async () => {
    await migrateTo([step("one")]);
    expect(await migrateTo([step("one"), step("two")])).toEqual({ before: 1, after: 2 });
    const failing: Migration = { name: "a failing one", up: () => Promise.reject(new Error("half-way")) };
    await expect(migrateTo([step("one"), step("two"), step("three"), failing])).rejects.toThrow(
      "the file: migration 4 (a failing one) has failed, and nothing has changed: half-way",
    );
    expect(tables()).toEqual([{ name: "one" }, { name: "parley_schema" }, { name: "two" }]);
  });

  it("record which programs can use the database, also in one that did not record it", async () => {
    await migrateTo([step("one")]);
    query("alter table parley_schema drop column usable_from");
    await migrateTo([step("one"), step("two")]);
    expect(query("select * from parley_schema")).toEqual([{ version: 2, usable_from: 0 }]);
    await migrateTo([step("one"), step("two"), step("three", 2), step("four")]);
    expect(query("select * from parley_schema")).toEqual([{ version: 4, usable_from: 2 }]);
    expect(await migrateTo([step("one"), step("two")])).toEqual({ before: 4, after: 4 });
    await expect(migrateTo([step("one")])).rejects.toThrow("Programs have to know version 2 at least");
  });

  it("that running processes would not survive wait for their end", async () => {
    await (await openStore(location)).close();
    const version = MIGRATIONS.length;
    const skipped = [...MIGRATIONS, step("one"), step("two", version + 1)];
    query(`insert into replicas (name, seen_at_ms) values ('a', ${Date.now() - 1_000}) returning name`);
    await expect(migrateTo(skipped)).rejects.toThrow(
      `Version ${version} of the database is in use (1 process), and programs that do not know version ${version + 1} would stop working`,
    );
    await migrateTo(skipped.slice(0, -1));
    expect(await migrateTo(skipped)).toEqual({ before: version + 1, after: version + 2 });
  });

  it("happen after the lease of the last process has ended", async () => {
    await (await openStore(location)).close();
    query(`insert into replicas (name, seen_at_ms) values ('a', ${Date.now() - 30_001}) returning name`);
    const skipped = [...MIGRATIONS, step("one"), step("two", MIGRATIONS.length + 1)];
    expect(await migrateTo(skipped)).toMatchObject({ after: MIGRATIONS.length + 2 });
  });
});

describe("the plan of a migration", () => {
  it("has the pending statements with their effects and rows, and changes nothing", async () => {
    await (await openStore(location)).close();
    query("insert into throttles values ('a', 1, 1, 1), ('b', 1, 1, 1) returning subject");
    const pending: Migration = {
      name: "a column",
      async up(database) {
        await database.schema.alterTable("throttles").addColumn("reason", "text").execute();
        await (database as Kysely<{ throttles: { reason: string } }>)
          .updateTable("throttles")
          .set({ reason: "" })
          .execute();
      },
    };
    const version = MIGRATIONS.length;
    const before = tables();
    expect(await planMigration(location, [...MIGRATIONS, pending])).toEqual({
      where: join(location.dataDir, "parley.db"),
      version,
      target: version + 1,
      usableFrom: 23,
      replicasContinue: true,
      processes: 0,
      pending: [
        {
          version: version + 1,
          name: "a column",
          statements: [
            { sql: 'alter table "throttles" add column "reason" text', table: "throttles", kind: "moment", rows: 2 },
            { sql: 'update "throttles" set "reason" = ?', table: "throttles", kind: "rows", rows: 2 },
          ],
        },
      ],
    });
    expect(tables()).toEqual(before);
  });

  it("says when programs of the database's version stop working", async () => {
    await (await openStore(location)).close();
    const [next, after] = [MIGRATIONS.length + 1, MIGRATIONS.length + 2];
    const both = [...MIGRATIONS, step("one"), step("two", next)];
    expect(await planMigration(location, both)).toMatchObject({
      replicasContinue: false,
      usableFrom: next,
      target: after,
    });
    await migrateTo(both.slice(0, -1));
    expect(await planMigration(location, both)).toMatchObject({ replicasContinue: true, usableFrom: next });
  });

  it("is that of a new database when there is none, and makes none", async () => {
    const plan = await planMigration(location);
    expect(plan).toMatchObject({ version: 0, target: MIGRATIONS.length, replicasContinue: true });
    expect(plan.pending.length).toBe(MIGRATIONS.length);
    await expect(connectUnlimited(location).then((database) => database.close())).resolves.toBeUndefined();
    expect(() => query("select 1 from parley_schema")).toThrow("no such table");
  });

  it.each<[string, Effect]>([
    ["create table t (x integer)", { table: "t", kind: "new" }],
    ["create index made_x on made (x)", { table: "made", kind: "new" }],
    ["create unique index t_x on t (x)", { table: "t", kind: "index" }],
    ["alter table t add column x text", { table: "t", kind: "moment" }],
    ["alter table t add column x bigint default 0 not null", { table: "t", kind: "moment" }],
    ["alter table t add column x bigint not null", { table: "t", kind: "breaking" }],
    ["alter table t add column x text references u (x)", { table: "t", kind: "breaking" }],
    ["alter table t drop column x", { table: "t", kind: "breaking" }],
    ["alter table t rename to u", { table: "t", kind: "breaking" }],
    ["drop table t", { table: "t", kind: "breaking" }],
    ["drop index t_x", { table: undefined, kind: "breaking" }],
    ["update t set x = 1", { table: "t", kind: "rows" }],
    ["insert into made select x from t group by x", { table: "t", kind: "rows" }],
    ["truncate t", { table: undefined, kind: "breaking" }],
  ])("knows the effect of %s", (statement, effect) => {
    expect(effectOf(statement, new Set(["made"]))).toEqual(effect);
  });
});

/** The migrations that were there before the rule, and before the first release. */
const BEFORE_THE_RULE = 23;
/** Tables with a row for each completion, minute, hour, refusal, stored response or stored content: no migration reads or writes all of their rows. */
const LARGE = new Set([
  "completions",
  "usage_hours",
  "usage_minutes",
  "refusals",
  "kept_responses",
  "completion_contents",
]);

/** How a migration breaks the rule of docs/operations/upgrade.md. */
async function breachesOf({ usableFrom, ...migration }: Migration, version: number): Promise<readonly string[]> {
  const breaches: string[] = [];
  for (const kind of ["sqlite", "postgres"] as const) {
    const created = new Set<string>();
    for (const statement of await statementsOf(migration, kind)) {
      const effect = effectOf(statement, created);
      const isSlow = ["index", "rows"].includes(effect.kind) && LARGE.has(effect.table ?? "");
      if (isSlow || (effect.kind === "breaking" && usableFrom === undefined)) breaches.push(statement);
    }
  }
  if (usableFrom !== undefined && !(usableFrom > 0 && usableFrom < version)) breaches.push("usableFrom");
  return breaches;
}

describe("every migration", () => {
  it("keeps the rule of docs/operations/upgrade.md", async () => {
    const all = MIGRATIONS.map((migration, index) => ({ migration, version: index + 1 }));
    const breaches = all
      .slice(BEFORE_THE_RULE)
      .map(async ({ migration, version }) => [migration.name, await breachesOf(migration, version)] as const);
    expect((await Promise.all(breaches)).filter(([, found]) => found.length > 0)).toEqual([]);
  });

  it("that breaks the rule is found", async () => {
    const dropping: Migration = {
      name: "dropping",
      up: async ({ schema }) => schema.alterTable("accounts").dropColumn("role").execute(),
    };
    const indexing: Migration = {
      name: "indexing",
      up: async ({ schema }) => schema.createIndex("slow").on("completions").column("outcome").execute(),
    };
    expect(await breachesOf(dropping, 30)).toContain('alter table "accounts" drop column "role"');
    expect(await breachesOf({ ...dropping, usableFrom: 29 }, 30)).toEqual([]);
    expect(await breachesOf({ ...dropping, usableFrom: 30 }, 30)).toEqual(["usableFrom"]);
    expect(await breachesOf({ ...indexing, usableFrom: 29 }, 30)).toContain(
      'create index "slow" on "completions" ("outcome")',
    );
    expect(await breachesOf(step("one"), 30)).toEqual([]);
  });
});
