import { sql } from "kysely";
import type { KeyRecord } from "../../src/access/key-store.ts";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { connect, connectUnlimited, type DatabaseLocation } from "../../src/store/database.ts";
import { toCompletionRow } from "../../src/store/ledger/ledger-rows.ts";
import { migrate } from "../../src/store/migrate.ts";
import { MIGRATIONS, usage } from "../../src/store/migrations.ts";
import { roles } from "../../src/store/migrations/roles.ts";
import { openStore } from "../../src/store/store.ts";

/** A key of the first schema version, as this version reads it. */
export const OLD_KEY: KeyRecord = {
  id: "key_old",
  keyFamilyId: "key_old",
  accountId: "acct_default",
  name: "old",
  display: "sk_parley_ab…wxyz",
  models: ["m"],
  capabilities: ["chat"],
  limits: NO_LIMITS,
  limitedByAdministrator: false,
  options: "default",
  requiredLabels: {},
  tags: [],
  storesContent: false,
  createdAtMs: 1,
  expiresAtMs: undefined,
  revokedAtMs: undefined,
  replacedBy: undefined,
  lastUsedAtMs: undefined,
};

/** Columns of entries that are younger than the usage sums. */
const LATER_COLUMNS: ReadonlySet<string> = new Set([
  "other_counts",
  "own_cost_micro_usd",
  "spending_month",
  "details",
  "end_user",
  "session",
  "agent",
  "tags",
]);

/**
 * Makes a database without usage sums, inserts these entries, and returns the completions that this version counts by model.
 */
export async function migrateOldEntries(
  location: DatabaseLocation,
  entries: readonly LedgerEntry[],
): Promise<readonly (readonly [model: string, completions: number])[]> {
  const old = await connect(location);
  await migrate(old, () => connectUnlimited(location), {
    migrations: MIGRATIONS.slice(0, MIGRATIONS.indexOf(usage)),
  });
  const toOldRow = (entry: LedgerEntry): object =>
    Object.fromEntries(Object.entries(toCompletionRow(entry)).filter(([column]) => !LATER_COLUMNS.has(column)));
  const values = entries.map((entry) => sql`(${sql.join(Object.values(toOldRow(entry)))})`);
  const columns = sql.join(Object.keys(toOldRow(entries[0]!)).map((column) => sql.ref(column)));
  await sql`insert into completions (${columns}) values ${sql.join(values)}`.execute(old.query);
  await old.close();
  const store = await openStore(location);
  try {
    const { rows } = await store.usage.summarize({ sinceMs: 0, untilMs: 1e15, by: "model", step: "all" });
    return rows.map(({ group, sums: { completions } }) => [group, completions]);
  } finally {
    await store.close();
  }
}

/** Accounts of the version before owners, and what they become. */
export const OLD_ROLES = {
  accounts: [
    { id: "acct_gone", role: "administrator", disabled: true },
    { id: "acct_ann", role: "administrator" },
    { id: "acct_bob", role: "member" },
    { id: "acct_eve", role: "administrator" },
  ],
  become: {
    acct_default: "person: developer",
    acct_gone: "person: administrator",
    acct_ann: "person: owner",
    acct_bob: "person: developer",
    acct_eve: "person: administrator",
  },
} as const;

/**
 * Makes a database of the version before owners, with these accounts beside the default one, which no person has claimed, and returns the
 * kinds and roles that this version reads.
 */
export async function migrateOldRoles(
  location: DatabaseLocation,
  accounts: readonly { readonly id: string; readonly role: "administrator" | "member"; readonly disabled?: true }[],
): Promise<Readonly<Record<string, string>>> {
  const old = await connect(location);
  await migrate(old, () => connectUnlimited(location), { migrations: MIGRATIONS.slice(0, MIGRATIONS.indexOf(roles)) });
  for (const [index, { id, role, disabled }] of accounts.entries())
    await sql`insert into accounts (id, name, email, role, password_hash, created_at_ms, disabled_at_ms)
      values (${id}, ${id}, ${`${id}@example.com`}, ${role}, 'x', ${index}, ${disabled ? 1 : null})`.execute(old.query);
  await old.close();
  const store = await openStore(location);
  try {
    return Object.fromEntries((await store.accounts.list()).map(({ id, role, kind }) => [id, `${kind}: ${role}`]));
  } finally {
    await store.close();
  }
}

/**
 * Makes a database of the first schema version with one key, and returns this version's reading of it. `capabilities`: as the
 * first version wrote them.
 */
export async function migrateOldKey(
  location: DatabaseLocation,
  capabilities = OLD_KEY.capabilities,
): Promise<KeyRecord | undefined> {
  const old = await connect(location);
  await migrate(old, () => connectUnlimited(location), { migrations: MIGRATIONS.slice(0, 1) });
  await sql`insert into api_keys (id, account_id, name, hash, display, models, capabilities, created_at_ms)
    values ('key_old', 'acct_default', 'old', 'h', 'sk_parley_ab…wxyz', '["m"]', ${JSON.stringify(capabilities)}, 1)`.execute(
    old.query,
  );
  await old.close();
  const store = await openStore(location);
  try {
    return (await store.keys.findByHash("h"))?.record;
  } finally {
    await store.close();
  }
}
