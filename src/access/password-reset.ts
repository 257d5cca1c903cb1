import { Failure, invalidField } from "../core/failure.ts";
import { toEmail } from "./address.ts";
import type { AccountRecord } from "./account-store.ts";
import type { AccessContext, Origin } from "./context.ts";
import { placeOf, recognizeBrowser } from "./known-browsers.ts";
import { setPassword } from "./password-change.ts";
import { checkPassword, toPassword } from "./password-rules.ts";
import { generateToken, hashToken, isToken } from "./secret-token.ts";
import { requirePasswordSignIn, signsInHere } from "./sign-in-rules.ts";

const LIFETIME_MS = 60 * 60_000;
/** Limit of links that are made and sent at the same time. */
const MAX_SENDING = 32;

/** Whether links for new passwords can be sent. */
export function areResetsOffered({ signIn, resetMail }: Pick<AccessContext, "signIn" | "resetMail">): boolean {
  return signIn.password && resetMail() !== undefined;
}

/** Sends links for new passwords after the response: its time must not show whether an account exists. */
export class PasswordResets {
  readonly #context: AccessContext;
  #sending = 0;

  constructor(context: AccessContext) {
    this.#context = context;
  }

  /**
   * Begins to send a link to an address, if it is of an account with a password. Throws `permission_denied` for an address that signs in at the
   * provider, and where no e-mail is sent; `rate_limited` after too many, `overloaded` while too many are sent: the same for all addresses.
   */
  async request(text: string, origin: Origin): Promise<void> {
    const { signIn, resetMail, signInQueue, throttle } = this.#context;
    const email = toEmail(text);
    requirePasswordSignIn(signIn, email);
    if (resetMail() === undefined)
      throw new Failure("permission_denied", "Parley sends no e-mail here. Ask an administrator for a new password.");
    const { network = "none", browserToken } = origin;
    const { turn } = placeOf(await recognizeBrowser(this.#context, browserToken), network);
    await signInQueue.take(turn, () => throttle.enterReset(turn, email));
    if (this.#sending >= MAX_SENDING)
      throw new Failure("overloaded", "Too many e-mails are being sent. Try again shortly.", {
        unavailable: "busy",
        retryAfterMs: 5_000,
      });
    this.#sending += 1;
    // Its failures are in the process's log.
    void this.#send(email, origin)
      .catch(() => undefined)
      .finally(() => (this.#sending -= 1));
  }

  async #send(email: string, { network, browser: client }: Origin): Promise<void> {
    const { store, clock, log, resetMail } = this.#context;
    const account = await store.findByEmail(email);
    if (account === undefined || !hasPassword(this.#context, account)) return;
    const token = generateToken();
    const nowMs = clock.now();
    await store.insertResetLink(
      { hash: hashToken(token), accountId: account.id, expiresAtMs: nowMs + LIFETIME_MS },
      nowMs,
    );
    await log.record({ action: "password_reset_requested", accountId: account.id, network, client });
    await resetMail()?.(email, token);
  }
}

/**
 * Sets a new password by a link: all sessions end. Where the new password alone signs in, the passkeys are removed: a person who had the account
 * before its mailbox's owner may have added them. Where a second factor is asked for, by the account's app or by `sign_in.second_factor`, all
 * factors stay, and so do the counts of wrong codes: a mailbox alone is not enough there. Throws `invalid_request` for a text that is no token, and for an invalid
 * password, with which the link stays valid; `unauthenticated` for any other token, `rate_limited` after too many.
 */
export async function resetByLink(
  context: AccessContext,
  { token, password: text }: { readonly token: string; readonly password: string },
  origin: Origin,
): Promise<void> {
  const { store, clock, log, throttle, signInQueue, signIn } = context;
  if (!isToken(token)) throw invalidField("token", "is not complete; open the whole link");
  const password = toPassword(text, "new_password");
  const { network = "none", browser: client, browserToken } = origin;
  const { turn } = placeOf(await recognizeBrowser(context, browserToken), network);
  await signInQueue.take(turn, () => throttle.enterSignUp(turn));
  const hash = hashToken(token);
  const link = await store.findResetLink(hash, clock.now());
  const account = link && (await store.find(link.accountId));
  if (account === undefined || !hasPassword(context, account)) throw notValid();
  const { id, email } = account;
  checkPassword(password, email, "new_password");
  if (!(await store.takeResetLink(hash))) throw notValid();
  // Changed meanwhile, for example by an operator who locks an intruder with access to the mailbox out.
  if ((await setPassword(context, account, { password, replaces: account.passwordHash })) === undefined)
    throw notValid();
  const asksForCode = (await store.findTotp(id)) !== undefined;
  // Ends sessions too: a simultaneous sign-in by a passkey ends its own when the passkey is gone.
  const passkeys = asksForCode || signIn.secondFactor === "required" ? 0 : await store.removePasskeys(id);
  if (!asksForCode) await throttle.forget(email);
  await log.record({
    action: "password_reset",
    actorId: id,
    accountId: id,
    network: origin.network,
    client,
    details: { method: "link", ...(passkeys > 0 && { passkeys_removed: String(passkeys) }) },
  });
}

/** Whether an account signs in with a password: not one that signs in at the provider, and not a disabled one. */
function hasPassword(
  { signIn }: Pick<AccessContext, "signIn">,
  account: AccountRecord,
): account is AccountRecord & { readonly email: string } {
  const { email, passwordHash, disabledAtMs } = account;
  return email !== undefined && passwordHash !== undefined && disabledAtMs === undefined && signsInHere(signIn, email);
}

function notValid(): Failure {
  return new Failure(
    "unauthenticated",
    "This link is not valid: it was used already, or has expired. Ask for a new one on the sign-in page.",
  );
}
