import { randomBytes } from "node:crypto";
import { sql } from "kysely";
import type { AccountStore, ThrottleStore } from "../access/account-store.ts";
import type { AttributedBudgetStore } from "../access/attributed-budgets.ts";
import type { AuditStore } from "../access/audit-store.ts";
import type { AlertFacts, AlertStore } from "../alerts/alert-store.ts";
import type { AuditStreamStore } from "../alerts/audit-stream-store.ts";
import type { KeyNotices } from "../access/key-notices.ts";
import type { KeyChangeFeed, KeyStore } from "../access/key-store.ts";
import type { SavedFilters } from "../access/saved-filters.ts";
import type { StopStore } from "../access/stops.ts";
import type { HealthNotes } from "../core/health-notes.ts";
import type { LedgerStore } from "../ledger/ledger-store.ts";
import type { RefusalStore } from "../ledger/refusal-store.ts";
import type { TargetHistoryStore } from "../ledger/target-history.ts";
import type { UsageStore } from "../ledger/usage-store.ts";
import type { BudgetStore } from "../limits/budgets.ts";
import type { RateStore } from "../limits/rates.ts";
import { createAccountStore } from "./access/account-store.ts";
import { createAuditStore } from "./access/audit-store.ts";
import { KeyChanges } from "./access/key-changes.ts";
import { createKeyNotices } from "./access/key-notices.ts";
import { createKeyStore } from "./access/key-store.ts";
import { createSavedFilters } from "./access/saved-filters.ts";
import { createStopStore } from "./access/stop-store.ts";
import { createThrottleStore } from "./access/throttle-store.ts";
import { createAlertFacts } from "./alerts/alert-facts.ts";
import { createAlertStore } from "./alerts/alert-store.ts";
import { createAuditStreams } from "./alerts/audit-streams.ts";
import { type ConfigurationStore, createConfigurationStore } from "./configuration-store.ts";
import {
  connect,
  connectRanking,
  connectReports,
  connectResponses,
  connectUnlimited,
  type Database,
  type DatabaseLocation,
} from "./database.ts";
import { createLedgerCompaction, createLedgerStore } from "./ledger/ledger-store.ts";
import { createRefusalStore } from "./ledger/refusals.ts";
import { createTargetHistory } from "./ledger/target-history.ts";
import { createUsageStore } from "./ledger/usage.ts";
import { createAttributedBudgets } from "./limits/attributed-budgets.ts";
import { createBudgetStore } from "./limits/budget-store.ts";
import { createRateStore, type RateStoreOptions } from "./limits/rate-store.ts";
import { createHealthNotes } from "./health-notes.ts";
import type { MigrationResult } from "./migrate.ts";
import { openOrLater } from "./open-later.ts";
import { retryWhileBusy } from "./store-error.ts";
import { createSealedRows, type SealedRows } from "./sealed-rows.ts";
import { createResponseStore, type ResponseStore } from "./responses/response-store.ts";
import { type ConnectionShare, poolSizes, readShare } from "./postgres/connection-share.ts";
import type { KeyListener } from "./postgres/key-listener.ts";
import { BegunFiles } from "./sqlite/begun-files.ts";

