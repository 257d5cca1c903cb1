import { sql, type Kysely } from "kysely";
import { MIGRATIONS, type Migration } from "./migrations.ts";
import { StoreError } from "./store-error.ts";

interface VersionTable {
  readonly parley_schema: { readonly version: number };
}

/**
 * Brings the database up to this program's version, in one transaction that keeps other processes out. Throws a
 * StoreError, and changes nothing, when the database is newer than the program.
 */
export async function migrate(untyped: Kysely<unknown>, migrations: readonly Migration[] = MIGRATIONS): Promise<void> {
  const database = untyped as Kysely<VersionTable>;
  // The usual case needs no lock: a short-lived command must not wait for a busy server.
  if (checkVersion(await readVersion(database), migrations.length) === migrations.length) return;
  await database.transaction().execute(async (transaction) => {
    const version = checkVersion(await readVersion(transaction), migrations.length);
    for (const migration of migrations.slice(version)) await migration.up(transaction as unknown as Kysely<unknown>);
    await sql`create table if not exists parley_schema (version integer not null)`.execute(transaction);
    await transaction.deleteFrom("parley_schema").execute();
    await transaction.insertInto("parley_schema").values({ version: migrations.length }).execute();
  });
}

/** How many migrations the database has taken: none when it has never seen one. */
async function readVersion(database: Kysely<VersionTable>): Promise<number> {
  const tables = await database.introspection.getTables();
  if (!tables.some(({ name }) => name === "parley_schema")) return 0;
  const row = await database.selectFrom("parley_schema").select("version").executeTakeFirst();
  return row?.version ?? 0;
}

function checkVersion(version: number, known: number): number {
  if (version <= known) return version;
  throw new StoreError(
    `The database has version ${version}, this program knows versions up to ${known}. ` +
      "It was last used by a newer Parley: run that one, or restore a backup from before the update.",
  );
}
