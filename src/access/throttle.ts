import { hash } from "node:crypto";
import { BoundedMap } from "../core/bounded-map.ts";
import { Failure } from "../core/failure.ts";
import type { Clock } from "../core/clock.ts";
import type { ThrottleState, ThrottleStore } from "./account-store.ts";

/** Number of the failure after which the next attempt has to wait: 1 s, then twice as long each time. */
const FIRST_WAIT = {
  /** Failures at one account from one network. */
  network: 5,
  /** Failures at one account from all unknown browsers: bounds what many networks can guess together. */
  account: 50,
  /** Failures in one known browser or session. */
  known: 10,
} as const;
const LONGEST_WAIT_MS = 900_000;
/** Failures are forgotten after this time without another. */
const FORGET_MS = 24 * 60 * 60 * 1000;

const WINDOW_MS = 60_000;
/** Attempts of a network in one minute that get exact answers; later failures get `rate_limited`. */
const NETWORK_FAILURES = 20;
/** Attempts of a network in one minute whose password is checked: each costs about 0.1 s of one core. */
const NETWORK_ATTEMPTS = 120;
/**
 * Attempts at one account in one minute whose password is checked, right ones too: those of unknown browsers together, more than may be
 * guessed from all networks, and those of known browsers and sessions. Also sign-ins with a passkey, and at the provider: each is some
 * durable commits.
 */
const ACCOUNT_ATTEMPTS = 60;
const NETWORK_SIGN_UPS = 20;
const NETWORK_RESETS = 20;
const HOUR_MS = 60 * WINDOW_MS;
/** Links for a new password that an address gets in one hour. */
const ADDRESS_RESETS = 3;

/** Difference of the clocks of two processes for which their windows are the same. */
const MAX_AHEAD_MS = HOUR_MS;

/** Limit of full windows in this process's memory, whose further attempts are refused without a write to the database. */
const MAX_FULL_WINDOWS = 10_000;

/** Origin of an attempt to sign in: an unknown browser in a network, or a browser or session known for the account. */
export type Guesser = { readonly kind: "unknown"; readonly network: string | undefined } | Known;

interface Known {
  readonly kind: "browser" | "session";
  readonly hash: string;
}

/** A counted attempt whose password is to be checked. */
export interface Attempt {
  /**
   * Whether the right password counts. False for a network that has failed at too many accounts within a minute: the
   * password is then compared with a dummy hash, so that the answer takes as long as any other.
   */
  readonly counts: boolean;
  /** Failure for a wrong password in place of "wrong password". Does not depend on whether the account exists. */
  readonly refusal: Failure | undefined;
  /** To be called when the password was right. */
  succeeded(): Promise<void>;
  /** To be called when nothing was guessed: takes the count of this attempt back, and leaves earlier failures. */
  withdraw(): Promise<void>;
}

/**
 * Slows down password guessing. An attempt is counted before its password is checked, so that simultaneous attempts are as
 * slow as successive ones. Answers and waits are the same for addresses with and without an account.
 */
export interface Throttle {
  /** Counts a sign-up, or the use of a link. Throws `rate_limited` from the 21st in a minute of a network, or a known browser, on. */
  enterSignUp(from: string): Promise<void>;
  /**
   * Counts an attempt as failed until its `succeeded` is called. Throws `rate_limited` while this guesser has to wait, and from the 61st
   * attempt at the account in a minute on, right ones included. Known browsers and sessions have counts of their own, which others cannot
   * use up.
   */
  attempt(email: string, guesser: Guesser, hasAccount: boolean): Promise<Attempt>;
  /**
   * Counts a sign-in at the provider, or with a passkey, as failed until its `succeeded` is called. Throws `rate_limited` from the 21st
   * failure in a minute on of a network's unknown browsers, of a known browser, or of a session.
   */
  enter(method: "provider" | "passkey", guesser: Guesser): Promise<Pick<Attempt, "succeeded">>;
  /** Counts a sign-in of an account that was right. Throws `rate_limited` from the 61st in a minute on. */
  enterSignIn(method: "provider" | "passkey", accountId: string): Promise<void>;
  /**
   * Counts a request for a new password. Throws `rate_limited` from the 21st in a minute of a network, or a known browser, on, and from an
   * address's fourth in an hour on, with an account or without.
   */
  enterReset(from: string, email: string): Promise<void>;
  /** Forgets all failures at one account. */
  forget(email: string): Promise<void>;
}

