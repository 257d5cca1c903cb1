import type { SignedIn } from "../../access/sessions.ts";
import { BoundedMap } from "../../core/bounded-map.ts";
import type { Clock } from "../../core/clock.ts";
import { Failure } from "../../core/failure.ts";
import { ConcurrencyLimit } from "../concurrency-limit.ts";

/**
 * Kind of holder of a limit. A session, or an administration key, has half of its account's, so that its user cannot keep
 * the account's other sessions from ending it.
 */
type Holder = "session" | "account";

/** Calls in flight, without streams: the database runs reports of all accounts one after the other. */
const MAX_CALLS: Readonly<Record<Holder, number>> = { session: 16, account: 32 };

/**
 * Changes begun: more than people and their scripts need. Each is a durable commit, for which completions wait, and an entry of the audit
 * log.
 */
const CHANGE_RATES: Readonly<Record<Holder, Rate>> = {
  session: { perSecond: 5, burst: 30 },
  account: { perSecond: 10, burst: 60 },
};

/**
 * Changes of an account in the long run, at most twice as many in one day. In the whole retention they are 4 million entries of the audit
 * log, of 10 million: an account cannot push out the history of others.
 */
const DAILY_CHANGES = 10_000;

/** Holders whose rate is known; the one that has begun no change for the longest time is forgotten first, and has its burst again. */
const MAX_HOLDERS = 10_000;

interface Rate {
  readonly perSecond: number;
  readonly burst: number;
}

/** Limits the calls of signed-in people, by session and by account. */
export class CallLimits {
  readonly #limits: Readonly<Record<Holder, HolderLimits>>;
  readonly #daily: RateLimit;

  constructor(clock: Pick<Clock, "monotonic">) {
    this.#daily = new RateLimit({ perSecond: DAILY_CHANGES / 86_400, burst: DAILY_CHANGES }, clock);
    this.#limits = { session: new HolderLimits("session", clock), account: new HolderLimits("account", clock) };
  }

  /** Counts one more call, to be released when it ends. Throws `rate_limited` at a limit. */
  take({ account, session }: SignedIn, { changes }: { readonly changes?: true }): () => void {
    const releases: (() => void)[] = [];
    const release = (): void => {
      for (const each of releases.splice(0)) each();
    };
    try {
      this.#limits.session.take(session.hash, changes, releases);
      this.#limits.account.take(account.id, changes, releases);
      if (changes === true) this.#takeDaily(account.id);
    } catch (reason) {
      release();
      throw reason;
    }
    return release;
  }

  #takeDaily(accountId: string): void {
    const waitMs = this.#daily.take(accountId);
    if (waitMs === 0) return;
    const reached = `This account has reached the maximum of ${DAILY_CHANGES} changes a day`;
    throw new Failure("rate_limited", `${reached}. Try again in ${Math.ceil(waitMs / 1_000)} s.`, {
      retryAfterMs: waitMs,
    });
  }
}

/** The limits of one kind of holder. */
class HolderLimits {
  readonly #kind: Holder;
  readonly #calls: ConcurrencyLimit;
  readonly #rate: RateLimit;

  constructor(kind: Holder, clock: Pick<Clock, "monotonic">) {
    this.#kind = kind;
    this.#calls = new ConcurrencyLimit(MAX_CALLS[kind]);
    this.#rate = new RateLimit(CHANGE_RATES[kind], clock);
  }

  take(holder: string, changes: true | undefined, releases: (() => void)[]): void {
    releases.push(this.#place(holder));
    if (changes === undefined) return;
    const waitMs = this.#rate.take(holder);
    if (waitMs === 0) return;
    const reached = `This ${this.#kind} has reached the maximum of ${CHANGE_RATES[this.#kind].perSecond} changes a second`;
    throw new Failure("rate_limited", `${reached}. Try again shortly.`, { retryAfterMs: waitMs });
  }

  #place(holder: string): () => void {
    const release = this.#calls.take(holder);
    if (release !== undefined) return release;
    const reached = `This ${this.#kind} has reached the maximum of ${this.#calls.most} concurrent dashboard calls`;
    throw new Failure("rate_limited", `${reached}. Try again when one completes.`, { retryAfterMs: 1_000 });
  }
}

/** A token bucket for each holder. */
class RateLimit {
  readonly #rate: Rate;
  readonly #clock: Pick<Clock, "monotonic">;
  readonly #levels = new BoundedMap<string, { readonly level: number; readonly atMs: number }>(MAX_HOLDERS);

  constructor(rate: Rate, clock: Pick<Clock, "monotonic">) {
    this.#rate = rate;
    this.#clock = clock;
  }

  /** Takes one and returns 0; when none is left, returns the milliseconds until there is one. */
  take(holder: string): number {
    const { perSecond, burst } = this.#rate;
    const atMs = this.#clock.monotonic();
    const before = this.#levels.get(holder) ?? { level: burst, atMs };
    const level = Math.min(before.level + ((atMs - before.atMs) * perSecond) / 1_000, burst);
    if (level < 1) return Math.ceil(((1 - level) * 1_000) / perSecond);
    this.#levels.set(holder, { level: level - 1, atMs });
    return 0;
  }
}
