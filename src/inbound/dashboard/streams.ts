import type { HandlerContext } from "@connectrpc/connect";
import { ConcurrencyLimit } from "../concurrency-limit.ts";
import type { SignedIn } from "../../access/sessions.ts";
import type { Clock } from "../../core/clock.ts";
import { Failure } from "../../core/failure.ts";
import { callOf, type ConsoleCall, signedInOf } from "./call.ts";

/** Interval of checks of an open stream's session. */
const RECHECK_MS = 5_000;

/** Time that a stream continues while its session cannot be checked. */
const UNCONFIRMED_MS = 60_000;

/** Open streams. A session has half of its account's, so that its user cannot keep those of other sessions from opening. */
const MAX_STREAMS = { session: 8, account: 16 } as const;

/** Open streams of the dashboard: limits their number, and ends them with their sessions. */
export class Streams {
  readonly #clock: Clock;
  readonly #limits = {
    session: new ConcurrencyLimit(MAX_STREAMS.session),
    account: new ConcurrencyLimit(MAX_STREAMS.account),
  };

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /**
   * Runs a stream of a signed-in account. The source must end soon after the call's signal aborts: when the caller disconnects,
   * the session ends, its role changes, `mayGoOn` is false for its present teams, or the process stops. Other changes of its teams,
   * which any maintainer of a team can make, do not end it. Throws `rate_limited` at the limit.
   */
  async *run<T>(
    context: Pick<HandlerContext, "values">,
    source: (call: ConsoleCall) => AsyncIterable<T>,
    mayGoOn: (now: SignedIn) => boolean,
  ): AsyncGenerator<T> {
    const call = callOf(context);
    const release = this.#take(signedInOf(context));
    const stopWatching = this.#watchSession(call, mayGoOn);
    try {
      for await (const message of source(call)) yield message;
      // A source that was stopped has not completed: the reason is that of the signal.
      call.open.signal.throwIfAborted();
    } finally {
      stopWatching();
      release();
    }
  }

  #take({ session, account }: SignedIn): () => void {
    const ofSession = this.#takeOne("session", session.hash);
    try {
      const ofAccount = this.#takeOne("account", account.id);
      return () => {
        ofSession();
        ofAccount();
      };
    } catch (reason) {
      ofSession();
      throw reason;
    }
  }

  #takeOne(kind: keyof typeof MAX_STREAMS, holder: string): () => void {
    const release = this.#limits[kind].take(holder);
    if (release !== undefined) return release;
    const what = `This ${kind} has reached the maximum of ${MAX_STREAMS[kind]} live pages and playground responses`;
    throw new Failure("rate_limited", `${what}. Close one, or wait for a response to complete.`);
  }

  /** Ends the call when its session or key ends. Returns the function that stops the checks. */
  #watchSession(call: ConsoleCall, mayGoOn: (now: SignedIn) => boolean): () => void {
    const clock = this.#clock;
    let confirmedAtMs = clock.monotonic();
    let isOver = false;
    let cancelTimer = (): void => undefined;
    const wait = (): void => {
      cancelTimer = clock.after(RECHECK_MS, () => void look());
    };
    const look = async (): Promise<void> => {
      const askedAtMs = clock.monotonic();
      const found = await this.#check(call, mayGoOn);
      if (isOver) return;
      if (found === "confirmed") confirmedAtMs = askedAtMs;
      else if (found !== "unknown") return call.open.end(found);
      else if (clock.monotonic() - confirmedAtMs > UNCONFIRMED_MS) return call.open.end(uncheckable());
      wait();
    };
    wait();
    return () => {
      isOver = true;
      cancelTimer();
    };
  }

  /** Checks the session or the key of a call. Unknown while the store fails. */
  async #check(
    { peek, signedIn: before }: ConsoleCall,
    mayGoOn: (now: SignedIn) => boolean,
  ): Promise<"confirmed" | "unknown" | Failure> {
    try {
      const now = await peek();
      if (now === undefined) return new Failure("unauthenticated", "Your session has expired.");
      if (roleOf(now) === roleOf(before!) && mayGoOn(now)) return "confirmed";
      return new Failure("permission_denied", "The role or the teams of this account have changed. Reload the page.");
    } catch {
      return "unknown";
    }
  }
}

/** The facts that decide a caller's permissions outside its teams, as a text to compare. */
function roleOf({ account, customRole }: SignedIn): string {
  return [account.role, customRole?.base, ...(customRole?.permissions ?? [])].join(", ");
}

function uncheckable(): Failure {
  return new Failure("overloaded", "Sessions cannot be verified right now. Try again shortly.", {
    unavailable: "database",
  });
}

/** Interval of heartbeats: many proxies close connections that are silent for a minute. */
const SILENCE_MS = 15_000;

/** The messages of a source, and heartbeats while it is silent. */
export async function* withHeartbeat<T>(
  source: AsyncIterable<T>,
  { clock, sign }: { readonly clock: Clock; readonly sign: T },
): AsyncGenerator<T> {
  const messages = source[Symbol.asyncIterator]();
  let next = messages.next();
  try {
    for (;;) {
      const arrived = await beforeSilence(next, clock);
      if (arrived === undefined) {
        yield sign;
        continue;
      }
      if (arrived.done === true) return;
      yield arrived.value;
      next = messages.next();
    }
  } finally {
    // A reader that stopped does not get the result of the pending message.
    next.catch(() => undefined);
    await messages.return?.();
  }
}

/** The next message; undefined after the heartbeat interval. Throws what the source throws. */
async function beforeSilence<T>(next: Promise<T>, clock: Clock): Promise<T | undefined> {
  let cancel = (): void => undefined;
  const silence = new Promise<undefined>((resolve) => {
    cancel = clock.after(SILENCE_MS, () => resolve(undefined));
  });
  try {
    return await Promise.race([next, silence]);
  } finally {
    cancel();
  }
}
