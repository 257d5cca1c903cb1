import type { AccountRecord, InvitationRecord } from "../access/account-store.ts";
import type { CreatedInvitation } from "../access/invitations.ts";
import type { SignInRules } from "../access/sign-in-rules.ts";
import type { KeyRecord } from "../access/key-store.ts";
import { type CreatedKey, keyState } from "../access/keys.ts";
import type { CliContext } from "./command.ts";
import { describeLimits, toAttributionLimitsJson, toLimitsJson } from "./limit-flags.ts";

/** Formats Unix milliseconds as ISO 8601; null for undefined. */
function toIso(atMs: number | undefined): string | null {
  return atMs === undefined ? null : new Date(atMs).toISOString();
}

/** Lines with aligned columns, two spaces apart, without trailing spaces. The first row may be a heading. */
export function formatTable(rows: readonly (readonly string[])[], widths: readonly number[] = widthsOf(rows)): string {
  return rows
    .map((row) =>
      row
        .map((cell, index) => cell.padEnd(widths[index] ?? 0))
        .join("  ")
        .trimEnd(),
    )
    .join("\n");
}

/** The widths of the columns of a table. */
export function widthsOf(rows: readonly (readonly string[])[]): readonly number[] {
  const columns = Math.max(0, ...rows.map((row) => row.length));
  return Array.from({ length: columns }, (_, index) => Math.max(...rows.map((row) => row[index]?.length ?? 0)));
}

/** Writes only the token to stdout, so that it can be piped. Where passwords are off, it has no use, and is not written. */
export function writeInvitation(
  { stdout, stderr }: CliContext,
  { token, record }: CreatedInvitation,
  { password, provider }: SignInRules,
): void {
  const atProvider = `sign in with ${provider?.name} and this address`;
  const until = toIso(record.expiresAtMs);
  const joining = record.team === undefined ? "" : ` and ${record.team.role} of ${record.team.teamId}`;
  const invited = `Invited ${record.email} as ${record.role}${joining}. To get the account`;
  if (!password) return void stderr.write(`${invited}, ${atProvider} until ${until}.\n`);
  stderr.write(
    `${invited}, sign up with this token and this address${provider === undefined ? "" : `, or ${atProvider}`}; ` +
      `the token works once, until ${until}, and is not shown again.\n`,
  );
  stdout.write(`${token}\n`);
}

/** A new invitation as JSON, its token included. */
export function toInvitationJson({ token, record }: CreatedInvitation): object {
  return { ...toInvitationFacts(record), token };
}

/** An invitation as JSON. */
export function toInvitationFacts({ id, email, role, team, expiresAtMs }: InvitationRecord) {
  return {
    id,
    email: email ?? null,
    role,
    team: team === undefined ? null : { id: team.teamId, role: team.role },
    expires_at: new Date(expiresAtMs).toISOString(),
  };
}

/** An account as JSON, without its password's hash. */
export function toAccountJson(account: AccountRecord): object {
  const { id, kind, email = null, name, role, limits, createdAtMs, disabledAtMs } = account;
  return {
    id,
    kind,
    email,
    name,
    role: kind === "person" ? role : null,
    state: stateOf(account),
    limits: toLimitsJson(limits),
    created_at: toIso(createdAtMs),
    disabled_at: toIso(disabledAtMs),
  };
}

/** The heading of the table of accounts. */
export const ACCOUNT_HEADING = ["ID", "EMAIL", "NAME", "ROLE", "STATE", "CREATED"];

/** An account as a line of the table. */
export function toAccountRow(account: AccountRecord): string[] {
  const { id, kind, email = "", name, role, createdAtMs } = account;
  return [id, email, name, kind === "person" ? role : kind, stateOf(account), toIso(createdAtMs) ?? ""];
}

/** `unclaimed` is the initial account, which the first person who signs up takes over. */
function stateOf({ kind, email, disabledAtMs }: AccountRecord): "active" | "disabled" | "unclaimed" {
  if (disabledAtMs !== undefined) return "disabled";
  return kind === "person" && email === undefined ? "unclaimed" : "active";
}

/** Writes only the secret to stdout, so that it can be piped. */
export function writeSecret({ stdout, stderr }: CliContext, { secret, record }: CreatedKey): void {
  stderr.write(`Created ${record.id} (${record.name}). Keep this key: it is not shown again.\n`);
  stdout.write(`${secret}\n`);
}

/** A new key as JSON, its secret included. */
export function toCreatedJson({ secret, record }: CreatedKey): object {
  const { id, name, ...rest } = toKeyJson(record);
  return { id, name, key: secret, ...rest };
}

/** A key as JSON, without its state. */
export function toKeyJson(record: KeyRecord) {
  return {
    id: record.id,
    name: record.name,
    display: record.display,
    account: record.accountId,
    models: record.models,
    capabilities: record.capabilities,
    limits: toLimitsJson(record.limits),
    attribution_limits: toAttributionLimitsJson(record.attributionLimits),
    limited_by_administrator: record.limitedByAdministrator,
    options: record.options,
    required_labels: record.requiredLabels,
    tags: record.tags,
    store_content: record.storesContent,
    last_used_at: toIso(record.lastUsedAtMs),
    created_at: toIso(record.createdAtMs),
    expires_at: toIso(record.expiresAtMs),
    revoked_at: toIso(record.revokedAtMs),
    replaced_by: record.replacedBy ?? null,
  };
}

/** The heading of the table of keys. */
export const KEY_HEADING = [
  "ID",
  "NAME",
  "KEY",
  "STATE",
  "MODELS",
  "CAPABILITIES",
  "LIMITS",
  "CREATED",
  "EXPIRES",
  "LAST USED",
];

/** A key as a line of the table. */
export function toKeyRow(record: KeyRecord, nowMs: number): string[] {
  return [
    record.id,
    record.name,
    record.display,
    keyState(record, nowMs),
    record.models === "all" ? "all" : record.models.join(","),
    record.capabilities.join(","),
    describeLimits(record.limits, record.attributionLimits),
    toIso(record.createdAtMs) ?? "",
    toIso(record.expiresAtMs) ?? "never",
    toIso(record.lastUsedAtMs) ?? "never",
  ];
}
