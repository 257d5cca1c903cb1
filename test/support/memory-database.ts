import { DatabaseSync, type SQLInputValue } from "node:sqlite";
import { CompiledQuery, Kysely, SqliteDialect } from "kysely";
import { createAccountStore } from "../../src/store/access/account-store.ts";
import { toAuditEntry } from "../../src/store/access/audit-rows.ts";
import { createAuditStore } from "../../src/store/access/audit-store.ts";
import { KeyChanges } from "../../src/store/access/key-changes.ts";
import { createKeyNotices } from "../../src/store/access/key-notices.ts";
import { createKeyStore } from "../../src/store/access/key-store.ts";
import { createSavedFilters } from "../../src/store/access/saved-filters.ts";
import { createStopStore } from "../../src/store/access/stop-store.ts";
import { createThrottleStore } from "../../src/store/access/throttle-store.ts";
import { createAlertStore } from "../../src/store/alerts/alert-store.ts";
import { createAuditStreams } from "../../src/store/alerts/audit-streams.ts";
import { Database } from "../../src/store/database.ts";
import { createLedgerCompaction, createLedgerStore } from "../../src/store/ledger/ledger-store.ts";
import { createRefusalStore } from "../../src/store/ledger/refusals.ts";
import { createUsageStore } from "../../src/store/ledger/usage.ts";
import { createAttributedBudgets } from "../../src/store/limits/attributed-budgets.ts";
import { migrate } from "../../src/store/migrate.ts";
import type { Schema } from "../../src/store/schema.ts";
import { addPercentiles } from "../../src/store/sqlite/percentiles.ts";
import { runTransaction } from "../../src/store/transactions.ts";

/** The product's database on a SQLite connection of this thread: a thread of its own takes longer to start than most tests. */
function databaseOn(connection: DatabaseSync): Database {
  const dialect = new SqliteDialect({
    database: {
      prepare(sql) {
        const statement = connection.prepare(sql);
        return {
          reader: statement.columns().length > 0,
          all: (parameters) => statement.all(...(parameters as SQLInputValue[])),
          run: (parameters) => statement.run(...(parameters as SQLInputValue[])),
          iterate: (parameters) => statement.iterate(...(parameters as SQLInputValue[])),
        };
      },
      close: () => connection.close(),
    },
  });
  const query = new Kysely<Schema>({ dialect });
  return new Database("sqlite", query, {
    perform: (name, input) =>
      query.transaction().execute((transaction) => {
        const run = async <R>(sql: string, parameters: readonly unknown[]) =>
          (await transaction.executeQuery<R>(CompiledQuery.raw(sql, [...parameters]))).rows;
        return runTransaction({ kind: "sqlite", run }, name, input);
      }),
  });
}

/** A database with all tables and no rows of a test, as after a first start. */
const MIGRATED = await (async () => {
  const connection = new DatabaseSync(":memory:");
  await migrate(databaseOn(connection), () => Promise.reject(new Error("a new database needs no other connection")));
  // Older than the accounts of tests, whose clocks begin in the past.
  connection.exec("update accounts set created_at_ms = 0");
  return connection.serialize();
})();

/** The product's stores on a database in memory. */
export type MemoryStores = ReturnType<typeof openMemoryStores>;

export function openMemoryStores() {
  const connection = new DatabaseSync(":memory:");
  connection.deserialize(MIGRATED);
  addPercentiles(connection);
  const database = databaseOn(connection);
  const changes = new KeyChanges(database);
  const compaction = createLedgerCompaction(database);
  const places = { database, reports: database, compaction, databaseUrl: undefined, begunFiles: undefined };
  const rows = <T extends keyof Schema>(table: T): Schema[T][] =>
    connection.prepare(`select * from ${table}`).all() as unknown as Schema[T][];
  return {
    accounts: createAccountStore(database, changes),
    alerts: createAlertStore(database),
    attributedBudgets: createAttributedBudgets(places),
    audit: createAuditStore(places),
    auditStreams: createAuditStreams(database),
    keys: createKeyStore(database, changes, compaction),
    keyNotices: createKeyNotices(database),
    ledger: createLedgerStore(places),
    refusals: createRefusalStore(places),
    savedFilters: createSavedFilters(database),
    stops: createStopStore(database, changes),
    throttles: createThrottleStore(database),
    usage: createUsageStore({ ...places, connectRanking: () => Promise.resolve(database) }),
    database,
    /** The entries of the audit log, oldest first. */
    entries: () => rows("audit_entries").map(toAuditEntry),
    /** All rows of a table. */
    rows,
    /** Changes the database directly. */
    exec: (sql: string) => connection.exec(sql),
  };
}
