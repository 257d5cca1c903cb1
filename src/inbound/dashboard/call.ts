import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Actor } from "../../access/accounts.ts";
import { isId } from "../../access/checks.ts";
import { accountsWith, type Permission, permitsEverywhere, permitsIn } from "../../access/permissions.ts";
import { requireIn, type SignedIn } from "../../access/sessions.ts";
import { invalidField } from "../../core/failure.ts";
import { NO_CALLER } from "../../core/ledger.ts";
import type { OpenCall } from "../calls.ts";

/** A request to the dashboard that its policy allows. */
export interface ConsoleCall {
  readonly requestId: string;
  /** The caller's network, by `networkOf`. */
  readonly network: string;
  /** The browser, by `describeBrowser`. */
  readonly browser: string | undefined;
  /** Value of the session cookie, valid or not. */
  readonly sessionId: string | undefined;
  /** Value of the browser cookie, valid or not. */
  readonly browserToken: string | undefined;
  /** Whether a proxy forwarded it, trusted or not. */
  readonly isForwarded: boolean;
  readonly signedIn: SignedIn | undefined;
  /** Looks the caller up again, without counting as a use; undefined when the session or the key has ended. */
  readonly peek: () => Promise<SignedIn | undefined>;
  /** Arrival, by the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** The open call; its signal cancels the work. */
  readonly open: OpenCall;
}

/** Context key of the call for Connect's handlers. */
export const CALL = createContextKey<ConsoleCall | undefined>(undefined);

/** The call of a handler. */
export function callOf({ values }: Pick<HandlerContext, "values">): ConsoleCall {
  const call = values.get(CALL);
  if (call === undefined) throw new TypeError("a handler was called without a call");
  return call;
}

/** The signed-in account of a call whose policy requires one. */
export function signedInOf(context: Pick<HandlerContext, "values">): SignedIn {
  const { signedIn } = callOf(context);
  if (signedIn === undefined) throw new TypeError("the policy of this RPC lets anybody in");
  return signedIn;
}

/** The actor of a call, for the audit log. */
export function actorOf(context: Pick<HandlerContext, "values">): Actor {
  const { network, browser: client, signedIn } = callOf(context);
  const actor = { actorId: signedIn?.account.id, network, client };
  if (signedIn?.adminKey === undefined) return actor;
  const { id, permissions: scope } = signedIn.adminKey;
  return { ...actor, actor: { kind: "admin_key", id }, scope };
}

/** An ID in a filter; undefined when empty. Throws `invalid_request` for a text that is not an ID. */
function readId(field: string, text: string): string | undefined {
  if (text === "" || isId(text)) return text === "" ? undefined : text;
  throw invalidField(field, "is not a valid ID");
}

/** The key of a filter: an ID, or NO_CALLER for requests without a valid key; undefined when empty. Throws `invalid_request`. */
export function readKeyFilter(text: string): string | undefined {
  return text === NO_CALLER ? text : readId("filter.key_id", text);
}

/**
 * The account of a query that needs a permission: the one that is asked for; without one all (undefined) with the permission
 * everywhere, else the caller's own. Throws `permission_denied`.
 */
export function accountInView(signedIn: SignedIn, permission: Permission, asked: string): string | undefined {
  const id = readId("account_id", asked);
  if (id === undefined && permitsEverywhere(signedIn, permission)) return undefined;
  return accountToUse(signedIn, permission, asked);
}

/**
 * The accounts of a query that needs a permission: the one that is asked for; without one all in which the caller has the permission,
 * undefined where that is everywhere. Throws `permission_denied`.
 */
export function accountsInView(signedIn: SignedIn, permission: Permission, asked = ""): readonly string[] | undefined {
  return asked === "" ? accountsWith(signedIn, permission) : [accountToUse(signedIn, permission, asked)];
}

/** Returns the check that a stream may go on: whether the caller may still read this account, or all (undefined). */
export function mayStillRead(permission: Permission, accountId: string | undefined): (now: SignedIn) => boolean {
  return (now) =>
    accountId === undefined ? permitsEverywhere(now, permission) : permitsIn(now, permission, accountId);
}

/** The account that is asked for, or the caller's own. Throws `permission_denied` without the permission there. */
export function accountToUse(signedIn: SignedIn, permission: Permission, asked: string): string {
  const id = readId("account_id", asked) ?? signedIn.account.id;
  requireIn(signedIn, permission, id);
  return id;
}
