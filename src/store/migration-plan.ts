import {
  type CompiledQuery,
  type DatabaseConnection,
  type Dialect,
  type Driver,
  DummyDriver,
  Kysely,
  PostgresAdapter,
  PostgresIntrospector,
  PostgresQueryCompiler,
  type QueryResult,
  SqliteAdapter,
  SqliteIntrospector,
  SqliteQueryCompiler,
  sql,
} from "kysely";
import { connectUnlimited, type Database, type DatabaseLocation, describeLocation, sqliteFile } from "./database.ts";
import { countProcesses, readSchemaVersion, type SchemaVersion, usableAfter } from "./migrate.ts";
import { type Migration, MIGRATIONS } from "./migrations.ts";
import { databaseExists, explainOpening } from "./open-database.ts";

/** Plan for a migration of a database. */
export interface MigrationPlan {
  /** The database, for people. */
  readonly where: string;
  /** Version of the database. */
  readonly version: number;
  /** Version that this program migrates it to; the database's own if that is newer. */
  readonly target: number;
  /** Programs that know at least this version can use the database afterwards. */
  readonly usableFrom: number;
  /** Whether programs that know the database's version continue to work. */
  readonly replicasContinue: boolean;
  /** Processes that use the database. */
  readonly processes: number;
  readonly pending: readonly PlannedMigration[];
}

/** A migration that is not applied yet. */
interface PlannedMigration {
  readonly version: number;
  readonly name: string;
  readonly statements: readonly PlannedStatement[];
}

/** A statement of a migration. */
export interface PlannedStatement extends Effect {
  readonly sql: string;
  /** Estimated rows of its table; undefined for a new table, and without an estimate. */
  readonly rows: number | undefined;
}

/** Effect of a statement on other statements on its table. */
export interface Effect {
  /** Undefined for a statement that is not recognised. */
  readonly table: string | undefined;
  readonly kind: "new" | "moment" | "index" | "rows" | "breaking";
}

/** Plans the migration of the database and changes nothing. Throws a StoreError when the database cannot be read. */
export async function planMigration(
  location: DatabaseLocation,
  migrations: readonly Migration[] = MIGRATIONS,
): Promise<MigrationPlan> {
  const where = describeLocation(location);
  if (location.databaseUrl === undefined && !databaseExists(sqliteFile(location.dataDir)))
    return planOf({ where, kind: "sqlite", found: { version: 0, usableFrom: undefined } }, migrations);
  try {
    const database = await connectUnlimited(location);
    try {
      const found = await readSchemaVersion(database.kind, database.query);
      const processes = await countProcesses(database, database.query);
      return await planOf({ where, kind: database.kind, found, processes, database }, migrations);
    } finally {
      await database.close();
    }
  } catch (error) {
    throw explainOpening(where, error);
  }
}

interface Found {
  readonly where: string;
  readonly kind: Database["kind"];
  readonly found: SchemaVersion;
  readonly processes?: number;
  /** Undefined for a database that does not exist. */
  readonly database?: Database;
}

async function planOf(
  { where, kind, found, processes = 0, database }: Found,
  migrations: readonly Migration[],
): Promise<MigrationPlan> {
  const { version } = found;
  const usableFrom = usableAfter(found, migrations);
  const created = new Set<string>();
  const pending: PlannedMigration[] = [];
  for (const [index, migration] of migrations.entries()) {
    if (index < version) continue;
    const statements: PlannedStatement[] = [];
    for (const text of await statementsOf(migration, kind, database)) {
      const effect = effectOf(text, created);
      const rows = effect.kind === "new" ? undefined : await estimateRows(database, effect.table);
      statements.push({ sql: text, ...effect, rows });
    }
    pending.push({ version: index + 1, name: migration.name, statements });
  }
  const target = Math.max(version, migrations.length);
  const replicasContinue = version === 0 || usableFrom <= version;
  return { where, version, target, usableFrom, replicasContinue, processes, pending };
}

/** The statements of a migration that change something. It reads from `database`; without one there are no rows. */
export async function statementsOf(
  migration: Migration,
  kind: Database["kind"],
  database?: Database,
): Promise<string[]> {
  const statements: string[] = [];
  const recording = new Kysely<unknown>({ dialect: new RecordingDialect(kind, statements, database) });
  await migration.up(recording, kind);
  return statements;
}

/**
 * Returns the effect of a statement. `created` are the tables that earlier statements have made; a table that this one makes
 * is added. A statement that is not recognised is `breaking`.
 */
