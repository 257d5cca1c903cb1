import { fillWithRandomBase62, writeBase62 } from "../access/api-key.ts";
import type { KeyPrincipal } from "../access/principal.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { deadlinePassed, Failure } from "../core/failure.ts";
import type { Needs } from "../core/principal.ts";

/** One call under way, from its arrival to the last byte of its answer. */
export interface OpenCall {
  /** Aborts when the caller leaves, its deadline passes or the gateway stops; the reason is a Failure. */
  readonly signal: AbortSignal;
  /** When the caller's deadline passes, by the clock's `monotonic`; undefined without one. */
  readonly expiresMs: number | undefined;
  /** The caller is gone. Without effect once the call is closed. */
  leave(): void;
  /** Ends it for another reason, which its caller is told. Without effect once the call is closed. */
  end(reason: Failure): void;
  /** Ties the call to the key that it is made with: it ends when the key no longer works. */
  authenticated(principal: KeyPrincipal): void;
  /** Ties it to what the key has to allow, too. Without effect on a call without a key. */
  readonly permitted: (needs: Needs) => void;
  /** Its answer is complete and being written. The deadline was for the completion, and ends this no more. */
  answering(): Answering;
  /** The answer is out; ends the deadline's timer. */
  close(): void;
}

/** Whose answer is being written. */
export type Answering = Pick<OpenCall, "signal" | "leave">;

/** The longest deadline that is kept by a timer; a later one is bounded by the models' own time limits anyway. */
const MAX_DEADLINE_MS = 24 * 60 * 60 * 1000;

/** A caller who leaves so shortly before its deadline has kept it on its own side: gRPC's clients do, a network's delay early. */
const OWN_DEADLINE_MS = 50;

/** A call in flight that was made with a key. */
export interface KeyedCall {
  /** The key as it was last confirmed. */
  principal: KeyPrincipal;
  /** Undefined before a completion was permitted, and for what is no completion. */
  readonly needs: Needs | undefined;
  end(reason: Failure): void;
}

/** What an open call is told by and tells. */
interface InFlightPorts {
  readonly clock: Clock;
  readonly closed: (one: InFlightCall) => void;
}

/** What ends one call: its deadline, or anything else, which ends the writing of its answer too. */
class InFlightCall implements OpenCall {
  principal: KeyPrincipal | undefined;
  needs: Needs | undefined;
  readonly expiresMs: number | undefined;
  readonly #ports: InFlightPorts;
  readonly #completion = new AbortController();
  /** Made when it is asked for: most answers are out at once. */
  #answer: AbortController | undefined;
  #ended: Failure | undefined;
  #isOpen = true;
  readonly #cancelTimer: (() => void) | undefined;

  constructor(ports: InFlightPorts, deadlineMs: number | undefined) {
    this.#ports = ports;
    if (deadlineMs === undefined) return;
    this.expiresMs = ports.clock.monotonic() + deadlineMs;
    const timerMs = Math.min(Math.max(deadlineMs, 0), MAX_DEADLINE_MS);
    this.#cancelTimer = ports.clock.after(timerMs, () => this.#expire());
  }

  get signal(): AbortSignal {
    return this.#completion.signal;
  }

  leave(): void {
    if (!this.#isOpen) return;
    if (this.#ports.clock.monotonic() >= (this.expiresMs ?? Infinity) - OWN_DEADLINE_MS) this.#expire();
    this.end(new Failure("cancelled", "The caller left."));
  }

  end(reason: Failure): void {
    if (!this.#isOpen) return;
    this.#completion.abort(reason);
    this.#ended ??= reason;
    this.#answer?.abort(reason);
  }

  authenticated(principal: KeyPrincipal): void {
    this.principal = principal;
  }

  readonly permitted = (needs: Needs): void => {
    this.needs = needs;
  };

  answering(): Answering {
    this.#answer ??= new AbortController();
    if (this.#ended !== undefined) this.#answer.abort(this.#ended);
    return { signal: this.#answer.signal, leave: () => this.leave() };
  }

  close(): void {
    this.#cancelTimer?.();
    this.#isOpen = false;
    this.#ports.closed(this);
  }

  #expire(): void {
    this.#completion.abort(deadlinePassed());
  }
}

/** The calls under way in this process, of all entrances: what a drain waits for. */
export class Calls {
  readonly #ports: InFlightPorts;
  readonly #open = new Set<InFlightCall>();
  /** Who waits for which calls to end. */
  readonly #waiting = new Set<{ readonly left: Set<InFlightCall>; readonly resolve: () => void }>();

  constructor(clock: Clock) {
    this.#ports = { clock, closed: (one) => this.#closed(one) };
  }

  /** How many calls are under way. */
  get active(): number {
    return this.#open.size;
  }

  /** Opens a call. `deadlineMs` is what is left of the caller's deadline, if it has one. */
  open(deadlineMs: number | undefined): OpenCall {
    const one = new InFlightCall(this.#ports, deadlineMs);
    this.#open.add(one);
    return one;
  }

  /** The calls in flight that were made with a key. */
  *keyed(): Generator<KeyedCall> {
    for (const one of this.#open) if (one.principal !== undefined) yield one as KeyedCall;
  }

  /** Resolves when every call that is under way now has ended, whatever has begun since. */
  async passed(): Promise<void> {
    const left = new Set(this.#open);
    if (left.size > 0) await new Promise<void>((resolve) => this.#waiting.add({ left, resolve }));
  }

  /** Resolves when no call is under way. */
  async idle(): Promise<void> {
    while (this.active > 0) await this.passed();
  }

  /** Ends every call that is still under way: the drain's time is up. */
  abortAll(): void {
    for (const one of this.#open) one.end(new Failure("overloaded", "The gateway is shutting down."));
  }

  #closed(one: InFlightCall): void {
    this.#open.delete(one);
    for (const waiter of this.#waiting) {
      if (!waiter.left.delete(one) || waiter.left.size > 0) continue;
      this.#waiting.delete(waiter);
      waiter.resolve();
    }
  }
}

const LENGTH = 24;
/** Digits of the moment in Unix milliseconds: enough for some thousand years. The others are random, 95 bits. */
const TIME_LENGTH = 8;

const digits = Buffer.alloc(LENGTH);
let digitsOfMs = -1;

/**
 * IDs begin with the time they are made at, in an alphabet that sorts as its bytes do: they are written into the ledger's
 * indexes in their order, and what is written together lies together. Random ones would each change another page of an
 * index, at a cost that grows with the ledger.
 */
function mint(prefix: string): string {
  const nowMs = systemClock.now();
  if (nowMs !== digitsOfMs) {
    digitsOfMs = nowMs;
    writeBase62(nowMs, digits, TIME_LENGTH);
  }
  fillWithRandomBase62(digits, TIME_LENGTH);
  return prefix + digits.toString("latin1");
}

/** A new completion's ID: `chatcmpl-` and 24 letters or digits. Those of one process sort by the time they are made at. */
export function newCompletionId(): string {
  return mint("chatcmpl-");
}

/** The request's ID: the caller's own when it is 1 to 128 visible ASCII characters, else a new one. */
export function requestIdFrom(given: string | undefined): string {
  const isUsable = given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) && !given.includes("sk_parley_");
  return isUsable ? given : mint("req_");
}
