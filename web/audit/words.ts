import type { AuditActor, AuditEntry, AuditObject } from "../../gen/parley/console/v1/audit_pb.js";

/** Names of actions. */
export const ACTION_WORDS: Readonly<Record<string, string>> = {
  signed_up: "Signed up",
  signed_in: "Signed in",
  sign_in_failed: "Sign-in failed",
  sign_in_refused: "Sign-in at the provider refused",
  sign_in_link_created: "Sign-in link created",
  identity_linked: "Identity linked",
  identity_removed: "Identity removed",
  signed_out: "Signed out",
  signed_out_elsewhere: "Signed out other browsers",
  reauthenticated: "Confirmed again",
  reauthentication_failed: "Confirmation failed",
  password_changed: "Password changed",
  password_reset_requested: "Password reset requested",
  password_reset: "Password reset",
  passkey_added: "Passkey added",
  passkey_removed: "Passkey removed",
  totp_enabled: "Authenticator app turned on",
  totp_disabled: "Authenticator app turned off",
  recovery_codes_renewed: "Recovery codes renewed",
  recovery_code_used: "Recovery code used",
  second_factor_failed: "Second factor failed",
  factors_reset: "Second factors reset",
  account_created: "Account created",
  account_renamed: "Account renamed",
  role_changed: "Role changed",
  role_by_groups: "Role changed by groups",
  limits_changed: "Limits changed",
  account_disabled: "Account disabled",
  account_enabled: "Account enabled",
  account_offboarded: "Account offboarded",
  invitation_created: "Invitation created",
  invitation_accepted: "Invitation accepted",
  invitation_revoked: "Invitation revoked",
  team_created: "Team created",
  member_added: "Member added",
  member_changed: "Member changed",
  member_removed: "Member removed",
  key_created: "Key created",
  key_updated: "Key updated",
  key_rotated: "Key rotated",
  key_revoked: "Key revoked",
  key_transferred: "Key transferred",
  content_read: "Stored prompt and answer read",
  credential_set: "Own credential set",
  credential_removed: "Own credential removed",
  credentials_resealed: "Credentials encrypted anew",
  aliases_changed: "Aliases changed",
  calls_stopped: "Session or end user stopped",
  stop_removed: "Stop ended",
  attributed_budget_changed: "Budget of a session or end user changed",
  configuration_changed: "Configuration changed",
  provider_credential_set: "Provider credential set",
  provider_credential_removed: "Provider credential removed",
  provider_tested: "Provider tested",
  model_tested: "Model tested",
  alert_channel_created: "Alert channel created",
  alert_channel_updated: "Alert channel changed",
  alert_channel_removed: "Alert channel removed",
  alert_channel_tested: "Alert channel tested",
  alert_thresholds_changed: "Alert thresholds changed",
  alert_muted: "Alert muted",
  alert_acknowledged: "Alert acknowledged",
  admin_key_created: "Administration key created",
  admin_key_revoked: "Administration key revoked",
  role_created: "Role created",
  role_updated: "Role changed for its holders",
  role_removed: "Role removed",
  audit_stream_created: "Receiver of the log added",
  audit_stream_removed: "Receiver of the log removed",
};

/** Kinds of actors other than accounts. */
export const ACTOR_WORDS: Readonly<Record<string, string>> = {
  admin_key: "Administration keys",
  command_line: "Command line",
  nobody: "Not signed in",
  gateway: "Parley",
};

/** Names by ID. */
export interface Names {
  readonly accounts: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
  readonly adminKeys: ReadonlyMap<string, string>;
  readonly roles: ReadonlyMap<string, string>;
}

export function describeActor(actor: AuditActor | undefined, { accounts, adminKeys }: Names): string {
  const { kind = "", id = "" } = actor ?? {};
  if (kind === "account") return accounts.get(id) ?? id;
  if (kind === "admin_key") return `Key ${adminKeys.get(id) ?? id}`;
  const words = ACTOR_WORDS[kind] ?? kind;
  return id === "" ? words : `${words} (${id})`;
}

export function describeObject(object: AuditObject | undefined, { accounts, keys, adminKeys, roles }: Names): string {
  if (object === undefined) return "";
  const { kind, id } = object;
  switch (kind) {
    case "account":
      return accounts.get(id) ?? id;
    case "key":
      return `Key ${keys.get(id) ?? id}`;
    case "configuration":
      return `Version ${id}`;
    case "provider":
      return `Provider ${id}`;
    case "admin_key":
      return `Administration key ${adminKeys.get(id) ?? id}`;
    case "role":
      return `Role ${roles.get(id) ?? id}`;
    case "audit_stream":
      return `Receiver ${id}`;
    case "alert_channel":
      return `Alert channel ${id}`;
    default:
      return `${kind[0]?.toUpperCase()}${kind.slice(1)} ${id}`;
  }
}

/** A changed field: its values as texts, empty where there was none. */
export interface FieldChange {
  readonly field: string;
  readonly before: string;
  readonly after: string;
}

/** The changed fields of an entry. */
export function changesOf({ beforeJson, afterJson }: AuditEntry, names: Names): readonly FieldChange[] {
  const [before, after] = [readFields(beforeJson), readFields(afterJson)];
  return Object.keys({ ...before, ...after }).map((field) => ({
    field,
    before: describeValue(before[field], names),
    after: describeValue(after[field], names),
  }));
}

/** Further facts of an entry. */
export function detailsOf(
  { detailsJson }: AuditEntry,
  names: Names,
): readonly (readonly [name: string, value: string])[] {
  return Object.entries(readFields(detailsJson)).map(([name, value]) => [name, describeValue(value, names)]);
}

function readFields(json: string): Readonly<Record<string, unknown>> {
  return json === "" ? {} : (JSON.parse(json) as Record<string, unknown>);
}

/** A value as a text: the ID of an account or a role as its name. */
function describeValue(value: unknown, { accounts, roles }: Names): string {
  if (value === undefined || value === null) return "";
  if (Array.isArray(value) && value.every((each) => typeof each === "string")) return value.join(", ") || "none";
  return typeof value === "string" ? (accounts.get(value) ?? roles.get(value) ?? value) : JSON.stringify(value);
}