export function effectOf(statement: string, created: Set<string>): Effect {
  const text = statement.replaceAll('"', "").replaceAll(/\s+/g, " ").trim().toLowerCase();
  const made = /^create table (?:if not exists )?(\w+)/.exec(text)?.[1];
  if (made !== undefined) {
    created.add(made);
    return { table: made, kind: "new" };
  }
  const [, altered, column] = /^alter table (\w+) add column (.*)/.exec(text) ?? [];
  const [kind, table] =
    altered !== undefined && column !== undefined
      ? ([isPlainColumn(column) ? "moment" : "breaking", altered] as const)
      : (EFFECTS.map(([pattern, each]) => [each, pattern.exec(text)?.[1]] as const).find(([, name]) => name) ??
        (["breaking", undefined] as const));
  return { table, kind: table !== undefined && created.has(table) ? "new" : kind };
}

/** Whether a column is optional or has a constant, so that no row is rewritten or checked and earlier programs may omit it. */
function isPlainColumn(column: string): boolean {
  if (/\b(?:references|unique|primary|generated|check)\b/.test(column)) return false;
  return !column.includes("not null") || column.includes("default");
}

/** By the beginning of a statement, with the table whose rows it reads or writes. */
const EFFECTS: readonly (readonly [RegExp, Effect["kind"]])[] = [
  [/^create (?:unique )?index \w+ on (\w+)/, "index"],
  [/^insert into \w+ .*\bselect\b.* from (\w+)/, "rows"],
  [/^(?:update|insert into|delete from) (\w+)/, "rows"],
  [/^(?:alter|drop) table (?:if exists )?(\w+)/, "breaking"],
];

async function estimateRows(database: Database | undefined, table: string | undefined): Promise<number | undefined> {
  if (database === undefined || table === undefined) return undefined;
  const estimate =
    database.kind === "postgres"
      ? sql<{ rows: number | null }>`select reltuples::bigint as rows from pg_class where oid = to_regclass(${table})`
      : // Not `count(*)`, which reads the whole table. Rows are numbered.
        sql<{ rows: number | null }>`select max(rowid) as rows from ${sql.table(table)}`;
  const rows = (await estimate.execute(database.query)).rows[0]?.rows ?? 0;
  // PostgreSQL has not counted the table yet.
  return rows < 0 ? undefined : rows;
}

/** Records statements, and runs only those that read. */
class RecordingDialect implements Dialect {
  readonly #kind: Database["kind"];
  readonly #statements: string[];
  readonly #database: Database | undefined;

  constructor(kind: Database["kind"], statements: string[], database: Database | undefined) {
    this.#kind = kind;
    this.#statements = statements;
    this.#database = database;
  }

  createDriver(): Driver {
    const connection = new RecordingConnection(this.#statements, this.#database);
    return new (class extends DummyDriver {
      override acquireConnection(): Promise<DatabaseConnection> {
        return Promise.resolve(connection);
      }
    })();
  }

  createQueryCompiler(): PostgresQueryCompiler | SqliteQueryCompiler {
    return this.#kind === "postgres" ? new PostgresQueryCompiler() : new SqliteQueryCompiler();
  }

  createAdapter(): PostgresAdapter | SqliteAdapter {
    return this.#kind === "postgres" ? new PostgresAdapter() : new SqliteAdapter();
  }

  createIntrospector(database: Kysely<unknown>): PostgresIntrospector | SqliteIntrospector {
    return this.#kind === "postgres" ? new PostgresIntrospector(database) : new SqliteIntrospector(database);
  }
}

/** A statement whose lists of parameters have the first one only. */
function shorten(statement: string): string {
  const rows = statement.replaceAll(
    /(\((?:\?|\$\d+)(?:, (?:\?|\$\d+))*\))(?:, \((?:\?|\$\d+)(?:, (?:\?|\$\d+))*\))+/g,
    "$1, …",
  );
  return rows.replaceAll(/ in \((\?|\$\d+)(?:, (?:\?|\$\d+))+\)/g, " in ($1, …)");
}

class RecordingConnection implements DatabaseConnection {
  readonly #statements: string[];
  readonly #database: Database | undefined;

  constructor(statements: string[], database: Database | undefined) {
    this.#statements = statements;
    this.#database = database;
  }

  async executeQuery<R>(query: CompiledQuery): Promise<QueryResult<R>> {
    const text = query.sql.replaceAll(/\s+/g, " ").trim();
    if (!text.startsWith("select ")) this.#record(shorten(text));
    else if (this.#database !== undefined) return this.#database.query.executeQuery<R>(query);
    return { rows: [] };
  }

  /** A migration that moves rows in batches has the same statement many times. */
  #record(text: string): void {
    if (!this.#statements.includes(text)) this.#statements.push(text);
  }

  // oxlint-disable-next-line require-yield -- rows are not streamed
  async *streamQuery(): AsyncIterableIterator<never> {
    throw new Error("a migration does not stream rows");
  }
}