/** Creates a throttle whose state is shared by all processes on the same store. */
export function createThrottle(store: ThrottleStore, clock: Clock): Throttle {
  /** Counts one failure. Throws `rate_limited` while the subject has to wait. */
  const countAt = async (subject: string, firstWait: number): Promise<void> => {
    const nowMs = clock.now();
    let refusedMs = 0;
    await store.update(subject, (state) => {
      refusedMs = waitOf(state, nowMs);
      return state !== undefined && refusedMs > 0 ? state : countFailure(state, { nowMs, firstWait });
    });
    if (refusedMs > 0) throw tooMany(refusedMs);
  };
  /** Ends of full windows by subject, by the clock's `monotonic`. */
  const full = new BoundedMap<string, number>(MAX_FULL_WINDOWS);
  /** Adds to the count of the current minute or hour. */
  const countInWindow = async (
    subject: string,
    by: number,
    windowMs = WINDOW_MS,
  ): Promise<{ count: number; leftMs: number }> => {
    const nowMs = clock.now();
    const { count, changedAtMs } = await store.update(subject, (state) => addInWindow(state, { nowMs, by, windowMs }));
    return { count, leftMs: changedAtMs + windowMs - nowMs };
  };
  /** Throws `rate_limited` for a window that this process knows to be full. */
  const requireRoom = (subject: string): void => {
    const waitMs = (full.get(subject) ?? -Infinity) - clock.monotonic();
    if (waitMs > 0) throw tooMany(waitMs);
  };
  /**
   * Counts an attempt in a window and returns the count. Throws `rate_limited` beyond `most`; the first time after a
   * database write, then from memory.
   */
  const enterWindow = async (
    subject: string,
    most: number,
    windowMs = WINDOW_MS,
  ): Promise<{ count: number; leftMs: number }> => {
    requireRoom(subject);
    const atMs = clock.monotonic();
    const counted = await countInWindow(subject, 1, windowMs);
    if (counted.count <= most) return counted;
    full.set(subject, atMs + counted.leftMs);
    throw tooMany(counted.leftMs);
  };
  /** Takes the count of an attempt back, which makes room in its window. */
  const leaveWindow = async (subject: string): Promise<void> => {
    await countInWindow(subject, -1);
    full.delete(subject);
  };

  const attemptUnknown = async (email: string, network = "none", hasAccount: boolean): Promise<Attempt> => {
    const all = await enterWindow(`network:${network}`, NETWORK_ATTEMPTS);
    const account = subjectOf(email);
    const own = `${account}/${network}`;
    await countAt(own, FIRST_WAIT.network);
    try {
      await countAt(account, FIRST_WAIT.account);
    } catch (refusal) {
      // Other networks have used up the account's count; this attempt is not counted as this network's failure.
      await store.update(own, (state) => takeBack(state, clock.now()));
      throw refusal;
    }
    // Written for unknown addresses too, so that the work is the same.
    const atAccounts = await countInWindow(`accounts-of:${network}`, hasAccount ? 1 : 0);
    const takeBackAtAll = async (): Promise<void> => {
      await store.update(account, (state) => takeBack(state, clock.now()));
      await leaveWindow(`network:${network}`);
      await countInWindow(`accounts-of:${network}`, -1);
    };
    return {
      counts: atAccounts.count <= NETWORK_FAILURES,
      refusal: all.count > NETWORK_FAILURES ? tooMany(all.leftMs) : undefined,
      async succeeded() {
        await store.remove(own);
        await takeBackAtAll();
      },
      async withdraw() {
        await store.update(own, (state) => takeBack(state, clock.now()));
        await takeBackAtAll();
      },
    };
  };

  const attemptKnown = async (email: string, { kind, hash: known }: Known): Promise<Attempt> => {
    const own = `${subjectOf(email)}/${kind}:${known}`;
    await countAt(own, FIRST_WAIT.known);
    return {
      counts: true,
      refusal: undefined,
      succeeded: () => store.remove(own),
      withdraw: async () => void (await store.update(own, (state) => takeBack(state, clock.now()))),
    };
  };

  return {
    async enterSignUp(from) {
      await enterWindow(`sign-up:${from}`, NETWORK_SIGN_UPS);
    },
    async enterReset(from, email) {
      await enterWindow(`reset:${from}`, NETWORK_RESETS);
      await enterWindow(`reset-of:${subjectOf(email)}`, ADDRESS_RESETS, HOUR_MS);
    },
    async enter(method, guesser) {
      const subject = `${method}:${guesser.kind === "unknown" ? guesser.network : `${guesser.kind}:${guesser.hash}`}`;
      await enterWindow(subject, NETWORK_FAILURES);
      return { succeeded: () => leaveWindow(subject) };
    },
    async enterSignIn(method, accountId) {
      await enterWindow(`${method}-of:${accountId}`, ACCOUNT_ATTEMPTS);
    },
    async attempt(email, guesser, hasAccount) {
      const isUnknown = guesser.kind === "unknown";
      const all = `${isUnknown ? "attempts" : "known-attempts"}:${subjectOf(email)}`;
      requireRoom(all);
      const attempt = await (isUnknown
        ? attemptUnknown(email, guesser.network, hasAccount)
        : attemptKnown(email, guesser));
      try {
        // After the counts of failures, so that strangers who have to wait do not use it up.
        await enterWindow(all, ACCOUNT_ATTEMPTS);
      } catch (refusal) {
        await attempt.withdraw();
        throw refusal;
      }
      return attempt;
    },
    forget: (email) => store.remove(subjectOf(email)),
  };
}

