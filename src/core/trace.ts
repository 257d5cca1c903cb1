import { randomBytes } from "node:crypto";
import type { CompletionRecord } from "./ledger.ts";

/*
 * W3C Trace Context. Source: "Trace Context", W3C Recommendation, 23 November 2021.
 */

export const TRACEPARENT_HEADER = "traceparent";
export const TRACESTATE_HEADER = "tracestate";

/** The identity of a span, as the trace headers carry it. */
export interface TraceContext {
  /** 32 hexadecimal digits. */
  readonly traceId: string;
  /** 16 hexadecimal digits. */
  readonly spanId: string;
  readonly isSampled: boolean;
  /** A valid `tracestate`, which is propagated unchanged; undefined without one. */
  readonly state: string | undefined;
}

/** Parts of a `traceparent`. Versions after 00 may append further parts. */
const TRACEPARENT = /^([0-9a-f]{2})-([0-9a-f]{32})-([0-9a-f]{16})-([0-9a-f]{2})($|-)/;
const MAX_TRACEPARENT = 256;

/** Limits up to which the specification requires a `tracestate` to be propagated. */
const MAX_TRACESTATE = 512;
const MAX_MEMBERS = 32;
const MEMBER = /^([a-z0-9][a-z0-9_\-*/@]{0,255})=[\x20-\x2b\x2d-\x3c\x3e-\x7e]{1,256}$/;

/** Reads the caller's headers. Undefined for a `traceparent` that is missing or invalid; an invalid `tracestate` is dropped. */
export function readTraceContext(
  traceparent: string | undefined,
  tracestate: string | undefined,
): TraceContext | undefined {
  if (traceparent === undefined || traceparent.length > MAX_TRACEPARENT) return undefined;
  const [, version, traceId, spanId, flags, more] = TRACEPARENT.exec(traceparent) ?? [];
  if (traceId === undefined || spanId === undefined || version === "ff" || (version === "00" && more === "-"))
    return undefined;
  if (/^0+$/.test(traceId) || /^0+$/.test(spanId)) return undefined;
  const isSampled = (Number.parseInt(flags!, 16) & 1) === 1;
  return { traceId, spanId, isSampled, state: readState(tracestate) };
}

function readState(text: string | undefined): string | undefined {
  if (text === undefined || text.length > MAX_TRACESTATE) return undefined;
  const members = text.split(",").flatMap((member) => member.trim() || []);
  const keys = new Set(members.map((member) => MEMBER.exec(member)?.[1]));
  const isValid = keys.size === members.length && !keys.has(undefined) && keys.size <= MAX_MEMBERS;
  return isValid && members.length > 0 ? members.join(",") : undefined;
}

/** The headers that name a span to a callee. */
export function traceHeaders({ traceId, spanId, isSampled, state }: TraceContext): [name: string, value: string][] {
  const parent: [string, string] = [TRACEPARENT_HEADER, `00-${traceId}-${spanId}-${isSampled ? "01" : "00"}`];
  return state === undefined ? [parent] : [parent, [TRACESTATE_HEADER, state]];
}

/** A new random ID of this many bytes, as hexadecimal digits. */
export function newTraceId(bytes: 8 | 16): string {
  return randomBytes(bytes).toString("hex");
}

/** Begins the trace of a call. */
export interface Traces {
  /** Undefined when the call is not traced. */
  begin(arrival: Arrival): Trace | undefined;
}

/** A call at its arrival. */
interface Arrival {
  /** The caller's span; undefined when it named none. */
  readonly caller: TraceContext | undefined;
  /** By the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** The path's template, or the full name of the method. */
  readonly target: string;
}

/** One attempt of a traced call. */
export interface AttemptTrace {
  readonly context: TraceContext;
  /** By the clock's `monotonic`: the first byte of the request was written to a connection. Set by the transport. */
  sentMs?: number;
  /** By the clock's `monotonic`: the first content of a stream. */
  firstContentMs?: number;
}

/** When the ledger entry of a traced call was written. */
export interface TraceEnding {
  /** By the clock's `monotonic`: when the ledger received the entry, and when it was durable. */
  readonly ledgerMs: readonly [began: number, ended: number];
  /** Whether the call had ended before, and the entry only waited for the provider's token count. */
  readonly isSettled: boolean;
}

/**
 * The trace of one call: its identity, and the times that `CompletionRecord` lacks. Spans are created from both when the call has
 * ended. Times are by the clock's `monotonic`.
 */
export class Trace {
  /** The span of the inbound call. */
  readonly context: TraceContext;
  /** When the call got its slot. */
  enteredMs: number | undefined;
  /** When the request was planned, and when its reservation was made. */
  plannedMs: number | undefined;
  reservedMs: number | undefined;
  isEmbedding = false;
  /** By index in `CompletionRecord.attempts`, set when the attempt is appended there; undefined for a skipped attempt. */
  readonly attempts: (AttemptTrace | undefined)[] = [];
  readonly #ended: ((record: CompletionRecord, ending: TraceEnding) => void) | undefined;

  /** `ended`: receives the call's record at its end. Default: not called. */
  constructor(context: TraceContext, ended?: (record: CompletionRecord, ending: TraceEnding) => void) {
    this.context = context;
    this.#ended = ended;
  }

  beginAttempt(): AttemptTrace {
    return { context: { ...this.context, spanId: newTraceId(8) } };
  }

  end(record: CompletionRecord, ending: TraceEnding): void {
    this.#ended?.(record, ending);
  }
}
