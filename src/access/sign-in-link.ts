import { Failure, invalidField } from "../core/failure.ts";
import type { AccountRecord } from "./account-store.ts";
import type { AccessContext, Origin } from "./context.ts";
import { placeOf, recognizeBrowser } from "./known-browsers.ts";
import { generateToken, hashToken, isToken } from "./secret-token.ts";
import { type StartedSession, startSession } from "./sessions.ts";

const LIFETIME_MS = 10 * 60_000;

/** Makes a token that signs its holder in once, within ten minutes. Throws `invalid_request` for an account without sign-in. */
export async function createSignInLink(
  { store, clock, log }: Pick<AccessContext, "store" | "clock" | "log">,
  { id, email, disabledAtMs }: AccountRecord,
): Promise<string> {
  if (email === undefined) throw invalidField("id", `account ${id} has no e-mail address, so sign-in is not possible`);
  if (disabledAtMs !== undefined) throw invalidField("id", `account ${id} is disabled`);
  const token = generateToken();
  const nowMs = clock.now();
  await store.insertSignInLink({ hash: hashToken(token), accountId: id, expiresAtMs: nowMs + LIFETIME_MS }, nowMs);
  await log.record({ action: "sign_in_link_created", accountId: id });
  return token;
}

/**
 * Starts a session by a token of `createSignInLink`. Throws `invalid_request` for a text that is none, `unauthenticated` for any other,
 * `rate_limited` after too many.
 */
export async function signInByLink(context: AccessContext, token: string, origin: Origin): Promise<StartedSession> {
  const { store, clock, log, throttle, signInQueue } = context;
  // Checked before the throttle, so that incomplete links do not use up attempts.
  if (!isToken(token)) throw invalidField("token", "is not complete; open the whole link");
  const { turn } = placeOf(await recognizeBrowser(context, origin.browserToken), origin.network ?? "none");
  await signInQueue.take(turn, () => throttle.enterSignUp(turn));
  const link = await store.takeSignInLink(hashToken(token), clock.now());
  const account = link && (await store.find(link.accountId));
  if (account === undefined || account.disabledAtMs !== undefined)
    throw new Failure(
      "unauthenticated",
      "This link is not valid: it was used already, or has expired. Make a new one.",
    );
  const started = await startSession(context, account, { ...origin, method: "link" });
  const { id } = account;
  await log.record({
    action: "signed_in",
    actorId: id,
    accountId: id,
    network: origin.network,
    client: origin.browser,
    details: { method: "link" },
  });
  return started;
}
