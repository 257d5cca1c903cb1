import { execFileSync, spawnSync } from "node:child_process";
import { existsSync, mkdtempSync, readFileSync, rmSync, statSync, truncateSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { Kysely, sql } from "kysely";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { backUp } from "../../src/store/backup.ts";
import { SqliteThreadDialect } from "../../src/store/sqlite/dialect.ts";
import { TimeLimitError } from "../../src/store/store-error.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { startProcess } from "../support/processes.ts";
import { EXACT, raceForBudget } from "./budget-race.ts";
import { demand } from "./contracts/demands.ts";
import { entry, NOON } from "./contracts/entries.ts";
import { readWhile } from "./read-while.ts";

/**
 * Reads from a database and closes it. In Python, whose SQLite may be older than 3.51: that one deletes the write-ahead log
 * whenever no lock on the database's file prevents it.
 */
const READ_AND_CLOSE =
  'import sqlite3, sys; c = sqlite3.connect(sys.argv[1]); c.execute("select count(*) from completions").fetchall(); c.close()';
const hasPython = spawnSync("python3", ["-c", "import sqlite3"]).status === 0;

let dataDir: string;
let location: { dataDir: string; databaseUrl: undefined };
let file: string;
const opened: { close(): Promise<void> }[] = [];

beforeEach(() => {
  dataDir = mkdtempSync(join(tmpdir(), "parley-sqlite-"));
  location = { dataDir, databaseUrl: undefined };
  file = join(dataDir, "parley.db");
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((each) => each.close()));
  rmSync(dataDir, { recursive: true });
});

async function open(): Promise<Store> {
  const store = await openStore(location);
  opened.push(store);
  return store;
}

describe("the thread of the database", () => {
  function openThread(): { database: Kysely<never>; dialect: SqliteThreadDialect } {
    const dialect = new SqliteThreadDialect({ file, limitMs: undefined });
    const database = new Kysely<never>({ dialect });
    opened.push({ close: () => database.destroy() });
    return { database, dialect };
  }

  it("that dies rejects pending queries, and is replaced at the next query", async () => {
    const { database, dialect } = openThread();
    await sql`create table t (x integer)`.execute(database);
    const waiting = sql`insert into t values (1) returning x`.execute(database).then(
      () => "written",
      (error: Error) => error.message,
    );
    // The query starts in the next microtask, and the thread is killed before it answers.
    await Promise.resolve();
    await dialect.killThread();
    expect(await waiting).toContain("has ended");
    await sql`insert into t values (2)`.execute(database);
    expect((await sql<{ x: number }>`select x from t where x = 2`.execute(database)).rows).toEqual([{ x: 2 }]);
  });

  it("that dies in a transaction rolls it back", async () => {
    const { database, dialect } = openThread();
    await sql`create table t (x integer)`.execute(database);
    const work = database.transaction().execute(async (transaction) => {
      await sql`insert into t values (1)`.execute(transaction);
      await dialect.killThread();
      await sql`insert into t values (2)`.execute(transaction);
    });
    await expect(work).rejects.toThrow("has ended");
    expect((await sql`select x from t`.execute(database)).rows).toEqual([]);
  });

  it("that does not answer in time is replaced", async () => {
    // Less than the statement takes on a fast machine, and more than the start of a thread on a slow one.
    const dialect = new SqliteThreadDialect({ file, limitMs: 1_000 });
    const database = new Kysely<never>({ dialect });
    opened.push({ close: () => database.destroy() });
    const bounded = sql`with recursive n(i) as (select 1 union all select i + 1 from n where i < 40000000) select max(i) from n`;
    await expect(bounded.execute(database)).rejects.toThrow("has not answered in time");
    // The next one may have to wait for its thread to start.
    const ask = async () => (await sql`select 1 as x`.execute(database)).rows;
    await expect.poll(() => ask().catch(() => "not yet"), { timeout: 20_000 }).toEqual([{ x: 1 }]);
  });

  it("of reports does not name the disk when a statement reads too much", async () => {
    const overTime = () => new TimeLimitError("reads too much");
    const database = new Kysely<never>({ dialect: new SqliteThreadDialect({ file, limitMs: 50, overTime }) });
    opened.push({ close: () => database.destroy() });
    const long = sql`with recursive n(i) as (select 1 union all select i + 1 from n where i < 5000000) select max(i) from n`;
    await expect(long.execute(database)).rejects.toMatchObject({ message: "reads too much", isTimeLimit: true });
  });

  it("that is closed rejects waiting queries and a running transaction", async () => {
    const { database } = openThread();
    const began = Promise.withResolvers<void>();
    const goOn = Promise.withResolvers<void>();
    const work = database.transaction().execute(async (transaction) => {
      began.resolve();
      await goOn.promise;
      await sql`create table t (x integer)`.execute(transaction);
    });
    await began.promise;
    const waiting = sql`select 1`.execute(database).catch((error: Error) => error.message);
    await database.destroy();
    goOn.resolve();
    await expect(work).rejects.toThrow("has ended");
    expect(await waiting).toBe("The database is closed.");
  });

  it("passes SQLite's errors on", async () => {
    const { database } = openThread();
    await expect(sql`select * from nowhere`.execute(database)).rejects.toMatchObject({
      message: "no such table: nowhere",
      code: "ERR_SQLITE_ERROR",
      errcode: 1,
    });
  });
});

