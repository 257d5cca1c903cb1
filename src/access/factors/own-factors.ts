import { Failure, invalidField } from "../../core/failure.ts";
import type { NewEntry } from "../audit-log.ts";
import type { AccessContext, Origin } from "../context.ts";
import type { SignedIn } from "../sessions.ts";
import { signsInHere } from "../sign-in-rules.ts";
import type { PasskeyRecord, TotpRecord } from "./factor-store.ts";

/** Whether somebody can have factors here: not who signs in at the OpenID provider, which asks for its own. */
export function hasOwnFactors({ signIn }: Pick<AccessContext, "signIn">, { account, session }: SignedIn): boolean {
  return session.method !== "oidc" && signsInHere(signIn, account.email ?? "");
}

/** Returns who is signed in. Throws `permission_denied` for somebody who cannot have factors here. */
export function requireOwnFactors(context: Pick<AccessContext, "signIn">, signedIn: SignedIn): SignedIn {
  if (hasOwnFactors(context, signedIn)) return signedIn;
  const provider = context.signIn.provider?.name ?? "the provider";
  throw new Failure("permission_denied", `You sign in with ${provider}, which asks for second factors itself.`);
}

/** Throws `invalid_request` for the removal of the last factor where one is required. */
export function requireRemaining({ signIn }: Pick<AccessContext, "signIn">, field: string): void {
  if (signIn.secondFactor === "optional") return;
  throw invalidField(field, "a second factor is required here: add another one before you remove the last");
}

/** Who acts on the own account, and from where, for the audit log. */
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
