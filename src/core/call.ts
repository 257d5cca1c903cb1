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
  /** Counts what the call takes of the process as the caller's. Absent: it is not counted. */
  readonly share?: CallerShare | undefined;
}

/** What the inbound side knows of a call. */
export interface Call extends Caller {
  readonly entrance: Entrance;
  /** Name of the wire format, such as `openai-chat`. Absent: the contract's own. */
  readonly format?: string | undefined;
  /** What the caller says its program is (`User-Agent`), shortened. Absent: nothing. */
  readonly client?: string | undefined;
  /** Whom and what it is for. Absent: the caller said nothing. */
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
   * Names of request fields that the contract does not have, at most MAX_UNRECOGNIZED, in the caller's words. A strict request is
   * refused by them; for others they are the first omissions of the report. Default: none.
   */
  readonly unrecognized?: readonly string[] | undefined;
  /** The body as the caller wrote it. Absent: it is of no dialect, or is not to be sent. */
  readonly body?: CallersBody | undefined;
  /** In a front: the request as the caller wrote it, which the core reads. Absent: the core gets the contract's request. */
  readonly inFormat?: FormatRequest | undefined;
  /** Called with the permissions that the completion needs, so that losing them ends the call. Absent: nothing ends it. */
  readonly permitted?: ((needs: Needs) => void) | undefined;
  /** Absent: the call is not traced. */
  readonly trace?: Trace | undefined;
}

/** The caller's share of the process. */
export interface CallerShare {
  /**
   * Counts the bytes of a large answer, until the call ends. Throws `rate_limited` or `overloaded` when the caller holds too
   * many.
   */
  holdAnswer(bytes: number): void;
  /** Counts the bytes of an answer that is there, as far as they exceed what is held. Refuses nothing: later answers may not fit. */
  answered(bytes: number): void;
  /** Begins to count a large answer of a provider that is read, until it is sent. Undefined when it is not counted. */
  openAnswer(source: AnswerSource): LargeAnswer | undefined;
  /** What is read of the providers' answers stays in memory until all is sent. Default: until it was emitted. */
  keepAnswers(): void;
  /** Runs synchronous work and counts its time. */
  work<T>(run: () => T): T;
  /**
   * The same in a later event loop turn, in which the caller has not had more than its share. Rejects with `rate_limited` when that
   * takes too long, and with the call's reason when that ends.
   */
  workInTurn<T>(run: () => T): Promise<T>;
}

/** Where a large answer comes from. */
export interface AnswerSource {
  /** Identity of the provider. */
  readonly provider: object;
  /** Reads nothing more: the provider sends too slowly while others wait for memory. */
  readonly abandon: () => void;
}

/** A large answer of a provider, whose bytes in memory count for the caller. */
export interface LargeAnswer {
  /**
   * Counts the bytes that are read of an unfinished part. Returns a promise when the provider must not be read on before it resolves; it
   * rejects with the reason of the signal.
   */
  take(bytes: number, signal: AbortSignal): Promise<void> | undefined;
  /** Nothing is read before the turn that it waits for. */
  pause(): void;
  /** Its turn has come. */
  resume(): void;
  /** What was read is given to the caller, who may not have room for it. */
  emitting(): void;
  /** What was read is emitted. */
  passed(): void;
  /** What was read is dropped, with all that was emitted: the attempt has failed. */
  drop(): void;
  /** Nothing more is read. */
  read(): void;
}
