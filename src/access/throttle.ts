import { hash } from "node:crypto";
import { Failure } from "../core/failure.ts";
import type { Clock } from "../core/clock.ts";
import type { ThrottleState, ThrottleStore } from "./account-store.ts";

/** The failure from which on the next attempt has to wait: 1 s, then twice as long each time. */
const FIRST_WAIT = {
  /** At one account from one network. */
  network: 5,
  /** At one account from everywhere but known browsers and sessions: bounds what many networks can guess together. */
  account: 50,
  /** In one known browser or session. */
  known: 10,
} as const;
const LONGEST_WAIT_MS = 900_000;
/** Failures are forgotten when none followed for this long. */
const FORGET_MS = 24 * 60 * 60 * 1000;

const WINDOW_MS = 60_000;
/** Attempts of a network in one minute that are answered exactly; later ones that fail are told to wait. */
const NETWORK_FAILURES = 20;
/** Attempts of a network in one minute whose password is looked at: each costs about 0.1 s of one core. */
const NETWORK_ATTEMPTS = 120;
const NETWORK_SIGN_UPS = 20;

/** Who gives a password: an unknown browser in a network, or one that has proven before that it belongs to the account. */
export type Guesser =
  | { readonly kind: "unknown"; readonly network: string | undefined }
  | { readonly kind: "browser" | "session"; readonly hash: string };

/** A password that is about to be checked. */
export interface Attempt {
  /**
   * Whether the right password counts. False for a network that has failed at too many accounts within a minute: the password
   * is then compared with nothing, so that the answer comes as late as any other.
   */
  readonly counts: boolean;
  /** What to refuse a wrong password with, in place of calling it wrong. Does not depend on whether the account exists. */
  readonly refusal: Failure | undefined;
  /** The password was right. */
  succeeded(): Promise<void>;
}

/**
 * Slows down guesses of passwords. An attempt counts before its password is looked at, so that many at once are as slow as one
 * after another. Answers and waits are the same for addresses with and without an account.
 */
export interface Throttle {
  /** Counts a sign-up. Throws `rate_limited` from the 21st of a minute and network on. */
  enterSignUp(network: string): Promise<void>;
  /**
   * Counts an attempt, as failed until its `succeeded` says otherwise. Throws `rate_limited` while this guesser has to wait.
   * Known browsers and sessions have a count of their own, which nobody else can use up.
   */
  attempt(email: string, guesser: Guesser, hasAccount: boolean): Promise<Attempt>;
  /** Forgets all failures at one account. */
  forget(email: string): Promise<void>;
}

/** A throttle whose state all processes on the same store share. */
export function createThrottle(store: ThrottleStore, clock: Clock): Throttle {
  /** Counts one failure. Throws `rate_limited` while the subject has to wait. */
  const countAt = async (subject: string, firstWait: number): Promise<void> => {
    const nowMs = clock.now();
    let refusedMs = 0;
    await store.update(subject, (state) => {
      refusedMs = Math.max((state?.blockedUntilMs ?? 0) - nowMs, 0);
      return state !== undefined && refusedMs > 0 ? state : countFailure(state, { nowMs, firstWait });
    });
    if (refusedMs > 0) throw tooMany(refusedMs);
  };
  /** Adds to the count of the present minute. */
  const countInWindow = async (subject: string, by: number): Promise<{ count: number; leftMs: number }> => {
    const nowMs = clock.now();
    const { count, changedAtMs } = await store.update(subject, (state) => addInWindow(state, { nowMs, by }));
    return { count, leftMs: changedAtMs + WINDOW_MS - nowMs };
  };

  const attemptUnknown = async (email: string, network = "none", hasAccount: boolean): Promise<Attempt> => {
    const all = await countInWindow(`network:${network}`, 1);
    if (all.count > NETWORK_ATTEMPTS) throw tooMany(all.leftMs);
    const account = subjectOf(email);
    const own = `${account}/${network}`;
    await countAt(own, FIRST_WAIT.network);
    try {
      await countAt(account, FIRST_WAIT.account);
    } catch (refusal) {
      // Others have used up the account's count; this network has not failed.
      await store.update(own, (state) => takeBack(state, clock.now()));
      throw refusal;
    }
    // Written for unknown addresses too, so that the work is the same.
    const atAccounts = await countInWindow(`accounts-of:${network}`, hasAccount ? 1 : 0);
    return {
      counts: atAccounts.count <= NETWORK_FAILURES,
      refusal: all.count > NETWORK_FAILURES ? tooMany(all.leftMs) : undefined,
      async succeeded() {
        await store.remove(own);
        await store.update(account, (state) => takeBack(state, clock.now()));
        await countInWindow(`network:${network}`, -1);
        await countInWindow(`accounts-of:${network}`, -1);
      },
    };
  };

  return {
    async enterSignUp(network) {
      const { count, leftMs } = await countInWindow(`sign-up:${network}`, 1);
      if (count > NETWORK_SIGN_UPS) throw tooMany(leftMs);
    },
    async attempt(email, guesser, hasAccount) {
      if (guesser.kind === "unknown") return attemptUnknown(email, guesser.network, hasAccount);
      const own = `${subjectOf(email)}/${guesser.kind}:${guesser.hash}`;
      await countAt(own, FIRST_WAIT.known);
      return { counts: true, refusal: undefined, succeeded: () => store.remove(own) };
    },
    forget: (email) => store.remove(subjectOf(email)),
  };
}

/** Subjects hold the hash of an address: all have the same length, and the table does not show who signs in. */
function subjectOf(email: string): string {
  return `account:${hash("sha256", email, "hex")}`;
}

function countFailure(
  state: ThrottleState | undefined,
  { nowMs, firstWait }: { readonly nowMs: number; readonly firstWait: number },
): ThrottleState {
  const isOld = state === undefined || nowMs - state.changedAtMs >= FORGET_MS;
  const count = isOld ? 1 : state.count + 1;
  const waitMs = count < firstWait ? 0 : Math.min(1000 * 2 ** (count - firstWait), LONGEST_WAIT_MS);
  return { count, blockedUntilMs: nowMs + waitMs, changedAtMs: nowMs };
}

/** Undoes the count of an attempt that turned out right. Failures before it stay. */
function takeBack(state: ThrottleState | undefined, nowMs: number): ThrottleState {
  return { count: Math.max((state?.count ?? 0) - 1, 0), blockedUntilMs: 0, changedAtMs: state?.changedAtMs ?? nowMs };
}

/** Windows are minutes of the clock, the same for all subjects: `changedAtMs` is the beginning of the minute. */
function addInWindow(
  state: ThrottleState | undefined,
  { nowMs, by }: { readonly nowMs: number; readonly by: number },
): ThrottleState {
  const changedAtMs = nowMs - (nowMs % WINDOW_MS);
  const before = state?.changedAtMs === changedAtMs ? state.count : 0;
  return { count: Math.max(before + by, 0), blockedUntilMs: 0, changedAtMs };
}

function tooMany(waitMs: number): Failure {
  const seconds = Math.max(Math.ceil(waitMs / 1000), 1);
  return new Failure("rate_limited", `Too many attempts. Try again in ${seconds} s.`, {
    retryAfterMs: Math.max(waitMs, 1),
  });
}
