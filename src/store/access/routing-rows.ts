import type { StoredCredential, StoredRouting } from "../../access/account-store.ts";
import { BoundedMap } from "../../core/bounded-map.ts";
import type { AccountRouting } from "../../core/principal.ts";
import type { AccountRow } from "../schema.ts";

type RoutingColumns = Pick<AccountRow, "credentials" | "aliases">;

/** Reads what was written by `toRoutingColumns`. */
export function toStoredRouting({ credentials, aliases }: RoutingColumns): StoredRouting {
  return {
    credentials: credentials === null ? [] : (JSON.parse(credentials) as StoredCredential[]),
    aliases: aliases === null ? [] : (JSON.parse(aliases) as StoredRouting["aliases"]),
  };
}

/** The columns of an account's routing. */
export function toRoutingColumns({ credentials, aliases }: StoredRouting): RoutingColumns {
  return {
    credentials: credentials.length === 0 ? null : JSON.stringify(credentials),
    aliases: aliases.length === 0 ? null : JSON.stringify(aliases),
  };
}

/** Accounts whose routing all their keys share in memory. */
const MAX_ACCOUNTS = 1_000;

/** Reads the routing for the grants of keys: the same object for all keys of an account. Undefined where nothing is set. */
export function createRoutingReader(): (accountId: string, columns: RoutingColumns) => AccountRouting | undefined {
  const known = new BoundedMap<string, { readonly columns: RoutingColumns; readonly routing: AccountRouting }>(
    MAX_ACCOUNTS,
  );
  return (accountId, columns) => {
    if (columns.credentials === null && columns.aliases === null) return undefined;
    const before = known.get(accountId);
    if (before?.columns.credentials === columns.credentials && before.columns.aliases === columns.aliases)
      return before.routing;
    const { credentials, aliases } = toStoredRouting(columns);
    const sealed = credentials.map(({ provider, id, sealed: content }) => [provider, { id, sealed: content }] as const);
    const routing = { credentials: new Map(sealed), aliases };
    known.set(accountId, { columns, routing });
    return routing;
  };
}
