import { type Kysely, sql } from "kysely";
import type { Database } from "./database.ts";
import type { ConfigurationVersionRow, ProviderCredentialRow, Schema } from "./schema.ts";
import { isMissingTable, retryWhileBusy } from "./store-error.ts";

/** Versions that are kept. */
export const MAX_VERSIONS = 100;

/** A version without its document. */
export type VersionFacts = Omit<ConfigurationVersionRow, "document">;

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
  /** Replaces the encrypted content of all credentials for which `seal` returns another one. Returns their number. */
  reseal(seal: (row: ProviderCredentialRow) => string | undefined): Promise<number>;
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
    latest: () => beforeMigration(retryWhileBusy(() => latestOf(query)), 0),

    read: () => {
      const rows = database.transaction(async (transaction) => {
        // Two statements: a version of between them must not be read with the credentials of another.
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
        const { numInsertedOrUpdatedRows } = await transaction
          .insertInto("configuration_versions")
          .values({ version, ...row })
          .onConflict((on) => on.doNothing())
          .executeTakeFirst();
        // Another process made it at the same moment.
        if (numInsertedOrUpdatedRows !== 1n) return undefined;
        const changed = [...removed, ...credentials.map(({ provider }) => provider)];
        if (changed.length > 0)
          await transaction.deleteFrom("provider_credentials").where("provider", "in", changed).execute();
        for (const credential of credentials)
          await transaction.insertInto("provider_credentials").values(credential).execute();
        await transaction
          .deleteFrom("configuration_versions")
          .where("version", "<=", version - MAX_VERSIONS)
          .execute();
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

    reseal: (seal) =>
      database.transaction(async (transaction) => {
        const rows = await transaction.selectFrom("provider_credentials").selectAll().execute();
        let count = 0;
        for (const row of rows) {
          const sealed = seal(row);
          if (sealed === undefined || sealed === row.sealed) continue;
          // A credential that was set meanwhile stays.
          const { numUpdatedRows } = await transaction
            .updateTable("provider_credentials")
            .set({ sealed })
            .where("provider", "=", row.provider)
            .where("sealed", "=", row.sealed)
            .executeTakeFirst();
          count += Number(numUpdatedRows);
        }
        return count;
      }),
  };
}

/** `nothing` for a database without the tables: its migration follows. */
function beforeMigration<T>(reading: Promise<T>, nothing: T): Promise<T> {
  return reading.catch((error: unknown) => {
    if (isMissingTable(error)) return nothing;
    throw error;
  });
}
