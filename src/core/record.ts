import type { Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt } from "../../gen/parley/v1/report_pb.js";
import type { Failure, FailureCode } from "./failure.ts";
import type { LedgerEntry } from "./ledger.ts";
import type { LimitFacts } from "./limiter.ts";
import type { Principal } from "./principal.ts";

/** What happened to one completion. Holds no prompt and no answer. */
export interface CompletionRecord {
  readonly requestId: string;
  readonly completionId: string;
  readonly principal: Principal;
  readonly entrance: Entrance;
  readonly requestedModel: string;
  /** The model that answered; undefined when none did. */
  readonly servedModel: string | undefined;
  readonly streamed: boolean;
  readonly outcome: "served" | FailureCode;
  readonly attempts: readonly Attempt[];
  /** In Unix milliseconds. */
  readonly startedAtMs: number;
  readonly endedAtMs: number;
  /** The limits when it was let in, or refused by one of them. */
  readonly limits: LimitFacts | undefined;
  /** What the provider counted; undefined when it said nothing. */
  readonly usage: Usage | undefined;
  readonly costMicroUsd: number | undefined;
  /** What was reserved for budgets, and should be the most that it costs; undefined without a reservation or a price. */
  readonly reservedMicroUsd?: number | undefined;
  /** From the request's arrival to its end. */
  readonly durationMs: number;
  /** To the first content of a stream. */
  readonly firstContentMs: number | undefined;
  /** Why it failed: its message is what the caller was told, its cause is for the log. */
  readonly failure: Failure | undefined;
  /** What the ledger keeps of it; undefined for one that was refused before it was let in. */
  readonly entry: LedgerEntry | undefined;
}

/**
 * Outcomes of an attempt that was stopped from our side, with the caller, its time, its session or this process: the
 * provider may have worked on it, and bill it, and did nothing wrong.
 */
export const STOPPED: ReadonlySet<string> = new Set([
  "cancelled",
  "deadline_exceeded",
  "overloaded",
  "unauthenticated",
  "permission_denied",
]);

/** How a request came in; `console` is the dashboard, whose completions are those of its playground. */
export type Entrance = "http" | "grpc" | "connect" | "console";

/** Is told about every completion, exactly once, however it ended. */
export interface Recorder {
  record(entry: CompletionRecord): void;
}