/** The opened and migrated database of one process. */
export interface Store {
  readonly kind: "sqlite" | "postgres";
  readonly keys: KeyStore;
  readonly keyNotices: KeyNotices;
  readonly accounts: AccountStore;
  readonly throttles: ThrottleStore;
  readonly audit: AuditStore;
  readonly savedFilters: SavedFilters;
  readonly stops: StopStore;
  readonly ledger: LedgerStore;
  readonly usage: UsageStore;
  readonly refusals: RefusalStore;
  readonly targetHistory: TargetHistoryStore;
  readonly budgets: BudgetStore;
  readonly attributedBudgets: AttributedBudgetStore;
  readonly responses: ResponseStore;
  /** Prompts and answers of keys that store them. */
  readonly contents: SealedRows;
  readonly configuration: ConfigurationStore;
  readonly alerts: AlertStore;
  readonly alertFacts: AlertFacts;
  readonly auditStreams: AuditStreamStore;
  /** A random key of 32 bytes, the same for all processes of this database; made on first use. */
  secret(name: string): Promise<Buffer>;
  /** Rates and concurrency shared by all processes. */
  createRates(options: RateStoreOptions): RateStore;
  /** Notes about upstream models, shared by the processes of the database; `replica` is the ID of this one among them. */
  createHealthNotes(options: { readonly replica: string }): HealthNotes;
  /** With PostgreSQL, the key changes of all processes that share it, else of this process only. */
  readonly keyChanges: KeyChangeFeed;
  /** Unix time of the clock that all processes on the database share: the server's, or with SQLite the machine's. */
  nowMs(): Promise<number>;
  /** Reachability of the database. */
  health(): StoreHealth;
  /**
   * Asks PostgreSQL how many connections it has and how many processes share them, and limits those of this process to its share.
   * Undefined for SQLite.
   */
  shareConnections(): Promise<ConnectionShare | undefined>;
  /** Versions before and after opening it; while it is unavailable from the start, those of a migrated one. */
  versions(): MigrationResult;
  /**
   * Undefined for a database that is open. Otherwise resolves when it is: it was unavailable at the start. Rejects when it cannot be
   * used.
   */
  readonly opening: Promise<void> | undefined;
  /**
   * Damage that SQLite finds in its file, as its messages; empty without damage, and for PostgreSQL. Reads the whole file.
   */
  findDamage(): Promise<readonly string[]>;
  close(): Promise<void>;
}

export interface StoreHealth {
  /** Whether the last statement reached the database. */
  readonly up: boolean;
  /** Whether LISTEN for key changes is active; undefined where it is not used. */
  readonly listening: boolean | undefined;
}

/**
 * Opens the database and migrates it. Without a URL it is the SQLite file `parley.db` in the data directory; both are
 * created when missing, readable only by this user. Several processes may open it. Throws a StoreError that says what to do. With
 * `mayBeAway` a PostgreSQL that cannot be reached is opened later.
 */
export async function openStore(
  place: DatabaseLocation,
  {
    mayBeAway = false,
    exactUsageRows,
  }: {
    readonly mayBeAway?: boolean;
    /** Rows of all keys that a report adds up one by one. Default: 100,000. */
    readonly exactUsageRows?: number;
  } = {},
): Promise<Store> {
  const { database, location, versions, opening, giveUp } = await openOrLater(place, mayBeAway);
  const reports = await connectReports(location);
  const keeping = connectResponses(location, database);
  const compaction = createLedgerCompaction(database);
  const { dataDir, databaseUrl } = location;
  const begunFiles = databaseUrl === undefined ? new BegunFiles(dataDir) : undefined;
  const ledger = { database, reports, compaction, databaseUrl, begunFiles };
  const changes = new KeyChanges(database);
  const listen = await keyListenerOf(location, changes);
  let listener: KeyListener | undefined;
  return {
    kind: database.kind,
    keys: createKeyStore(database, changes, compaction),
    keyNotices: createKeyNotices(reports),
    accounts: createAccountStore(database, changes),
    throttles: createThrottleStore(database),
    audit: createAuditStore({ database, reports }),
    savedFilters: createSavedFilters(database),
    stops: createStopStore(database, changes),
    ledger: createLedgerStore(ledger),
    usage: createUsageStore({
      ...ledger,
      connectRanking: () => connectRanking(location),
      exactRows: exactUsageRows,
    }),
    refusals: createRefusalStore(ledger),
    targetHistory: createTargetHistory(ledger),
    budgets: createBudgetStore(database, compaction),
    attributedBudgets: createAttributedBudgets({ database, reports, compaction }),
    responses: createResponseStore(keeping),
    contents: createSealedRows(keeping, "completion_contents"),
    configuration: createConfigurationStore(database),
    alerts: createAlertStore(database),
    alertFacts: createAlertFacts(reports),
    auditStreams: createAuditStreams(database),
    secret: (name) => readSecret(database, name),
    createRates: (options) => createRateStore(database, options),
    createHealthNotes: (options) => createHealthNotes(database, options),
    keyChanges: {
      subscribe(changed) {
        // Connects on the first subscription: a short command without a key cache needs no listener.
        listener ??= listen?.();
        return changes.subscribe(changed);
      },
    },
    async shareConnections() {
      if (database.kind === "sqlite") return undefined;
      const share = await readShare(database, location.databaseConnections);
      const { usual, reports: ofReports } = poolSizes(share.each);
      database.resize(usual);
      reports.resize(ofReports);
      return share;
    },
    nowMs: () => database.nowMs(database.query),
    health: () => ({ up: database.isUp(), listening: listener?.isListening }),
    versions,
    opening,
    findDamage: async () => findDamage(await connectUnlimited(location)),
    async close() {
      giveUp();
      listener?.close();
      begunFiles?.close();
      await compaction.close();
      await Promise.all([...new Set([database, reports, keeping])].map((each) => each.close()));
    },
  };
}

