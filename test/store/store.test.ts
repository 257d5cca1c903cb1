import { spawn } from "node:child_process";
import { once } from "node:events";
import { chmodSync, existsSync, mkdtempSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { createAuthenticator } from "../../src/access/key-cache.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { createKey } from "../../src/access/keys.ts";
import { systemClock } from "../../src/core/clock.ts";
import { CAPABILITIES } from "../../src/access/principal.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { openSqlite } from "../../src/store/sqlite/sqlite.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { demand } from "./contracts/demands.ts";
import { entry, NOON } from "./contracts/entries.ts";
import { migrateOldEntries, migrateOldKey, migrateOldRoles, OLD_KEY, OLD_ROLES } from "./old-database.ts";

let home: string;
let dataDir: string;
const opened: Store[] = [];

beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "parley-store-"));
  dataDir = join(home, "data");
});

afterEach(async () => {
  await Promise.all(opened.splice(0).map((store) => store.close()));
  rmSync(home, { recursive: true });
});

async function open(): Promise<Store> {
  const store = await openStore({ dataDir, databaseUrl: undefined });
  opened.push(store);
  return store;
}

function query(sql: string): Record<string, unknown> | undefined {
  const database = new DatabaseSync(join(dataDir, "parley.db"));
  try {
    return database.prepare(sql).get();
  } finally {
    database.close();
  }
}

describe("the data directory", () => {
  it("is accessible to this user only, like all files in it", async () => {
    const { keys } = await open();
    await createKey({ store: keys, clock: systemClock }, { name: "a" });
    const modes = ["", "parley.db", "parley.db-wal", "parley.db-shm"].map(
      (name) => statSync(join(dataDir, name)).mode & 0o777,
    );
    expect(modes).toEqual([0o700, 0o600, 0o600, 0o600]);
  });

  it("that is a file is refused with its path", async () => {
    writeFileSync(dataDir, "");
    await expect(openStore({ dataDir, databaseUrl: undefined })).rejects.toThrow(
      `${join(dataDir, "parley.db")} cannot be opened: the data_dir is not`,
    );
  });

  it.skipIf(process.getuid?.() === 0)("that may not be written is refused with the remedy", async () => {
    chmodSync(home, 0o500);
    await expect(openStore({ dataDir, databaseUrl: undefined })).rejects.toThrow("this user may not write there");
  });

  it("with another kind of file in place of the database is refused", async () => {
    await (await openStore({ dataDir, databaseUrl: undefined })).close();
    writeFileSync(join(dataDir, "parley.db"), "this is certainly not a database ".repeat(40));
    await expect(openStore({ dataDir, databaseUrl: undefined })).rejects.toThrow("file is not a database");
  });
});

describe("the database", () => {
  it("is in WAL mode with full synchronisation and foreign keys", () => {
    dataDir = home;
    const database = openSqlite(join(home, "parley.db"));
    expect(database.prepare("PRAGMA journal_mode").get()).toEqual({ journal_mode: "wal" });
    expect(database.prepare("PRAGMA synchronous").get()).toEqual({ synchronous: 2 });
    expect(database.prepare("PRAGMA foreign_keys").get()).toEqual({ foreign_keys: 1 });
    database.close();
  });

  it("starts with the default account", async () => {
    await open();
    expect(query("select id from accounts")).toEqual({ id: DEFAULT_ACCOUNT_ID });
    expect(query("select version from parley_schema")).toEqual({ version: MIGRATIONS.length });
  });

  it("of a newer program is refused and left as it is when this one cannot use it", async () => {
    await (await openStore({ dataDir, databaseUrl: undefined })).close();
    query("update parley_schema set version = 99, usable_from = 98 returning version");
    await expect(openStore({ dataDir, databaseUrl: undefined })).rejects.toThrow(
      /version 99.*have to know version 98 at least.*newer Parley: run that one, or restore a backup/,
    );
    expect(query("select version from parley_schema")).toEqual({ version: 99 });
  });

  it("of a newer program is used and left as it is when its migrations removed nothing", async () => {
    await (await openStore({ dataDir, databaseUrl: undefined })).close();
    query(`update parley_schema set version = 99, usable_from = ${MIGRATIONS.length} returning version`);
    expect((await open()).versions()).toEqual({ before: 99, after: 99 });
    expect(query("select version from parley_schema")).toEqual({ version: 99 });
  });

  it("forgets processes when their leases have ended and their completions and holds are settled", async () => {
    const { ledger, budgets } = await open();
    await ledger.renewLease("alive");
    query("insert into replicas (name, seen_at_ms) values ('gone', 0) returning name");
    await ledger.begin({ id: "gone/1", process: "gone", entries: [entry({ outcome: "process_lost" })] }, []);
    await budgets.hold(demand({ replica: "gone" }));
    expect(await ledger.settleLost()).toBe(2);
    expect(query("select count(*) as count from replicas")).toEqual({ count: 2 });
    expect(await ledger.settleLost()).toBe(0);
    expect(query("select group_concat(name) as names from replicas")).toEqual({ names: "alive" });
  });

  it("of an older version keeps its rows", async () => {
    expect(await migrateOldKey({ dataDir, databaseUrl: undefined })).toEqual(OLD_KEY);
  });

  it("of administrators makes the oldest one who can sign in the owner, and of members developers", async () => {
    expect(await migrateOldRoles({ dataDir, databaseUrl: undefined }, OLD_ROLES.accounts)).toEqual(OLD_ROLES.become);
  });

  it.each([
    [["chat", "images"], CAPABILITIES],
    [["images", "chat"], CAPABILITIES],
    [["images"], ["images"]],
  ] as const)(
    "gives a key with the capabilities %j those of %j: embeddings with all earlier ones",
    async (old, now) => {
      expect(await migrateOldKey({ dataDir, databaseUrl: undefined }, old)).toMatchObject({ capabilities: now });
    },
  );

  it("from before the usage sums gets the sums of all its entries", async () => {
    const entries = [entry({ costMicroUsd: 99 }), entry(), entry({ servedModel: undefined, requestedModel: "n" })];
    expect(await migrateOldEntries({ dataDir, databaseUrl: undefined }, entries)).toEqual([
      ["m", 2],
      ["n", 1],
    ]);
  });
});

