import { randomBytes } from "node:crypto";
import type { Database } from "./database.ts";
import { retryWhileBusy } from "./store-error.ts";

const SECRET_BYTES = 32;

/** Reads a secret, and makes it when it is missing. Several processes may do so at the same moment. */
export async function readSecret({ query }: Database, name: string): Promise<Buffer> {
  const value = randomBytes(SECRET_BYTES).toString("base64");
  const insert = query
    .insertInto("secrets")
    .values({ name, value })
    .onConflict((on) => on.doNothing());
  await retryWhileBusy(() => insert.execute());
  const found = query.selectFrom("secrets").select("value").where("name", "=", name);
  const row = await retryWhileBusy(() => found.executeTakeFirstOrThrow());
  return Buffer.from(row.value, "base64");
}