/** Connections of a program that reads the stored configuration only: it needs one, and those for LISTEN and reports are not opened. */
const CONFIGURATION_CONNECTIONS = 3;

/**
 * A connection of its own for the stored configuration, made on first use and after a failure; it migrates nothing, so that `store()`'s
 * queries reject while the database is not migrated.
 */
export function connectConfiguration(location: DatabaseLocation): {
  store(): Promise<ConfigurationStore>;
  close(): Promise<void>;
} {
  let connected: Promise<Database> | undefined;
  return {
    async store() {
      connected ??= connect({ ...location, databaseConnections: CONFIGURATION_CONNECTIONS });
      try {
        return createConfigurationStore(await connected);
      } catch (error) {
        connected = undefined;
        throw error;
      }
    },
    async close() {
      await (await connected?.catch(() => undefined))?.close();
    },
  };
}

/**
 * Returns a function that starts listening for key changes of other processes; undefined without LISTEN, and with SQLite, which
 * has no notifications.
 */
async function keyListenerOf(
  { databaseUrl, databaseListenUrl: url = databaseUrl }: DatabaseLocation,
  changes: KeyChanges,
): Promise<(() => KeyListener) | undefined> {
  if (databaseUrl === undefined || url === undefined || url === "none") return undefined;
  // Imported only where PostgreSQL is used.
  const { KeyListener } = await import("./postgres/key-listener.ts");
  return () => new KeyListener(url, changes);
}

/** Runs SQLite's integrity check; empty for PostgreSQL. Closes the database. */
async function findDamage(database: Database): Promise<readonly string[]> {
  try {
    if (database.kind === "postgres") return [];
    const { rows } = await sql<{ integrity_check: string }>`pragma integrity_check`.execute(database.query);
    return rows.map(({ integrity_check }) => integrity_check).filter((text) => text !== "ok");
  } finally {
    await database.close();
  }
}

const SECRET_BYTES = 32;

/** Reads a secret, and makes it when it is missing. Several processes may do so at the same moment. */
async function readSecret({ query }: Database, name: string): Promise<Buffer> {
  const value = randomBytes(SECRET_BYTES).toString("base64");
  const insert = query
    .insertInto("secrets")
    .values({ name, value })
    .onConflict((on) => on.doNothing());
  await retryWhileBusy(() => insert.execute());
  const found = query.selectFrom("secrets").select("value").where("name", "=", name);
  const row = await retryWhileBusy(() => found.executeTakeFirstOrThrow());
  return Buffer.from(row.value, "base64");
}
