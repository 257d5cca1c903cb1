import { Failure, invalidField } from "../../core/failure.ts";
import type { AccountRecord } from "../account-store.ts";
import type { AccessContext, Origin } from "../context.ts";
import type { Attempt } from "../throttle.ts";
import type { TotpRecord } from "./factor-store.ts";
import { originOf } from "./own-factors.ts";
import { compactCode, hashRecoveryCode } from "./recovery-codes.ts";
import { stepOf } from "./totp.ts";

const MAX_CODE_CHARS = 64;
const WRONG = "wrong, or used already; wait for the next code of the app";
const UNDECRYPTED =
  "cannot be checked, because the server's encryption key has changed; enter a recovery code, or tell an administrator";

/** The second step of a sign-in whose password was right. */
export interface SecondStep {
  readonly account: AccountRecord;
  /** Code of the authenticator app, or a recovery code; empty without one. */
  readonly code: string;
  /** Attempt that is withdrawn when no code was tried, or none can be checked; it stays counted as failed when the code is wrong. */
  readonly attempt: Pick<Attempt, "withdraw">;
}

/**
 * Checks the code of an account that has an authenticator app, and uses it up. Returns false for an account that has none. Throws
 * `unauthenticated` with the detail `second_factor_required` without a code, `invalid_request` for one that is wrong or cannot be checked, `permission_denied`
 * for an account that has only passkeys where a second factor is required.
 */
export async function checkSecondFactor(
  context: AccessContext,
  { account, code, attempt }: SecondStep,
  origin: Origin,
): Promise<boolean> {
  const { store, signIn, log } = context;
  const totp = await store.findTotp(account.id);
  if (totp === undefined) {
    if (signIn.secondFactor === "optional" || (await store.listPasskeys(account.id)).length === 0) return false;
    await attempt.withdraw();
    throw new Failure(
      "permission_denied",
      "A password alone is not enough here: sign in with a passkey. If you have lost it, ask an administrator to reset your second factors.",
    );
  }
  if (code === "") {
    await attempt.withdraw();
    throw new Failure("unauthenticated", "Enter the code of your authenticator app, or a recovery code.", {
      detail: "second_factor_required",
    });
  }
  const isRight = await useCode(context, { account, totp, code }, origin);
  if (isRight === true) return true;
  if (isRight === undefined) await attempt.withdraw();
  const { network, browser: client } = origin;
  const details = isRight === undefined ? { reason: "the secret cannot be decrypted" } : {};
  await log.record({ action: "second_factor_failed", accountId: account.id, network, client, details });
  throw invalidField("code", isRight === undefined ? UNDECRYPTED : WRONG);
}

/** Undefined for a code of an app whose secret cannot be decrypted. */
async function useCode(
  { store, clock, factors, log }: AccessContext,
  { account, totp, code }: { readonly account: AccountRecord; readonly totp: TotpRecord; readonly code: string },
  origin: Origin,
): Promise<boolean | undefined> {
  const { id } = account;
  const compact = compactCode(code.slice(0, MAX_CODE_CHARS));
  if (/^\d{6}$/.test(compact)) {
    const secret = factors.open(totp.sealed, id);
    if (secret === undefined) return undefined;
    const step = await stepOf(secret, compact, clock.now());
    return step !== undefined && store.useTotpStep(id, step);
  }
  if (!(await store.useRecoveryCode(id, hashRecoveryCode(id, compact)))) return false;
  const details = { left: String(await store.countRecoveryCodes(id)) };
  await log.record({ action: "recovery_code_used", ...originOf({ account }, origin), details });
  return true;
}