describe("a transaction in the thread of the database", () => {
  it("is rolled back when one of its statements fails, and can be repeated", async () => {
    const { ledger } = await open();
    const other = new DatabaseSync(file);
    opened.push({ close: async () => other.close() });
    const written = entry();
    other.exec("alter table spending rename to elsewhere");
    // The entry is durable as a segment, which cannot be compacted yet.
    await ledger.insert([written]);
    await expect(ledger.flush()).rejects.toThrow("no such table: spending");
    expect((await ledger.list({ limit: 9 })).entries).toEqual([]);
    other.exec("alter table elsewhere rename to spending");
    expect((await ledger.list({ limit: 9 })).entries).toEqual([written]);
  });
});

/** Responses that are written at once. */
const RESPONSES = 60;

describe("stored responses", () => {
  it("are written beside the ledger: its entry does not wait for those before it", async () => {
    const { ledger, responses } = await open();
    await ledger.insert([entry()]);
    const content = "A".repeat(1024 * 1024);
    const responsesBeforeEntry = async (): Promise<number> => {
      let before = 0;
      let hasEnded = false;
      const inserts = Array.from({ length: RESPONSES }, async () => {
        await responses.insert({ account_id: DEFAULT_ACCOUNT_ID, id: `resp_${id++}`, created_at_ms: 1, content });
        if (!hasEnded) before += 1;
      });
      await Promise.race(inserts);
      await ledger.insert([entry()]);
      hasEnded = true;
      await Promise.all(inserts);
      return before;
    };
    let id = 0;
    // Both threads take SQLite's one write lock, each after a pause that grows, so an entry may come last by chance. In one queue it
    // always would.
    let before = RESPONSES;
    for (let tries = 0; tries < 30 && before === RESPONSES; tries++) before = await responsesBeforeEntry();
    expect(before).toBeLessThan(RESPONSES);
    expect(await responses.find(DEFAULT_ACCOUNT_ID, "resp_59", 0)).toBe(content);
  });
});

describe("the database in use by other processes", () => {
  it("does not keep the event loop waiting while another process holds the write lock for two seconds", async () => {
    const store = await open();
    const { ledger, budgets } = store;
    await ledger.insert([entry()]);
    await budgets.hold(demand());
    // Measures the delay of a process without a lock to wait for, on the same machine.
    const beside = startProcess(join(import.meta.dirname, "read-beside.ts"), join(dataDir, "beside"), "2000");
    await beside.line();
    const other = startProcess(join(import.meta.dirname, "hold-lock.ts"), file, "2000");
    await other.line();
    const startedAt = performance.now();
    let written = false;
    const writing = Promise.all([
      ledger.insert([entry()]),
      budgets.hold(demand()),
      ledger.insert([entry(), entry()]),
    ]).finally(() => (written = true));
    const { reads, loopDelayMs } = await readWhile(store, () => !written);
    await writing;
    expect(performance.now() - startedAt).toBeGreaterThan(1000);
    // Reads continue: each waits for at most one short write attempt.
    expect(reads).toBeGreaterThan(50);
    expect(loopDelayMs).toBeLessThan(20 + 3 * Number(await beside.line()));
    expect((await ledger.list({ limit: 9 })).entries).toHaveLength(4);
    expect(await Promise.all([other.ended, beside.ended])).toEqual([0, 0]);
  });

  it.runIf(process.platform === "linux")("stays locked when reports and a second store have opened it", async () => {
    const { ledger } = await open();
    await ledger.insert([entry()]);
    const second = await open();
    expect((await second.ledger.list({ limit: 9 })).entries).toHaveLength(1);
    await ledger.insert([entry()]);
    const locks = readFileSync("/proc/locks", "utf8").split("\n");
    for (const each of [file, `${file}-shm`])
      expect(locks.filter((line) => line.includes(`:${statSync(each).ino} `))).not.toEqual([]);
  });

  it.runIf(hasPython)(
    "keeps its write-ahead log when another program reads it, and all entries after SIGKILL",
    async () => {
      const writer = startProcess(join(import.meta.dirname, "write-on-demand.ts"), dataDir);
      opened.push({ close: async () => void writer.child.kill("SIGKILL") });
      await writer.line();
      const log = statSync(`${file}-wal`).ino;
      const written: string[] = [];
      for (let round = 0; round < 3; round++) {
        writer.tell("write");
        written.push(await writer.line());
        execFileSync("python3", ["-c", READ_AND_CLOSE, file]);
      }
      expect(statSync(`${file}-wal`).ino).toBe(log);
      writer.tell("write");
      written.push(await writer.line());
      writer.child.kill("SIGKILL");
      await writer.ended;
      const { entries } = await (await open()).ledger.list({ limit: 9 });
      expect(entries.map(({ completionId }) => completionId).toSorted()).toEqual(written.toSorted());
    },
  );

  it("never exceeds a budget, with three processes", async () => {
    await open();
    expect(await raceForBudget(location)).toEqual(EXACT);
  });
});

