import { hash } from "node:crypto";
import { Failure } from "../core/failure.ts";
import type { Clock } from "../core/clock.ts";
import type { ThrottleState, ThrottleStore } from "./account-store.ts";

/** The attempt from which on one has to wait after a failure: 1 s, then twice as long each time. */
const FREE_FAILURES = 5;
const LONGEST_WAIT_MS = 900_000;
/** Failures are forgotten when none came for as long. */
const FORGET_MS = 24 * 60 * 60 * 1000;

const NETWORK_ATTEMPTS = 20;
const NETWORK_WINDOW_MS = 60_000;

/**
 * Slows down who guesses passwords: after failures with one e-mail address, whether it has an account or not, and after
 * many attempts from one network. An attempt counts before its password is looked at, so that many at once are as slow as
 * one after another.
 */
export interface Throttle {
  /** Counts an attempt from a network. Throws `rate_limited` from the 21st of a minute on. */
  enter(network: string): Promise<void>;
  /** Counts an attempt at an account, as failed until `succeeded` says otherwise. Throws `rate_limited` while one has to wait. */
  attempt(email: string): Promise<void>;
  succeeded(email: string): Promise<void>;
}

/** A throttle whose state all processes on the same store share. */
export function createThrottle(store: ThrottleStore, clock: Clock): Throttle {
  return {
    async enter(network) {
      const nowMs = clock.now();
      const { count, blockedUntilMs } = await store.update(`network:${network}`, (state) => countVisit(state, nowMs));
      if (count > NETWORK_ATTEMPTS) throw tooMany(blockedUntilMs - nowMs);
    },
    async attempt(email) {
      const nowMs = clock.now();
      let refusedMs = 0;
      await store.update(subjectOf(email), (state) => {
        refusedMs = Math.max((state?.blockedUntilMs ?? 0) - nowMs, 0);
        return state !== undefined && refusedMs > 0 ? state : countFailure(state, nowMs);
      });
      if (refusedMs > 0) throw tooMany(refusedMs);
    },
    succeeded: (email) => store.remove(subjectOf(email)),
  };
}

/** Subjects hold no address: they are as long for everybody, and nobody can read who signs in here. */
function subjectOf(email: string): string {
  return `account:${hash("sha256", email, "hex")}`;
}

function countFailure(state: ThrottleState | undefined, nowMs: number): ThrottleState {
  const isOld = state === undefined || nowMs - state.changedAtMs >= FORGET_MS;
  const count = isOld ? 1 : state.count + 1;
  const waitMs = count < FREE_FAILURES ? 0 : Math.min(1000 * 2 ** (count - FREE_FAILURES), LONGEST_WAIT_MS);
  return { count, blockedUntilMs: nowMs + waitMs, changedAtMs: nowMs };
}

/** A minute begins with the first attempt after the last one: `changedAtMs` is that of its beginning. */
function countVisit(state: ThrottleState | undefined, nowMs: number): ThrottleState {
  if (state === undefined || nowMs - state.changedAtMs >= NETWORK_WINDOW_MS) {
    return { count: 1, blockedUntilMs: 0, changedAtMs: nowMs };
  }
  const count = Math.min(state.count + 1, NETWORK_ATTEMPTS + 1);
  return {
    count,
    blockedUntilMs: count > NETWORK_ATTEMPTS ? state.changedAtMs + NETWORK_WINDOW_MS : 0,
    changedAtMs: state.changedAtMs,
  };
}

function tooMany(waitMs: number): Failure {
  const seconds = Math.max(Math.ceil(waitMs / 1000), 1);
  return new Failure("rate_limited", `There were too many attempts. Try again in ${seconds} s.`, {
    retryAfterMs: Math.max(waitMs, 1),
  });
}
