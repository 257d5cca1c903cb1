import type { AccountRecord } from "../access/account-store.ts";
import type { CreatedInvitation } from "../access/invitations.ts";
import { toLimitsJson } from "./limit-flags.ts";
import type { CliContext } from "./command.ts";
import { toIso } from "./iso-time.ts";

/** The token alone goes to stdout, so that it can be piped. */
export function writeInvitation({ stdout, stderr }: CliContext, { token, record }: CreatedInvitation): void {
  stderr.write(
    `Invited ${record.email} as ${record.role}. Whoever signs up with this token and this address has the account; ` +
      `it works once, until ${toIso(record.expiresAtMs)}, and is not shown again.\n`,
  );
  stdout.write(`${token}\n`);
}

/** A new invitation as JSON, its token included. */
export function toInvitationJson({ token, record }: CreatedInvitation): object {
  const { id, email, role, expiresAtMs } = record;
  return { id, email, role, token, expires_at: toIso(expiresAtMs) };
}

/** An account as JSON, without its password's hash. */
export function toAccountJson(account: AccountRecord): object {
  const { id, email = null, name, role, limits, createdAtMs, disabledAtMs } = account;
  return {
    id,
    email,
    name,
    role,
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
  const { id, email = "", name, role, createdAtMs } = account;
  return [id, email, name, role, stateOf(account), toIso(createdAtMs) ?? ""];
}

/** `unclaimed` is the account that the first person who signs up takes over. */
function stateOf({ passwordHash, disabledAtMs }: AccountRecord): "active" | "disabled" | "unclaimed" {
  if (disabledAtMs !== undefined) return "disabled";
  return passwordHash === undefined ? "unclaimed" : "active";
}
