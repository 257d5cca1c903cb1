import type { FormatRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Attribution } from "./attribution.ts";
import type { Entrance } from "./ledger.ts";
import type { LimitFacts } from "./limiter.ts";
import type { Needs, Principal } from "./principal.ts";
import type { CallersBody } from "./provider.ts";
import type { Trace } from "./trace.ts";

/** The caller of one request, and where its limits are reported. */
export interface Caller {
  readonly principal: Principal;
  /** May be chosen by the caller, so not unique. */
  readonly requestId: string;
  /** ID of the completion: unique, and never chosen by the caller. */
  readonly completionId: string;
  /** Called with the limits after the request was counted, before any answer. */
  readonly admitted: (facts: LimitFacts) => void;
  /** Charges the caller for the memory and event-loop time of the call. Absent: they are not counted. */
  readonly share?: CallerShare | undefined;
}

/** What the inbound side knows of a call. */
export interface Call extends Caller {
  readonly entrance: Entrance;
  /** Name of the wire format, such as `openai-chat`. Absent: the contract's own. */
  readonly format?: string | undefined;
  /** The client's `User-Agent`, shortened. Absent: it sent none. */
  readonly client?: string | undefined;
  /** Absent: the caller named no end user, session, agent or tag. */
  readonly attribution?: Attribution | undefined;
  /** Aborts when the caller disconnects, the deadline passes or the gateway stops; the reason is a Failure. */
  readonly signal: AbortSignal;
  /** When the request arrived, by the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** When the caller's deadline passes, by the clock's `monotonic`; absent without one. `signal` aborts at it. */
  readonly expiresMs?: number | undefined;
  /** Number of gateways before this one (`x-parley-hops`). Default: 0. */
  readonly hops?: number | undefined;
  /**
   * Names of request fields that the contract does not have, at most MAX_UNRECOGNIZED, as the caller wrote them. A strict
   * request with such fields is refused. In other requests they are the first omissions of the report. Default: none.
   */
  readonly unrecognized?: readonly string[] | undefined;
  /** The body as the caller wrote it. Absent: its format is not a dialect, or it must not be sent to a provider. */
  readonly body?: CallersBody | undefined;
  /** In a front: the request as the caller wrote it, which the core reads. Absent: the core gets the contract's request. */
  readonly inFormat?: FormatRequest | undefined;
  /** Called with the permissions that the completion needs, so that losing them ends the call. Absent: nothing ends it. */
  readonly permitted?: ((needs: Needs) => void) | undefined;
  /** Absent: the call is not traced. */
  readonly trace?: Trace | undefined;
}

/** Counts the memory and event-loop time that the caller takes of this process. */
export interface CallerShare {
  /**
   * Counts the bytes of a large answer, until the call ends. Throws `rate_limited` or `overloaded` when the caller holds too
   * many.
   */
  holdAnswer(bytes: number): void;
  /** Counts the bytes of a received answer beyond those already held. Never throws; `holdAnswer` may refuse later answers. */
  answered(bytes: number): void;
  /** Counts a large answer from its reading until it is sent to the caller. Undefined when the call's answers are not counted. */
  openAnswer(source: AnswerSource): LargeAnswer | undefined;
  /** Keeps counting each part of a provider's answer until the whole answer is sent. Default: until the part was emitted. */
  keepAnswers(): void;
  /** Runs synchronous work and counts its time. */
  work<T>(run: () => T): T;
  /**
   * As `work`, in a later turn of the event loop, once the caller has not used more than its share of the time. Rejects with
   * `rate_limited` when that takes too long, and with the reason of the call's signal when the call ends.
   */
  workInTurn<T>(run: () => T): Promise<T>;
}

/** Where a large answer comes from. */
export interface AnswerSource {
  /** Identity of the provider. */
  readonly provider: object;
  /** Stops reading the answer: the provider sends too slowly while other answers wait for memory. */
  readonly abandon: () => void;
}

/** A large answer of a provider, whose bytes in memory count for the caller. */
export interface LargeAnswer {
  /**
   * Counts the bytes read so far of an unfinished part. If it returns a promise, nothing may be read from the provider until
   * that resolves. It rejects with the reason of the signal.
   */
  take(bytes: number, signal: AbortSignal): Promise<void> | undefined;
  /** Call it when reading stops until a turn of the event loop: the time until `resume` does not count as the provider's delay. */
  pause(): void;
  /** Call it when reading goes on after `pause`. */
  resume(): void;
  /** Call it before a part is emitted: a delay is now the caller's, until `passed`. */
  emitting(): void;
  /** Call it after a part was emitted. */
  passed(): void;
  /** Call it when the attempt has failed: everything that was read of its answer is dropped. */
  drop(): void;
  /** Call it when nothing more will be read of the answer. */
  read(): void;
}
