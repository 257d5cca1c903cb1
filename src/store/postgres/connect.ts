import { Kysely, PostgresDialect } from "kysely";
import { Database } from "../database.ts";
import { type PoolOptions, PostgresConnections } from "./pool.ts";
import { createPostgresStatements } from "./statements.ts";
import type { Schema } from "../schema.ts";
import { type Perform, runTransaction } from "../transactions.ts";

/** Connections to a PostgreSQL database, which are made when they are needed. */
export function connectPostgres(options: PoolOptions): Database {
  const pool = new PostgresConnections(options);
  const dialect = new PostgresDialect({ pool });
  const query = new Kysely<Schema>({ dialect });
  const perform: Perform = (name, input) =>
    query.transaction().execute((transaction) => runTransaction(createPostgresStatements(transaction), name, input));
  return new Database("postgres", query, { perform, isUp: () => pool.isUp });
}
