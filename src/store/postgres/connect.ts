import { CompiledQuery, Kysely, PostgresDialect, type Transaction } from "kysely";
import { Database } from "../database.ts";
import type { Schema } from "../schema.ts";
import type { Statements } from "../statements.ts";
import { type Perform, runTransaction } from "../transactions.ts";
import { FreshReplica } from "./fresh-replica.ts";
import { type PoolOptions, PostgresConnections } from "./pool.ts";

/** Opens a PostgreSQL database; connections are made on demand. */
export function connectPostgres(options: PoolOptions): Database {
  const pool = new PostgresConnections(options);
  return databaseOn(pool, () => pool.isUp);
}

/** Opens a database for reports, which is a read replica as long as it is up to date. */
export function connectFreshReplica(options: PoolOptions, replicaUrl: string): Database {
  const primary = new PostgresConnections(options);
  const replica = new PostgresConnections({ ...options, url: replicaUrl });
  const query = (pool: PostgresConnections): Kysely<Schema> => new Kysely({ dialect: new PostgresDialect({ pool }) });
  const pool = new FreshReplica({ replica, primary, queryReplica: query(replica), queryPrimary: query(primary) });
  return databaseOn(pool, () => primary.isUp);
}

function databaseOn(pool: PostgresConnections | FreshReplica, isUp: () => boolean): Database {
  const dialect = new PostgresDialect({ pool });
  const query = new Kysely<Schema>({ dialect });
  const perform: Perform = (name, input) =>
    query.transaction().execute((transaction) => runTransaction(createPostgresStatements(transaction), name, input));
  return new Database("postgres", query, {
    perform,
    isUp,
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
