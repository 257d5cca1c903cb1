import { createElement, Fragment, type ReactNode } from "react";
import type { SecurityEvent } from "../../gen/parley/console/v1/account_pb.js";
import { EVENT_WORDS } from "./event-words.ts";

/** Names of accounts and keys by ID. */
export interface Names {
  readonly accounts: ReadonlyMap<string, string>;
  readonly keys: ReadonlyMap<string, string>;
}

/** Sentences of events of nobody. */
const WITHOUT_ACCOUNT: Readonly<Record<string, string>> = {
  sign_in_failed: "Failed sign-in for an unknown address",
  sign_in_refused: "Refused sign-in at the provider of a person without an account",
};

/** An event as a sentence. Names are isolated (`bdi`) from the text direction around them. */
export function SecurityEventText({ event, names }: { readonly event: SecurityEvent; readonly names: Names }) {
  const { type, accountId } = event;
  const words = (accountId === "" ? WITHOUT_ACCOUNT[type] : undefined) ?? EVENT_WORDS[type] ?? type;
  const parts = words
    .split(/(\{\w+\})/)
    .map((part) => (part.startsWith("{") ? toName(part.slice(1, -1), event, names) : part));
  return createElement(Fragment, null, ...parts);
}

function toName(what: string, { actorId, accountId, network, details }: SecurityEvent, names: Names): ReactNode {
  const account = <Name>{names.accounts.get(accountId) ?? accountId}</Name>;
  switch (what) {
    case "actor":
      // Events from the command line have no actor and no network.
      if (actorId === "") return network === "" ? "The command line" : "Unknown";
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
    case "member":
    case "from_account":
    case "to_account": {
      const id = details[what] ?? "";
      return <Name>{names.accounts.get(id) ?? id}</Name>;
    }
    default:
      return details[what] ?? "";
  }
}

function Name({ children }: { readonly children: string }) {
  return <bdi className="font-medium">{children}</bdi>;
}
