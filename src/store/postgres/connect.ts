import { CompiledQuery, Kysely, PostgresDialect, type Transaction } from "kysely";
import { Database } from "../database.ts";
import type { Schema } from "../schema.ts";
import type { Statements } from "../statements.ts";
import { type Perform, runTransaction } from "../transactions.ts";
import { type PoolOptions, PostgresConnections } from "./pool.ts";

/** Opens a PostgreSQL database; connections are made on demand. */
export function connectPostgres(options: PoolOptions): Database {
  const pool = new PostgresConnections(options);
  const dialect = new PostgresDialect({ pool });
  const query = new Kysely<Schema>({ dialect });
  const perform: Perform = (name, input) =>
    query.transaction().execute((transaction) => runTransaction(createPostgresStatements(transaction), name, input));
  return new Database("postgres", query, {
    perform,
    isUp: () => pool.isUp,
    resize: (connections) => pool.resize(connections),
  });
}

/** Runs statements in a PostgreSQL transaction, whose parameters are numbered. */
function createPostgresStatements(transaction: Transaction<Schema>): Statements {
  return {
    kind: "postgres",
    async run<R>(sql: string, parameters: readonly unknown[]): Promise<readonly R[]> {
      let count = 0;
      const numbered = sql.replaceAll("?", () => `$${++count}`);
      return (await transaction.executeQuery<R>(CompiledQuery.raw(numbered, [...parameters]))).rows;
    },
  };
}
