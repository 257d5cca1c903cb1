import { sql } from "kysely";
import type { AccountStore, ThrottleStore } from "../access/account-store.ts";
import type { KeyChangeFeed, KeyStore } from "../access/key-store.ts";
import type { LedgerStore } from "../ledger/ledger-store.ts";
import type { UsageStore } from "../ledger/usage-store.ts";
import type { BudgetStore } from "../limits/budgets.ts";
import type { RateStore } from "../limits/rates.ts";
import { createAccountStore } from "./access/account-store.ts";
import { KeyChanges } from "./access/key-changes.ts";
import { createKeyStore } from "./access/key-store.ts";
import { createThrottleStore } from "./access/throttle-store.ts";
import { connectReports, connectUnlimited, type Database, type DatabaseLocation } from "./database.ts";
import { createLedgerCompaction, createLedgerStore } from "./ledger/ledger-store.ts";
import { createUsageStore } from "./ledger/usage.ts";
import { createBudgetStore } from "./limits/budget-store.ts";
import { createRateStore } from "./limits/rate-store.ts";
import type { MigrationResult } from "./migrate.ts";
import { openDatabase } from "./open-database.ts";
import type { KeyListener } from "./postgres/key-listener.ts";

/** The database of one process, open and up to date. */
export interface Store {
  readonly kind: "sqlite" | "postgres";
  readonly keys: KeyStore;
  readonly accounts: AccountStore;
  readonly throttles: ThrottleStore;
  readonly ledger: LedgerStore;
  readonly usage: UsageStore;
  readonly budgets: BudgetStore;
  /** Rates and concurrency that all processes share. A bucket of requests holds what comes in during `burstMs`. */
  createRates(options: { readonly burstMs: number }): RateStore;
  /** With PostgreSQL of the changes of all processes that share it, else of this process only. */
  readonly keyChanges: KeyChangeFeed;
  /** How it can be reached. */
  health(): StoreHealth;
  /** What opening it has done. */
  readonly versions: MigrationResult;
  /** What is damaged in SQLite's file, in its own words; empty when nothing is. Reads all of it. */
  findDamage(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface StoreHealth {
  /** Whether the last statement reached the database. */
  readonly up: boolean;
  /** Whether keys that other processes change are heard of at once; undefined where there are none to listen to. */
  readonly listening: boolean | undefined;
}

/**
 * Opens the database and migrates it. Without a URL it is the SQLite file `parley.db` in the data directory, and both are
 * made when they are missing (readable for this user only). Several processes may have it open. Throws a StoreError that
 * says what to do.
 */
export async function openStore(location: DatabaseLocation): Promise<Store> {
  const { database, versions } = await openDatabase(location);
  const reports = await connectReports(location);
  const compaction = createLedgerCompaction(database);
  const ledger = { database, reports, compaction };
  const changes = new KeyChanges(database);
  const listen = await keyListenerOf(location, changes);
  let listener: KeyListener | undefined;
  return {
    kind: database.kind,
    keys: createKeyStore(database, changes, compaction),
    accounts: createAccountStore(database, changes),
    throttles: createThrottleStore(database),
    ledger: createLedgerStore(ledger),
    usage: createUsageStore(ledger),
    budgets: createBudgetStore(database, compaction),
    createRates: (options) => createRateStore(database, options),
    keyChanges: {
      subscribe(changed) {
        // Only who keeps keys in memory needs to hear of them: a command that ends at once does not.
        listener ??= listen?.();
        return changes.subscribe(changed);
      },
    },
    health: () => ({ up: database.isUp(), listening: listener?.isListening }),
    versions,
    findDamage: async () => findDamage(await connectUnlimited(location)),
    async close() {
      listener?.close();
      await compaction.close();
      await Promise.all([database.close(), reports.close()]);
    },
  };
}

/** What begins to hear of keys that other processes change; undefined with SQLite, which has no way to tell. */
async function keyListenerOf(
  { databaseUrl }: DatabaseLocation,
  changes: KeyChanges,
): Promise<(() => KeyListener) | undefined> {
  if (databaseUrl === undefined) return undefined;
  // Loaded only where there is PostgreSQL.
  const { KeyListener } = await import("./postgres/key-listener.ts");
  return () => new KeyListener(databaseUrl, changes);
}

/** What SQLite finds wrong with its file; nothing for PostgreSQL, which looks after itself. Closes the database. */
async function findDamage(database: Database): Promise<readonly string[]> {
  try {
    if (database.kind === "postgres") return [];
    const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(database.query);
    return rows.map(({ integrity_check }) => integrity_check).filter((text) => text !== "ok");
  } finally {
    await database.close();
  }
}
