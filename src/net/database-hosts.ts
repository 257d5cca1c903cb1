import { splitHosts } from "./hosts.ts";

const WANTED = "target_session_attrs";
/** Accepted values of `target_session_attrs`. Parley writes to every connection, so it needs a server that takes writes. */
const WRITABLE: ReadonlySet<string> = new Set(["read-write", "primary"]);

/** The hosts of a PostgreSQL address. */
export interface DatabaseHosts {
  /** One address for each host, in their order. */
  readonly urls: readonly string[];
  /** Whether only a server that takes writes may be used: with several hosts, or `target_session_attrs`. */
  readonly writableOnly: boolean;
}

/**
 * Splits an address with several hosts in libpq's format: `postgres://user:password@a:5432,b:5433/parley`. Undefined for an
 * invalid address, and for one that asks for standbys.
 */
export function splitDatabaseHosts(address: string): DatabaseHosts | undefined {
  const urls = splitHosts(address);
  if (urls === undefined) return undefined;
  const wanted = urls[0]!.searchParams.get(WANTED);
  if (wanted !== null && !WRITABLE.has(wanted)) return undefined;
  if (urls.length === 1 && wanted === null) return { urls: [address], writableOnly: false };
  for (const url of urls) url.searchParams.delete(WANTED);
  return { urls: urls.map((url) => url.href), writableOnly: true };
}