describe("a backup", () => {
  it("contains the committed state, is readable for its owner only, and opens like the original", async () => {
    const store = await open();
    const { record } = await createKey({ store: store.keys, clock: systemClock }, { name: "kept" });
    const entries = Array.from({ length: 500 }, () => entry());
    const writing = Promise.all(entries.map((each) => store.ledger.insert([each])));
    const restored = join(dataDir, "restored");
    const target = join(dataDir, "copy.db");
    await backUp(location, target);
    await writing;
    expect(statSync(target).mode & 0o777).toBe(0o600);
    await (await openStore({ dataDir: restored, databaseUrl: undefined })).close();
    writeFileSync(join(restored, "parley.db"), readFileSync(target));
    const copy = await openStore({ dataDir: restored, databaseUrl: undefined });
    opened.push(copy);
    expect(await copy.findDamage()).toEqual([]);
    expect(await copy.keys.list()).toEqual([record]);
    const copied = (await copy.ledger.list({ limit: 999 })).entries;
    const [spending] = await copy.ledger.spending(["key:key_gone"], "2026-11");
    expect(spending?.spentMicroUsd).toBe(copied.length * 30);
    const {
      rows: [sums],
    } = await copy.usage.summarize({ sinceMs: 0, untilMs: 2 * NOON, by: "none", step: "all" });
    expect(sums?.sums.completions ?? 0).toBe(copied.length);
  });

  it("overwrites no file, and leaves none after a failure", async () => {
    await open();
    const target = join(dataDir, "copy.db");
    writeFileSync(target, "mine");
    await expect(backUp(location, target)).rejects.toThrow("exists already");
    expect(readFileSync(target, "utf8")).toBe("mine");
    const nowhere = { dataDir: join(dataDir, "none"), databaseUrl: undefined };
    await expect(backUp(nowhere, join(dataDir, "b.db"))).rejects.toThrow("There is no database");
    const remote = { dataDir, databaseUrl: "postgres://u:secret@h/d" };
    await expect(backUp(remote, join(dataDir, "b.db"))).rejects.toThrow("pg_dump");
    expect(existsSync(join(dataDir, "b.db"))).toBe(false);
  });
});

describe("a damaged file", () => {
  it("is detected by findDamage", async () => {
    const store = await open();
    expect(await store.findDamage()).toEqual([]);
    await store.ledger.insert(Array.from({ length: 2000 }, () => entry()));
    await opened.pop()?.close();
    // Checkpoints the WAL into the file, and then truncates the file.
    new DatabaseSync(file).exec("pragma wal_checkpoint(truncate)");
    truncateSync(file, statSync(file).size - 16_384);
    const damaged = await openStore(location).catch((error: Error) => error);
    const found =
      damaged instanceof Error
        ? [damaged.message]
        : await damaged.findDamage().catch((error: Error) => [error.message]);
    if (!(damaged instanceof Error)) opened.push(damaged);
    expect(found).not.toEqual([]);
  });
});

describe("a list of a key's end users", () => {
  it("keeps no other statement waiting", async () => {
    const store = await open();
    const rows = `with recursive number(n) as (select 1 union all select n + 1 from number where n < 50000)
      insert into spending (subject, month, spent_micro_usd, held_micro_usd, kept_until_ms, holder_name)
      select 'end_user:key_1:' || n, 'session', n, 0, 9e15, 'user ' || n from number`;
    const writer = new DatabaseSync(file);
    writer.exec(rows);
    writer.close();
    const progress = { isListed: false };
    let reads = 0;
    const asked = { kind: "end_user", keyFamilyId: "key_1", period: "session", search: "nobody", limit: 100 } as const;
    const list = store.attributedBudgets.list(asked).finally(() => (progress.isListed = true));
    while (!progress.isListed) {
      await store.keys.find("key_none");
      reads += 1;
    }
    expect(await list).toEqual({ budgets: [], count: 0 });
    // On one connection: one before and after each statement of the list.
    expect(reads).toBeGreaterThan(20);
  });
});
