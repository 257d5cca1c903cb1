import { createContextKey, type HandlerContext } from "@connectrpc/connect";
import type { Actor } from "../../access/accounts.ts";
import { isId } from "../../access/checks.ts";
import type { SignedIn } from "../../access/sessions.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import type { OpenCall } from "../calls.ts";

/** One request to the console that its policy has let through. */
export interface ConsoleCall {
  readonly requestId: string;
  /** The caller's, as `networkOf` says it. */
  readonly network: string;
  /** As `describeBrowser` says it. */
  readonly browser: string | undefined;
  /** What the session cookie holds, valid or not. */
  readonly sessionId: string | undefined;
  /** What the browser cookie holds, valid or not. */
  readonly browserToken: string | undefined;
  /** Whether a proxy has forwarded it, trusted or not. */
  readonly isForwarded: boolean;
  readonly signedIn: SignedIn | undefined;
  /** When the request arrived, by the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** The call under way: its signal ends what is done for it. */
  readonly open: OpenCall;
}

/** The call on its way through Connect's handlers. */
export const CALL = createContextKey<ConsoleCall | undefined>(undefined);

/** The call that a handler answers. */
export function callOf({ values }: Pick<HandlerContext, "values">): ConsoleCall {
  const call = values.get(CALL);
  if (call === undefined) throw new TypeError("a handler was called without a call");
  return call;
}

/** Who is signed in, where the policy asks for somebody. */
export function signedInOf(context: Pick<HandlerContext, "values">): SignedIn {
  const { signedIn } = callOf(context);
  if (signedIn === undefined) throw new TypeError("the policy of this RPC lets anybody in");
  return signedIn;
}

/** Who does something and from where, for the security log. */
export function actorOf(context: Pick<HandlerContext, "values">): Actor {
  const { network, signedIn } = callOf(context);
  return { actorId: signedIn?.account.id, network };
}

/** An ID that narrows a question down; undefined when it is left out. Throws `invalid_request` for a text that cannot be one. */
export function readId(field: string, text: string): string | undefined {
  if (text === "" || isId(text)) return text === "" ? undefined : text;
  throw invalidField(field, "is not a valid ID");
}

/**
 * The account that a question is about: administrators may ask about one or about all (undefined), members about their own.
 * Throws `permission_denied`.
 */
export function accountInView({ account }: SignedIn, asked: string): string | undefined {
  if (account.role === "administrator") return readId("account_id", asked);
  if (asked === "" || asked === account.id) return account.id;
  throw new Failure("permission_denied", "Only administrators can access other accounts.");
}
