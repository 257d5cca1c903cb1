import { type Kysely, sql, type Transaction } from "kysely";
import type { Database } from "./database.ts";
import type { ConfigurationVersionRow, ProviderCredentialRow, Schema } from "./schema.ts";
import { isMissingTable, retryWhileBusy, StoreError } from "./store-error.ts";

/** Versions that are kept. */
export const MAX_VERSIONS = 100;

/** A version without its document. */
type VersionFacts = Omit<ConfigurationVersionRow, "document">;

/** A new version. */
export interface NewVersion {
  /** The latest version, from which this one was made; 0 when there is none. */
  readonly expected: number;
  readonly version: Omit<ConfigurationVersionRow, "version">;
  /** Credentials to set, in place of those before. */
  readonly credentials: readonly ProviderCredentialRow[];
  /** Names of the providers whose credentials are removed. */
  readonly removed: readonly string[];
}

/** The stored configuration in the database. */
export interface ConfigurationStore {
  /** Number of the latest version; 0 when there is none. */
  latest(): Promise<number>;
  /** The latest version, and all credentials as of the same moment; undefined when there is none. */
  read(): Promise<StoredRows | undefined>;
  /** Makes a version, and removes the oldest ones beyond MAX_VERSIONS. Undefined, without a change, when there is a newer one. */
  insert(version: NewVersion): Promise<number | undefined>;
  /** Versions below `before` without their documents, newest first. */
  list(page: { readonly before: number | undefined; readonly limit: number }): Promise<readonly VersionFacts[]>;
  find(version: number): Promise<ConfigurationVersionRow | undefined>;
  /**
   * Replaces the encrypted content of all credentials for which `seal` returns another one, and makes a version with the same document,
   * by which replicas find them. Changes nothing when there are none. Throws a StoreError while other versions are made all the time.
   */
  reseal(
    seal: (row: ProviderCredentialRow) => string | undefined,
    facts: Pick<ConfigurationVersionRow, "at_ms" | "actor_id" | "comment">,
  ): Promise<Resealed>;
}

/** Numbers of credentials. Those for which there was no other content are not readable. */
interface Resealed {
  readonly resealed: number;
  readonly unreadable: number;
}

export interface StoredRows {
  readonly version: ConfigurationVersionRow;
  readonly credentials: readonly ProviderCredentialRow[];
}

/** The ConfigurationStore of a database. */
export function createConfigurationStore(database: Database): ConfigurationStore {
  const { query } = database;
  const latestOf = async (from: Kysely<Schema>): Promise<number> => {
    const row = await from
      .selectFrom("configuration_versions")
      .select("version")
      .orderBy("version", "desc")
      .limit(1)
      .executeTakeFirst();
    return row?.version ?? 0;
  };
  return {
    latest: () =>
      beforeMigration(
        retryWhileBusy(() => latestOf(query)),
        0,
      ),

    read: () => {
      const rows = database.transaction(async (transaction) => {
        // Two statements: a version that is made between them must not be read with the credentials of another.
        if (database.kind === "postgres")
          await sql`set transaction isolation level repeatable read`.execute(transaction);
        const version = await transaction
          .selectFrom("configuration_versions")
          .selectAll()
          .orderBy("version", "desc")
          .limit(1)
          .executeTakeFirst();
        if (version === undefined) return undefined;
        const credentials = await transaction.selectFrom("provider_credentials").selectAll().execute();
        return { version, credentials };
      });
      return beforeMigration(rows, undefined);
    },

    insert: ({ expected, version: row, credentials, removed }) =>
      database.transaction(async (transaction) => {
        if ((await latestOf(transaction)) !== expected) return undefined;
        const version = expected + 1;
        if (!(await insertVersion(transaction, { version, ...row }))) return undefined;
        const changed = [...removed, ...credentials.map(({ provider }) => provider)];
        if (changed.length > 0)
          await transaction.deleteFrom("provider_credentials").where("provider", "in", changed).execute();
        for (const credential of credentials)
          await transaction.insertInto("provider_credentials").values(credential).execute();
        return version;
      }),

    async list({ before, limit }) {
      const versions = query
        .selectFrom("configuration_versions")
        .select(["version", "at_ms", "actor_id", "comment"])
        .orderBy("version", "desc")
        .limit(limit);
      const page = before === undefined ? versions : versions.where("version", "<", before);
      return retryWhileBusy(() => page.execute());
    },

    find(version) {
      const found = query.selectFrom("configuration_versions").selectAll().where("version", "=", version);
      return retryWhileBusy(() => found.executeTakeFirst());
    },

    async reseal(seal, facts) {
      for (let attempt = 0; attempt < RESEAL_ATTEMPTS; attempt++) {
        const resealed = await database.transaction((transaction) => resealIn(transaction, seal, facts));
        if (resealed !== undefined) return resealed;
      }
      throw new StoreError("The stored configuration is changed all the time; try again.");
    },
  };
}

/** Versions that other processes can make while credentials are encrypted again. */
const RESEAL_ATTEMPTS = 5;

/** As `ConfigurationStore.reseal`. Undefined, without a change, when another process made a version at the same moment. */
async function resealIn(
  transaction: Transaction<Schema>,
  ...[seal, facts]: Parameters<ConfigurationStore["reseal"]>
): Promise<Resealed | undefined> {
  const rows = await transaction.selectFrom("provider_credentials").selectAll().execute();
  const again = rows.flatMap((row) => {
    const sealed = seal(row);
    return sealed === undefined ? [] : [{ ...row, before: row.sealed, sealed }];
  });
  const latest = await transaction
    .selectFrom("configuration_versions")
    .select(["version", "document"])
    .orderBy("version", "desc")
    .limit(1)
    .executeTakeFirst();
  const unreadable = rows.length - again.length;
  if (again.length === 0 || latest === undefined) return { resealed: 0, unreadable };
  const { version, document } = latest;
  if (!(await insertVersion(transaction, { version: version + 1, document, ...facts }))) return undefined;
  let resealed = 0;
  for (const { provider, before, sealed } of again) {
    // A credential that was set meanwhile stays.
    const { numUpdatedRows } = await transaction
      .updateTable("provider_credentials")
      .set({ sealed })
      .where("provider", "=", provider)
      .where("sealed", "=", before)
      .executeTakeFirst();
    resealed += Number(numUpdatedRows);
  }
  return { resealed, unreadable };
}

/** Inserts a version, and removes the oldest ones. False, without a change, when another process made it at the same moment. */
async function insertVersion(transaction: Transaction<Schema>, row: ConfigurationVersionRow): Promise<boolean> {
  const { numInsertedOrUpdatedRows } = await transaction
    .insertInto("configuration_versions")
    .values(row)
    .onConflict((on) => on.doNothing())
    .executeTakeFirst();
  if (numInsertedOrUpdatedRows !== 1n) return false;
  await transaction
    .deleteFrom("configuration_versions")
    .where("version", "<=", row.version - MAX_VERSIONS)
    .execute();
  return true;
}

/** `nothing` for a database without the tables: its migration follows. */
function beforeMigration<T>(reading: Promise<T>, nothing: T): Promise<T> {
  return reading.catch((error: unknown) => {
    if (isMissingTable(error)) return nothing;
    throw error;
  });
}