/**
 * Name of an account's subject. Holds a hash of the address: all names have the same length, and the table does not show who
 * signs in.
 */
function subjectOf(email: string): string {
  return `account:${hash("sha256", email, "hex")}`;
}

/** Time for which a subject has to wait. A longer one than any is from before the clock was set back. */
function waitOf(state: ThrottleState | undefined, nowMs: number): number {
  const waitMs = (state?.blockedUntilMs ?? 0) - nowMs;
  return waitMs > LONGEST_WAIT_MS ? 0 : Math.max(waitMs, 0);
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

/** Takes back the count of an attempt that turned out right. Earlier failures stay. */
function takeBack(state: ThrottleState | undefined, nowMs: number): ThrottleState {
  return { count: Math.max((state?.count ?? 0) - 1, 0), blockedUntilMs: 0, changedAtMs: state?.changedAtMs ?? nowMs };
}

/**
 * Adds to a window: a minute or an hour of the clock, the same for all subjects, whose beginning is `changedAtMs`. A later window of a
 * process whose clock is ahead goes on: two processes would otherwise begin anew with each other's attempts.
 */
function addInWindow(
  state: ThrottleState | undefined,
  { nowMs, by, windowMs }: { readonly nowMs: number; readonly by: number; readonly windowMs: number },
): ThrottleState {
  const ownMs = nowMs - (nowMs % windowMs);
  const aheadMs = (state?.changedAtMs ?? 0) - ownMs;
  const changedAtMs = aheadMs > 0 && aheadMs <= MAX_AHEAD_MS ? ownMs + aheadMs : ownMs;
  const before = state?.changedAtMs === changedAtMs ? state.count : 0;
  return { count: Math.max(before + by, 0), blockedUntilMs: 0, changedAtMs };
}

function tooMany(waitMs: number): Failure {
  const seconds = Math.max(Math.ceil(waitMs / 1000), 1);
  return new Failure("rate_limited", `Too many attempts. Try again in ${seconds} s.`, {
    retryAfterMs: Math.max(waitMs, 1),
  });
}
