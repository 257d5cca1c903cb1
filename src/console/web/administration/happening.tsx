import { Fragment, type ReactNode } from "react";
import type { SecurityEvent } from "../../../../gen/parley/console/v1/account_pb.js";

/** What IDs are called. */
export interface Names {
  readonly accounts: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
}

/**
 * Events in words. `{actor}` did it, `{account}` is whom it is about, `{whose}` and `{of}` say the same of something that may be
 * the actor's own, `{key}` is which key; other names are those of details.
 */
const WORDS: Readonly<Record<string, string>> = {
  signed_up: "{account} signed up",
  signed_in: "{account} signed in",
  sign_in_failed: "A sign-in to {account} failed",
  signed_out: "{account} signed out",
  signed_out_elsewhere: "{account} signed out of {sessions} other browsers",
  reauthenticated: "{account} gave the password once more",
  reauthentication_failed: "{account} gave a wrong password",
  password_changed: "{account} changed the password",
  password_reset: "The password of {account} was reset",
  account_created: "{actor} made {whose} account",
  account_renamed: "{actor} changed {whose} name",
  role_changed: "{actor} changed {whose} role from {from} to {to}",
  limits_changed: "{actor} changed {whose} limits",
  account_disabled: "{actor} disabled {whose} account",
  account_enabled: "{actor} enabled {whose} account",
  invitation_created: "{actor} made an invitation for a new {role}",
  invitation_accepted: "{account} accepted an invitation",
  invitation_revoked: "{actor} revoked an invitation",
  key_created: "{actor} made the key “{key}”{of}",
  key_updated: "{actor} changed the key “{key}”{of}",
  key_rotated: "{actor} rotated the key “{key}”{of}",
  key_revoked: "{actor} revoked the key “{key}”{of}",
};

/** What happened, in a sentence. Names are shown as they are, each apart from the words around it. */
export function Happening({ event, names }: { readonly event: SecurityEvent; readonly names: Names }) {
  const { type, accountId } = event;
  const isOfNobody = type === "sign_in_failed" && accountId === "";
  const words = isOfNobody ? "A sign-in with an unknown address failed" : (WORDS[type] ?? type);
  return words
    .split(/(\{\w+\})/)
    .map((part, index) => (
      <Fragment key={index}>{part.startsWith("{") ? toName(part.slice(1, -1), event, names) : part}</Fragment>
    ));
}

function toName(what: string, { actorId, accountId, network, details }: SecurityEvent, names: Names): ReactNode {
  const account = <Name>{names.accounts.get(accountId) ?? accountId}</Name>;
  switch (what) {
    case "actor":
      // The command line has neither.
      if (actorId === "") return network === "" ? "The command line" : "Somebody";
      return <Name>{names.accounts.get(actorId) ?? actorId}</Name>;
    case "account":
      return account;
    case "whose":
      return accountId === actorId ? "their" : <>{account}’s</>;
    case "of":
      return accountId === actorId ? "" : <> of {account}</>;
    case "key": {
      const id = details["key_id"] ?? "";
      return <Name>{names.keys.get(id) ?? id}</Name>;
    }
    default:
      return details[what] ?? "";
  }
}

function Name({ children }: { readonly children: string }) {
  return <bdi className="font-medium">{children}</bdi>;
}

const SAID = new Set(["from", "to", "role", "sessions", "email_hash"]);

/** Details that the sentence does not say, such as IDs to look for elsewhere. */
export function describeDetails({ details }: SecurityEvent): string[] {
  return Object.entries(details)
    .filter(([name]) => !SAID.has(name))
    .map(([, value]) => value);
}