describe("old rows are removed at most a thousand at a time", () => {
  it("of the ledger", async () => {
    const { ledger } = await open();
    await ledger.insert(Array.from({ length: 1500 }, () => entry({ endedAtMs: NOON - 1 })));
    await ledger.insert([entry()]);
    expect(await ledger.prune(NOON)).toBe(1000);
    expect(await ledger.prune(NOON)).toBe(500);
    expect(await ledger.prune(NOON)).toBe(0);
    expect((await ledger.list({ limit: 9 })).entries).toHaveLength(1);
  });

  it("of the usage by hours", async () => {
    const { ledger, usage } = await open();
    const nextHourMs = NOON + 3_600_000;
    await ledger.insert(Array.from({ length: 1_500 }, (_, at) => entry({ keyId: `key_${at}` })));
    await ledger.insert([entry({ startedAtMs: nextHourMs })]);
    expect(await usage.prune(nextHourMs)).toBe(1_000);
    // One more of all keys.
    expect(await usage.prune(nextHourMs)).toBe(501);
    expect(await usage.prune(nextHourMs)).toBe(0);
    const { rows: sums } = await usage.summarize({ sinceMs: 0, untilMs: 2 * NOON, by: "none", step: "all" });
    expect(sums.map(({ sums: { completions } }) => completions)).toEqual([1]);
  });
});

describe("keys in the database", () => {
  it("hold no secret", async () => {
    const { keys: store } = await open();
    const { secret } = await createKey({ store, clock: systemClock }, { name: "a" });
    expect(JSON.stringify(query("select * from api_keys"))).not.toContain(secret.slice(12, 52));
  });

  it("must belong to an account", async () => {
    const context = { store: (await open()).keys, clock: systemClock };
    await expect(createKey(context, { name: "a", accountId: "acct_none" })).rejects.toThrow("FOREIGN KEY");
  });

  it("are all stored when two processes create them while a third uses them", async () => {
    const workers = ["15", "15"].map((count) =>
      spawn(process.execPath, [join(import.meta.dirname, "create-keys.ts"), dataDir, count], {
        stdio: ["ignore", "pipe", "inherit"],
        env: {},
      }),
    );
    const exits = Promise.all(workers.map((worker) => once(worker, "exit")));
    const { keys: store } = await open();
    const authenticator = createAuthenticator({ store, clock: systemClock });
    const names: string[] = [];
    await Promise.all(
      workers.map(async (worker) => {
        // Each key is used as soon as its creator has printed it.
        for await (const text of worker.stdout.setEncoding("utf8")) {
          for (const secret of String(text).trim().split("\n")) {
            names.push((await authenticator.authenticate(secret)).keyName);
          }
        }
      }),
    );
    expect((await exits).map(([code]) => code as number)).toEqual([0, 0]);
    expect(names.toSorted()).toEqual(
      workers.flatMap(({ pid }) => Array.from({ length: 15 }, () => String(pid))).toSorted(),
    );
    expect(await store.list()).toHaveLength(30);
  });

  it("are stored after another process releases its lock, without blocking reads meanwhile", async () => {
    const { keys: store } = await open();
    const other = new DatabaseSync(join(dataDir, "parley.db"));
    other.exec("begin immediate");
    const created = createKey({ store, clock: systemClock }, { name: "a" });
    const read = await Promise.race([store.list(), created]);
    expect(read).toEqual([]);
    other.exec("commit");
    other.close();
    await expect(created).resolves.toMatchObject({ record: { name: "a" } });
    expect(existsSync(join(dataDir, "parley.db"))).toBe(true);
  });
});
