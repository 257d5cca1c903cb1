import { CompiledQuery, type Transaction } from "kysely";
import type { Schema } from "../schema.ts";
import type { Statements } from "../statements.ts";

/** Runs statements in a transaction of PostgreSQL, which has numbers for the parameters. */
export function createPostgresStatements(transaction: Transaction<Schema>): Statements {
  return {
    kind: "postgres",
    async run<R>(sql: string, parameters: readonly unknown[]): Promise<readonly R[]> {
      let count = 0;
      const numbered = sql.replaceAll("?", () => `$${++count}`);
      return (await transaction.executeQuery<R>(CompiledQuery.raw(numbered, [...parameters]))).rows;
    },
  };
}
