import { Failure, invalidField } from "../../core/failure.ts";
import type { NewEntry } from "../audit-log.ts";
import type { AccessContext, Origin } from "../context.ts";
import { isSecondFactorDue, type SignedIn } from "../sessions.ts";
import { signsInHere } from "../sign-in-rules.ts";
import type { FactorSession, PasskeyRecord, TotpRecord } from "./factor-store.ts";

/**
 * Whether the account can have second factors in Parley: not one that signs in at the OpenID provider, which asks for its
 * own.
 */
export function hasOwnFactors({ signIn }: Pick<AccessContext, "signIn">, { account, session }: SignedIn): boolean {
  return session.method !== "oidc" && signsInHere(signIn, account.email ?? "");
}

/** Returns the signed-in account. Throws `permission_denied` for one that cannot have factors. */
export function requireOwnFactors(context: Pick<AccessContext, "signIn">, signedIn: SignedIn): SignedIn {
  if (hasOwnFactors(context, signedIn)) return signedIn;
  const provider = context.signIn.provider?.name ?? "the provider";
  throw new Failure("permission_denied", `You sign in with ${provider}, which asks for second factors itself.`);
}

/** The session in which a factor is set up. */
export function factorSessionOf({ signIn }: Pick<AccessContext, "signIn">, signedIn: SignedIn): FactorSession {
  return { hash: signedIn.session.hash, setsUpFirst: isSecondFactorDue(signedIn, signIn) };
}

/** The failure for a factor that is set up in a session that has ended meanwhile. */
export function sessionEnded(): Failure {
  return new Failure(
    "unauthenticated",
    "Your session has ended: a second factor was set up in another one. Sign in again.",
  );
}

/** The failure for the removal of the last factor where one is required. */
export function lastFactor(field: string): Failure {
  return invalidField(field, "a second factor is required here: add another one before you remove the last");
}

/** Actor and origin of a change of the own account, for the audit log. */
export function originOf(
  { account: { id } }: Pick<SignedIn, "account">,
  { network, browser: client }: Origin,
): Pick<NewEntry, "actorId" | "accountId" | "network" | "client"> {
  return { actorId: id, accountId: id, network, client };
}

/** The factors of an account. */
export interface OwnFactors {
  readonly passkeys: readonly PasskeyRecord[];
  readonly totp: TotpRecord | undefined;
  readonly recoveryCodes: number;
}

export async function listFactors({ store }: Pick<AccessContext, "store">, accountId: string): Promise<OwnFactors> {
  return {
    passkeys: await store.listPasskeys(accountId),
    totp: await store.findTotp(accountId),
    recoveryCodes: await store.countRecoveryCodes(accountId),
  };
}
