import { Kysely, PostgresDialect } from "kysely";
import { Database } from "./database.ts";
import { type PoolOptions, PostgresConnections } from "./postgres-pool.ts";
import { createPostgresStatements } from "./postgres-statements.ts";
import type { Schema } from "./schema.ts";
import { runTransaction } from "./transactions.ts";

/** Connections to a PostgreSQL database, which are made when they are needed. */
export function connectPostgres(options: PoolOptions): Database {
  const dialect = new PostgresDialect({ pool: new PostgresConnections(options) });
  const query = new Kysely<Schema>({ dialect });
  return new Database("postgres", query, (name, input) =>
    query.transaction().execute((transaction) => runTransaction(createPostgresStatements(transaction), name, input)),
  );
}
