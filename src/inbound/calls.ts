import { fillWithRandomBase62, writeBase62 } from "../access/api-key.ts";
import type { KeyPrincipal } from "../access/principal.ts";
import type { AnswerSource, CallerShare, LargeAnswer } from "../core/call.ts";
import { type Clock, systemClock } from "../core/clock.ts";
import { deadlinePassed, Failure } from "../core/failure.ts";
import type { Needs } from "../core/principal.ts";
import type { AnswerHold } from "../scheduling/answer-hold.ts";
import { AnswerMemory } from "../scheduling/answer-memory.ts";

/** One call in flight, from its arrival to the last byte of its answer. Without a slot it counts no share. */
export interface OpenCall extends CallerShare {
  /** Aborts when the caller disconnects, the deadline passes or the gateway stops; the reason is a Failure. */
  readonly signal: AbortSignal;
  /** When the caller's deadline passes, by the clock's `monotonic`; undefined without one. */
  readonly expiresMs: number | undefined;
  /** The caller disconnected. Without effect on a closed call. */
  leave(): void;
  /** The caller has read some bytes of its answer. */
  wrote(bytes: number): void;
  /** Ends the call with a reason that is sent to the caller. Without effect on a closed call. */
  end(reason: Failure): void;
  /** Binds the call to its key: it ends when the key stops working. */
  authenticated(principal: KeyPrincipal): void;
  /** The last confirmed state of its key; undefined for a call without a key. */
  readonly principal: KeyPrincipal | undefined;
  /** Binds the call to its slot, which counts its work and the bytes of a large answer. */
  entered(slot: CallSlot): void;
  /** Counts the time of synchronous work that is done, in milliseconds. */
  worked(ms: number): void;
  /** Binds the call to permissions of its key: it ends when the key loses them. Without effect on a call without a key. */
  readonly permitted: (needs: Needs) => void;
  /** The answer is complete and being written: the deadline no longer applies. */
  answering(): Answering;
  /** The answer was sent: cancels the deadline timer. */
  close(): void;
}

/** Counts the share of a call: of `admission/`. */
export interface CallSlot extends Omit<CallerShare, "workInTurn" | "openAnswer" | "keepAnswers"> {
  /** Runs synchronous work in a later turn of the event loop that its key has; see `CallerShare.workInTurn`. */
  inTurn<T>(work: () => T, signal: AbortSignal): Promise<T>;
  /** Counts the time of synchronous work that is done, in milliseconds. */
  worked(ms: number): void;
  /** The call does nothing until the promise settles. */
  idleUntil(until: Promise<void>): void;
}

/** A call whose answer is being written. */
export type Answering = Pick<OpenCall, "signal" | "leave" | "wrote">;

/** Longest deadline with a timer; later deadlines exceed the models' own time limits. */
export const MAX_DEADLINE_MS = 24 * 60 * 60 * 1000;

/** A caller that disconnects this shortly before its deadline has enforced it itself, as gRPC clients do. */
const OWN_DEADLINE_MS = 50;

/** A call in flight with a key. */
export interface KeyedCall {
  /** The last confirmed state of the key. */
  principal: KeyPrincipal;
  /** Undefined before a completion was permitted, and for other calls. */
  readonly needs: Needs | undefined;
  end(reason: Failure): void;
}

/** Ports of an open call. */
interface InFlightPorts {
  readonly clock: Clock;
  readonly answers: AnswerMemory;
  readonly closed: (one: InFlightCall) => void;
}

/** The two ways in which a call ends: its deadline, or another reason, which also ends the writing of its answer. */
class InFlightCall implements OpenCall {
  principal: KeyPrincipal | undefined;
  needs: Needs | undefined;
  readonly expiresMs: number | undefined;
  readonly #ports: InFlightPorts;
  readonly #completion = new AbortController();
  /** Created on first use: most answers are sent at once. */
  #answer: AbortController | undefined;
  #ended: Failure | undefined;
  #slot: CallSlot | undefined;
  #isOpen = true;
  /** Holds of the providers' large answers. */
  #holds: AnswerHold[] | undefined;
  #keepsAnswers = false;
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

