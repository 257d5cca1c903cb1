import type { SecurityEvent } from "../../gen/parley/console/v1/account_pb.js";

/**
 * Sentence templates by event type. `{actor}` is the account that acted, `{account}` the affected account. `{whose}`
 * and `{of}` are possessive forms of `{account}` that allow for the actor's own. `{key}` is the key; other placeholders
 * are names of details.
 */
export const EVENT_WORDS: Readonly<Record<string, string>> = {
  signed_up: "{account} signed up",
  signed_in: "{account} signed in",
  sign_in_refused: "Refused sign-in of {account} at the provider",
  sign_in_link_created: "{actor} made a sign-in link for {account}",
  identity_linked: "{account} was linked to the provider",
  identity_removed: "{actor} removed the link of {account} to the provider",
  role_by_groups: "Groups at the provider changed the role of {account} from {from} to {to}",
  sign_in_failed: "Failed sign-in for {account}",
  signed_out: "{account} signed out",
  signed_out_elsewhere: "{account} signed out of {sessions} other browsers",
  reauthenticated: "{account} confirmed their password",
  reauthentication_failed: "{account} entered a wrong password",
  password_changed: "{account} changed their password",
  password_reset: "The password of {account} was reset",
  account_created: "{actor} created {whose} account",
  account_renamed: "{actor} changed {whose} name",
  role_changed: "{actor} changed {whose} role from {from} to {to}",
  limits_changed: "{actor} changed {whose} limits",
  account_disabled: "{actor} disabled {whose} account",
  account_enabled: "{actor} enabled {whose} account",
  invitation_created: "{actor} created an invitation for a new {role}",
  invitation_accepted: "{account} accepted an invitation",
  invitation_revoked: "{actor} revoked an invitation",
  team_created: "{actor} created the {kind} {account}",
  member_added: "{actor} added {member} to {account} as {role}",
  member_changed: "{actor} made {member} a {role} of {account}",
  member_removed: "{actor} removed {member} from {account}",
  key_created: "{actor} created the key “{key}”{of}",
  key_updated: "{actor} updated the key “{key}”{of}",
  key_rotated: "{actor} rotated the key “{key}”{of}",
  key_transferred: "{actor} transferred the key “{key}” from {from_account} to {to_account}",
  account_offboarded: "{actor} offboarded {account}, with {keys} active keys",
  key_revoked: "{actor} revoked the key “{key}”{of}",
  credential_set: "{actor} set {whose} own credential for {provider}",
  credential_removed: "{actor} removed {whose} own credential for {provider}",
  aliases_changed: "{actor} changed {whose} aliases",
  configuration_changed: "{actor} made version {version} of the stored configuration",
  provider_credential_set: "{actor} set the credential of the provider {provider}",
  provider_credential_removed: "{actor} removed the credential of the provider {provider}",
  alert_channel_created: "{actor} added the alert channel {channel}",
  alert_channel_removed: "{actor} removed the alert channel {channel}",
  alert_thresholds_changed: "{actor} changed the thresholds of alerts",
  alert_muted: "{actor} {change} alerts about {subject}",
};

const INCLUDED = new Set([
  "from",
  "to",
  "role",
  "sessions",
  "email_hash",
  "provider",
  "aliases",
  "version",
  "kind",
  "member",
  "keys",
  "from_account",
  "to_account",
  "channel",
  "change",
  "subject",
]);

/** Returns the details that the sentence does not contain, such as IDs. */
export function describeDetails({ details }: SecurityEvent): string[] {
  return Object.entries(details)
    .filter(([name]) => !INCLUDED.has(name))
    .map(([, value]) => value);
}
