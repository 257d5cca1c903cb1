import { StoreError } from "../store-error.ts";

/** Checks the address of a database. Throws a StoreError that does not repeat it: it holds a password. */
export function checkPostgresUrl(text: string): void {
  const url = URL.parse(text);
  if (url !== null && ["postgres:", "postgresql:"].includes(url.protocol)) return;
  throw new StoreError("database.url is not a PostgreSQL address, such as postgres://user:password@host:5432/parley.");
}

/** What people may see of the address: `PostgreSQL at host:5432/parley`. */
export function describePostgresUrl(text: string): string {
  const { hostname, port, pathname } = new URL(text);
  return `PostgreSQL at ${hostname || "localhost"}:${port || "5432"}${pathname}`;
}
