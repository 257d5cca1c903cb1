import type { CompletionRequest, Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt, Report } from "../../gen/parley/v1/report_pb.js";
import type { Failure } from "./failure.ts";
import type { Model } from "./model.ts";
import type { SendingRules } from "./provider-options.ts";
import type { Answer, CallProgress, Emit, SentSize } from "./provider.ts";
import type { AnswerSize } from "./token-estimate.ts";

/** How a plan's answers are wanted. */
export type Mode = "whole" | "stream";

/** The ordered candidates for one request, with the primary's request already translated. Runs once. */
export interface Plan {
  readonly request: CompletionRequest;
  readonly candidates: readonly Model[];
  /** The size of the primary's translated request. */
  readonly sent: SentSize;

  /** Makes attempts until one has a whole answer. Throws the final Failure with all attempts. */
  create(call: RouterCall): Promise<Routed>;

  /**
   * Makes attempts until one has a stream, and emits `start` with the first content, then what the provider says, then
   * `report`. Nothing is emitted before the first content; after it no other attempt is made. Throws the final Failure with
   * all attempts.
   */
  stream(call: RouterCall, emit: Emit): Promise<void>;
}

/** An attempt that ended without the provider's count of tokens, although the provider may bill it. */
export interface UncountedAttempt {
  readonly model: Model;
  /** As it is reported. */
  readonly attempt: Attempt;
  readonly sent: SentSize;
  readonly progress: CallProgress;
  /** From its begin until now. */
  readonly elapsedMs: number;
  /** Whether core was given content of it. */
  readonly committed: boolean;
  /** Of the answer, what core was not given. */
  readonly unseen: AnswerSize | undefined;
  /** What the provider is still heard to say; undefined when its connection is closed already. */
  readonly rest: Rest | undefined;
}

/** What a provider says after its attempt has ended for the caller. */
export interface Rest {
  /** Resolves when the provider has answered, the time to settle is over, or `giveUp` was called. Never rejects. */
  readonly outcome: Promise<RestOutcome>;
  /** Closes the connection. */
  readonly giveUp: () => void;
}

export interface RestOutcome {
  /** Undefined when the provider did not count. */
  readonly usage: Usage | undefined;
  /** The provider refused the request, and bills nothing. */
  readonly refused: boolean;
  /** From the attempt's begin until the provider was heard no longer. */
  readonly elapsedMs: number;
  /** Of the answer, what core was not given until now. */
  readonly unseen: AnswerSize | undefined;
}

/** What the router must know of the call it works for. */
export interface RouterCall {
  readonly completionId: string;
  /** When the request arrived, by the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** Unix seconds. */
  readonly created: number;
  /** Aborts with a Failure as its reason. */
  readonly signal: AbortSignal;
  /** The line of keys for which it is. */
  readonly keyFamilyId: string;
  /** The account for which it is. */
  readonly accountId: string;
  /** How many gateways the request has come through before this one. Default: none. */
  readonly hops?: number | undefined;
  /** Where the router notes each attempt as soon as it is over, so that nothing is lost however the call ends. */
  readonly attempts: Attempt[];
  /** Is told what each attempt sends, when it begins. */
  sending(sent: SentSize): void;
  /** Is told of each attempt that may be billed and was not counted, when it ends. */
  uncounted(attempt: UncountedAttempt): void;
  /**
   * Reserves what another attempt may cost, on top of what earlier ones may be billed. Resolves with why it cannot be made.
   * Called before every attempt but the first.
   */
  reserveAnother(model: Model, sent: SentSize): Promise<Failure | undefined>;
}

/** A whole answer and how it came about. */
export interface Routed {
  readonly model: Model;
  readonly answer: Answer;
  readonly report: Report;
}

/** How a plan is to be carried out. */
export interface Asked {
  readonly mode: Mode;
  readonly rules: SendingRules;
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
  plan(request: CompletionRequest, candidates: readonly Model[], asked: Asked): Plan;
}
