import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt, Report } from "../../gen/parley/v1/report_pb.js";
import type { Model } from "./model.ts";
import type { Answer, Emit } from "./provider.ts";

/** How a plan's answers are wanted. */
export type Mode = "whole" | "stream";

/** The ordered candidates for one request, with the primary's request already translated. Opaque to core. */
export interface Plan {
  readonly request: CompletionRequest;
  readonly candidates: readonly Model[];
}

/** What the router must know of the call it works for. */
export interface RouterCall {
  readonly completionId: string;
  /** Unix seconds. */
  readonly created: number;
  /** Aborts with a Failure as its reason. */
  readonly signal: AbortSignal;
  /** The line of keys for which it is. */
  readonly lineId: string;
  /** How many gateways the request has come through before this one. Default: none. */
  readonly hops?: number | undefined;
  /** Where the router notes each attempt as soon as it is over, so that nothing is lost however the call ends. */
  readonly attempts: Attempt[];
}

/** A whole answer and how it came about. */
export interface Routed {
  readonly model: Model;
  readonly answer: Answer;
  readonly report: Report;
}

/** From a model's name to an answer: core's port to the upstream world. */
export interface Router {
  /** The model with this ID now; undefined when there is none. */
  find(id: string): Model | undefined;
  /** All models now, in the order of the configuration. */
  list(): readonly Model[];

  /**
   * Plans the attempts. Throws `invalid_request` when the primary cannot take the request at all, or, for a strict
   * request, would have to leave something out.
   */
  plan(request: CompletionRequest, candidates: readonly Model[], mode: Mode): Plan;

  /** Runs the plan for a whole answer. Throws the final Failure with all attempts. */
  create(plan: Plan, call: RouterCall): Promise<Routed>;

  /**
   * Runs the plan for a stream, and emits `start` with the first content, then what the provider says, then `report`.
   * Nothing is emitted before the first content; after it no other attempt is made. Throws the final Failure with all
   * attempts.
   */
  stream(plan: Plan, call: RouterCall, emit: Emit): Promise<void>;
}
