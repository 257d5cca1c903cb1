import type { AccessContext } from "./context.ts";
import { generateToken, hashToken, isToken } from "./secret-token.ts";
import type { Guesser } from "./throttle.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
/** How long a browser stays known after the latest sign-in with it. */
export const BROWSER_KNOWN_MS = 180 * DAY_MS;
/** Limit per account, which bounds the table; the browser with the oldest sign-in is removed first. */
const MOST_PER_ACCOUNT = 20;

/** A browser identified by the token in its cookie. */
export interface Recognized {
  /** Hash of the token; undefined without a valid one. */
  readonly hash: string | undefined;
  readonly accountIds: readonly string[];
}

/** Looks up the accounts that have signed in with a browser. The same work for any account, known or not. */
export async function recognizeBrowser(
  { store }: Pick<AccessContext, "store">,
  token: string | undefined,
): Promise<Recognized> {
  if (token === undefined || !isToken(token)) return { hash: undefined, accountIds: [] };
  const hash = hashToken(token);
  return { hash, accountIds: await store.accountsOfBrowser(hash) };
}

/**
 * The queue of a sign-in, and the counter of failures when it has no e-mail address. A known browser has its own queue and
 * counter, which other callers of its network cannot use up. Only a stored token makes a browser known, because a client can
 * invent tokens.
 */
export function placeOf<N extends string | undefined>(
  { hash, accountIds }: Recognized,
  network: N,
): { readonly turn: N | string; readonly guesser: Guesser } {
  if (hash === undefined || accountIds.length === 0) return { turn: network, guesser: { kind: "unknown", network } };
  return { turn: `browser:${hash}`, guesser: { kind: "browser", hash } };
}

/**
 * Makes a browser known after a sign-in. Answers the new token for its cookie: each sign-in replaces the token, so that one
 * planted by an attacker becomes worthless.
 */
export async function rememberBrowser(
  { store, clock }: Pick<AccessContext, "store" | "clock">,
  accountId: string,
  formerToken: string | undefined,
): Promise<string> {
  const token = generateToken();
  const formerHash = formerToken !== undefined && isToken(formerToken) ? hashToken(formerToken) : undefined;
  const browser = { hash: hashToken(token), accountId, signedInAtMs: clock.now() };
  await store.keepBrowser(browser, { formerHash, most: MOST_PER_ACCOUNT });
  return token;
}