  wrote(bytes: number): void {
    if (this.#holds !== undefined) for (const hold of this.#holds) hold.moved(bytes);
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

  entered(slot: CallSlot): void {
    this.#slot = slot;
  }

  holdAnswer(bytes: number): void {
    this.#slot?.holdAnswer(bytes);
  }

  answered(bytes: number): void {
    this.#slot?.answered(bytes);
  }

  openAnswer({ provider, abandon }: AnswerSource): LargeAnswer | undefined {
    if (this.principal === undefined) return undefined;
    const { keyFamilyId, accountId } = this.principal;
    const owner = { keyFamilyId, accountId, provider, abandon, leave: () => this.leave() };
    const hold = this.#ports.answers.open(owner, (until) => this.#slot?.idleUntil(until));
    if (this.#keepsAnswers) hold.keep();
    if (this.#isOpen) (this.#holds ??= []).push(hold);
    else hold.sent();
    return hold;
  }

  keepAnswers(): void {
    this.#keepsAnswers = true;
  }

  work<T>(run: () => T): T {
    return this.#slot === undefined ? run() : this.#slot.work(run);
  }

  worked(ms: number): void {
    this.#slot?.worked(ms);
  }

  async workInTurn<T>(run: () => T): Promise<T> {
    const slot = this.#slot;
    return slot === undefined ? run() : slot.inTurn(() => slot.work(run), this.signal);
  }

  readonly permitted = (needs: Needs): void => {
    this.needs = needs;
  };

  answering(): Answering {
    this.#answer ??= new AbortController();
    if (this.#ended !== undefined) this.#answer.abort(this.#ended);
    return { signal: this.#answer.signal, leave: () => this.leave(), wrote: (bytes) => this.wrote(bytes) };
  }

  close(): void {
    this.#cancelTimer?.();
    this.#isOpen = false;
    if (this.#holds !== undefined) for (const hold of this.#holds) hold.sent();
    this.#ports.closed(this);
  }

  #expire(): void {
    this.#completion.abort(deadlinePassed());
  }
}

const UNLIMITED = { key: Infinity, account: Infinity, provider: Infinity, process: Infinity };

/** All calls in flight of this process: a drain waits for them. */
export class Calls {
  readonly #ports: InFlightPorts;
  readonly #open = new Set<InFlightCall>();
  /** Waiters, with the calls that they wait for. */
  readonly #waiting = new Set<{ readonly left: Set<InFlightCall>; readonly resolve: () => void }>();

  /** `answers` default: without limits. */
  constructor(clock: Clock, answers = new AnswerMemory(UNLIMITED, clock)) {
    this.#ports = { clock, answers, closed: (one) => this.#closed(one) };
  }

  /** Number of calls in flight. */
  get active(): number {
    return this.#open.size;
  }

  /** Opens a call. `deadlineMs`: time to the caller's deadline; undefined without one. */
  open(deadlineMs: number | undefined): OpenCall {
    const one = new InFlightCall(this.#ports, deadlineMs);
    this.#open.add(one);
    return one;
  }

  /** The calls in flight with a key. */
  *keyed(): Generator<KeyedCall> {
    for (const one of this.#open) if (one.principal !== undefined) yield one as KeyedCall;
  }

  /** Resolves when every call that is in flight now has ended. */
  async passed(): Promise<void> {
    const left = new Set(this.#open);
    if (left.size > 0) await new Promise<void>((resolve) => this.#waiting.add({ left, resolve }));
  }

  /** Resolves when no call is in flight. */
  async idle(): Promise<void> {
    while (this.active > 0) await this.passed();
  }

  /** Ends every call in flight, after the time for the drain. */
  abortAll(): void {
    for (const one of this.#open)
      one.end(new Failure("overloaded", "The gateway is shutting down.", { unavailable: "shutting_down" }));
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
/** Digits of the time in Unix milliseconds: enough for some thousand years. The others are random, 95 bits. */
const TIME_LENGTH = 8;

const digits = Buffer.alloc(LENGTH);
let digitsOfMs = -1;

/**
 * IDs start with their time in base 62, which sorts as bytes: entries of the same time are next to each other in the ledger's
 * indexes. Random IDs would each touch another index page, at a cost that grows with the ledger.
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

/** A new completion's ID: `chatcmpl-` and 24 letters or digits. IDs of one process sort by time. */
export function newCompletionId(): string {
  return mint("chatcmpl-");
}

/** A new embedding call's ID: `embd-` and 24 letters or digits. IDs of one process sort by time. */
export function newEmbeddingId(): string {
  return mint("embd-");
}

/** The request's ID: the caller's own when it is 1 to 128 visible ASCII characters, else a new one. */
export function requestIdFrom(given: string | undefined): string {
  const isUsable = given !== undefined && /^[\x21-\x7e]{1,128}$/.test(given) && !given.includes("sk_parley_");
  return isUsable ? given : mint("req_");
}
