import { invalidField } from "../../core/failure.ts";
import type { AccessContext, Origin } from "../context.ts";
import type { SignedIn } from "../sessions.ts";
import { factorSessionOf, lastFactor, originOf, requireOwnFactors, sessionEnded } from "./own-factors.ts";
import { generateRecoveryCodes, hashRecoveryCode } from "./recovery-codes.ts";

/** The values of RFC 6238 that all apps know. */
const PERIOD_MS = 30_000;
const DIGITS = 6;
/** Time steps before and after the present one whose codes are accepted: clocks of phones differ, and typing takes time. */
const WINDOW = 1;
/** Time within which a new secret has to be confirmed. */
const ENROLMENT_MS = 10 * 60_000;

/** A secret that is not confirmed yet. */
export interface TotpEnrolment {
  /** In base32. */
  readonly secret: string;
  /** `otpauth://totp/…`. */
  readonly uri: string;
  /** The encrypted secret and the time of its end. */
  readonly enrolment: string;
}

/** Makes a secret, which is not stored. Throws `invalid_request` for an account that has one, and where none can be encrypted. */
export async function beginTotp(context: AccessContext, signedIn: SignedIn): Promise<TotpEnrolment> {
  const { account } = requireOwnFactors(context, signedIn);
  const { factors, store, clock } = context;
  const problem = factors.sealProblem();
  if (problem !== undefined) throw invalidField("enrolment", problem);
  if ((await store.findTotp(account.id)) !== undefined) throw isOn();
  const { Secret, TOTP } = await library();
  const secret = new Secret({ size: 20 });
  const { base32 } = secret;
  return {
    secret: base32,
    uri: new TOTP({ issuer: "Parley", label: account.email ?? account.id, secret }).toString(),
    enrolment: factors.seal(`${clock.now() + ENROLMENT_MS} ${base32}`, account.id),
  };
}

/**
 * Turns the app on. Returns its recovery codes. All other sessions end. Throws `invalid_request`; `unauthenticated` for a session that has
 * ended meanwhile.
 */
export async function confirmTotp(
  context: AccessContext,
  { signedIn, enrolment, code }: { readonly signedIn: SignedIn; readonly enrolment: string; readonly code: string },
  origin: Origin,
): Promise<readonly string[]> {
  const { account } = requireOwnFactors(context, signedIn);
  const { factors, store, clock, log } = context;
  const nowMs = clock.now();
  const [end, secret] = factors.open(enrolment.slice(0, 1_000), account.id)?.split(" ") ?? [];
  if (secret === undefined || nowMs >= Number(end)) throw invalidField("enrolment", "has expired; begin again");
  const lastStep = await stepOf(secret, code.replaceAll(/\s/g, ""), nowMs);
  if (lastStep === undefined)
    throw invalidField("code", "is not the code of this secret now; check the clock of your device");
  const codes = generateRecoveryCodes();
  const codeHashes = codes.map((each) => hashRecoveryCode(account.id, each));
  const totp = { sealed: factors.seal(secret, account.id), lastStep, createdAtMs: nowMs, codeHashes };
  const added = await store.insertTotp(account.id, totp, factorSessionOf(context, signedIn));
  if (added === "taken") throw isOn();
  if (added === "session ended") throw sessionEnded();
  await log.record({ action: "totp_enabled", ...originOf(signedIn, origin) });
  return codes;
}

/** Turns the app off, and removes the recovery codes. Throws `invalid_request` without one, and for the last factor where one is required. */
export async function removeTotp(context: AccessContext, signedIn: SignedIn, origin: Origin): Promise<void> {
  const { store, log, signIn } = context;
  const removed = await store.removeTotp(signedIn.account.id, { keepsLast: signIn.secondFactor === "required" });
  if (removed === "unknown") throw isOff();
  if (removed === "last") throw lastFactor("totp");
  await log.record({ action: "totp_disabled", ...originOf(signedIn, origin) });
}

/** Replaces the recovery codes. Throws `invalid_request` without an app. */
export async function renewRecoveryCodes(
  { store, log }: AccessContext,
  signedIn: SignedIn,
  origin: Origin,
): Promise<readonly string[]> {
  const { id } = signedIn.account;
  if ((await store.findTotp(id)) === undefined) throw isOff();
  const codes = generateRecoveryCodes();
  await store.setRecoveryCodes(
    id,
    codes.map((code) => hashRecoveryCode(id, code)),
  );
  await log.record({ action: "recovery_codes_renewed", ...originOf(signedIn, origin) });
  return codes;
}

/** The time step of a code, near the present one; undefined for a wrong code. */
export async function stepOf(secret: string, code: string, nowMs: number): Promise<number | undefined> {
  const { Secret, TOTP } = await library();
  const delta = TOTP.validate({
    token: code,
    secret: Secret.fromBase32(secret),
    digits: DIGITS,
    period: PERIOD_MS / 1000,
    timestamp: nowMs,
    window: WINDOW,
  });
  return delta === null ? undefined : Math.floor(nowMs / PERIOD_MS) + delta;
}

/** Imported on demand: few processes ever need it. */
function library() {
  return import("otpauth");
}

function isOn(): Error {
  return invalidField("enrolment", "there is an authenticator app already: turn it off first");
}

function isOff(): Error {
  return invalidField("totp", "there is no authenticator app");
}
