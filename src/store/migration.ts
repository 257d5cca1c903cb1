import type { Kysely } from "kysely";

/** One step of the database's history. A step that has been released is never changed: a new one follows it. */
export interface Migration {
  /** What it does, for people. */
  readonly name: string;
  /** Runs in a transaction, on either database. */
  up(database: Kysely<unknown>, kind: "sqlite" | "postgres"): Promise<void>;
}
