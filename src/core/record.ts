import type { Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt } from "../../gen/parley/v1/report_pb.js";
import type { FailureCode } from "./failure.ts";
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
  /** What the provider counted; undefined when it said nothing. */
  readonly usage: Usage | undefined;
  readonly costMicroUsd: number | undefined;
  /** From the request's arrival to its end. */
  readonly durationMs: number;
  /** To the first content of a stream. */
  readonly firstContentMs: number | undefined;
  /** Why it failed, for the log: never shown to a caller. */
  readonly failure: Error | undefined;
}

/** How a request came in; `console` is the dashboard, whose completions are those of its playground. */
export type Entrance = "http" | "grpc" | "connect" | "console";

/** Is told about every completion, exactly once, however it ended. */
export interface Recorder {
  record(entry: CompletionRecord): void;
}
