import type { MessageInitShape } from "@bufbuild/protobuf";
import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { EmbeddingRequest } from "../../gen/parley/v1/embedding_pb.js";
import type { Omission, Report } from "../../gen/parley/v1/report_pb.js";
import type { RouteFiguresSchema, RouteReason } from "../../gen/parley/v1/route_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import type { Attempt } from "./attempt.ts";
import type { CallerShare } from "./call.ts";
import type { Failure } from "./failure.ts";
import type { Requirement } from "./labels.ts";
import type { ListedModel, Model } from "./model.ts";
import type { Principal } from "./principal.ts";
import type { RequestState } from "./provider-state.ts";
import type { Route } from "./route.ts";
import type { SendingRules } from "./provider-options.ts";
import type { Answer, CallersBody, CallProgress, EmbeddingAnswer, Emit, SentSize, Translation } from "./provider.ts";
import type { AnswerSize, PromptSize } from "./token-estimate.ts";
import type { Trace } from "./trace.ts";

/** Mode of an answer. */
export type Mode = "whole" | "stream";

/** The candidates of one request in order, with the primary's translation. Runs once. */
export interface Plan {
  /** Size of the prompt, for all candidates. */
  readonly prompt: PromptSize;
  readonly candidates: readonly Model[];
  /** Fields that the primary's translated request lacks. */
  readonly omitted: readonly Omission[];
  /** Size of the primary's translated request. */
  readonly sent: SentSize;

  /** Makes attempts until one returns a whole answer. Throws the final Failure with all attempts. */
  create(call: RouterCall): Promise<Routed>;

  /**
   * Makes attempts until one returns content, and emits `start`, the provider's chunks and `report`. Emits nothing before the
   * first content; makes no other attempt after it. Throws the final Failure with all attempts.
   */
  stream(call: RouterCall, emit: Emit): Promise<void>;

  /**
   * Asks the provider of the first candidate for the input tokens, once. Undefined when its dialect has no count, its circuit breaker
   * is open, or it does not answer in time. Throws the reason of the call's signal.
   */
  count(call: Pick<RouterCall, "signal" | "keyFamilyId" | "accountId" | "hops">): Promise<number | undefined>;
}

/** The attempts of one embedding request: its model with that model's retries, then those that make the same vectors. Runs once. */
export interface EmbeddingPlan extends Pick<Plan, "candidates" | "sent"> {
  /** Makes attempts until one returns vectors. Throws the final Failure with all attempts. */
  create(call: RouterCall): Promise<Routed<EmbeddingAnswer>>;
}

/** An attempt without a token count that the provider may bill. */
export interface UncountedAttempt {
  readonly model: Model;
  /** The reported attempt. */
  readonly attempt: Attempt;
  readonly sent: SentSize;
  readonly progress: CallProgress;
  /** Duration until now. */
  readonly elapsedMs: number;
  /** Whether content was emitted to core. */
  readonly committed: boolean;
  /** Received parts of the answer that were not emitted to core. */
  readonly unseen: AnswerSize | undefined;
  /** The rest of the answer, still being read; undefined when the connection is closed. */
  readonly rest: Rest | undefined;
}

/** The rest of an answer, read after the attempt has ended for the caller. */
export interface Rest {
  /** Resolves at the end of the answer, after `settle_ms`, or after `giveUp`. Never rejects. */
  readonly outcome: Promise<RestOutcome>;
  /** Closes the connection. */
  readonly giveUp: () => void;
}

export interface RestOutcome {
  /** Undefined without a token count. */
  readonly usage: Usage | undefined;
  /** The provider refused the request and bills nothing. */
  readonly refused: boolean;
  /** From the start of the attempt to the end of reading. */
  readonly elapsedMs: number;
  /** Received parts of the answer that were not emitted to core. */
  readonly unseen: AnswerSize | undefined;
}

/** An attempt that has not ended. */
export interface AttemptInFlight {
  readonly model: Model;
  readonly translation: { readonly sent: SentSize };
}

/** What the router needs to know of a call. */
export interface RouterCall {
  readonly completionId: string;
  /** When the request arrived, by the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** Unix seconds. */
  readonly created: number;
  /** Aborts with a Failure as its reason. */
  readonly signal: AbortSignal;
  /** Key family of the caller. */
  readonly keyFamilyId: string;
  /** Account of the caller. */
  readonly accountId: string;
  /** Number of gateways before this one. Default: 0. */
  readonly hops?: number | undefined;
  /** Counts work for the call. Default: it is not counted. */
  readonly share?: CallerShare | undefined;
  /** `Call.trace`. */
  readonly trace?: Trace | undefined;
  /** The router appends each attempt when it ends, so that none is lost however the call ends. */
  readonly attempts: Attempt[];
  /** Called with the size of what was sent when its answer begins, and, of a whole answer, when it is complete. */
  answering(sent: SentSize): void;
  /** Called at the end of each attempt that may be billed and has no token count. */
  uncounted(attempt: UncountedAttempt): void;
  /**
   * Reserves the cost of another attempt, in addition to what earlier attempts, and the one in flight `beside` it, may be
   * billed. Resolves with the Failure when it is refused. Called before every attempt but the first.
   */
  reserveAnother(model: Model, sent: SentSize, beside?: AttemptInFlight): Promise<Failure | undefined>;
}

/** A whole answer and its attempts. */
export interface Routed<A = Answer> {
  readonly model: Model;
  readonly answer: A;
  readonly report: Report;
}

/** Requirements of a plan. */
export interface Asked {
  readonly mode: Mode;
  readonly rules: SendingRules;
  /** What the contract does not have of the request: omitted by every translation, but not by the caller's own body. Default: nothing. */
  readonly unknown?: readonly Omission[];
  /** State of providers in the request. Default: there is none. */
  readonly state?: RequestState | undefined;
  /** `Call.body`. */
  readonly body?: CallersBody | undefined;
  /** Charged for translations after the plan: those for other candidates. */
  readonly share?: CallerShare | undefined;
  /**
   * The caller, whose conversations a route keeps at one target, and by whose tags it may choose. Default: one shared by all plans
   * without.
   */
  readonly caller?: Pick<Principal, "keyFamilyId" | "accountId" | "tags"> | undefined;
  /** What targets of a route must meet. Of other candidates the caller of `plan` has checked it. Default: nothing. */
  readonly requirements?: readonly Requirement[] | undefined;
}

/** Requirements of an explanation. */
export interface ExplainAsked extends Asked {
  /** Whether it may name the tags of other keys and count their calls. Default: false. */
  readonly isForOperator?: boolean | undefined;
}

/** A model's place in a plan, or why it has none. */
export interface ExplainedModel {
  readonly model: Model;
  readonly reason: RouteReason;
  /** In words. */
  readonly message: string;
  /** Undefined for a model that is asked for by its ID. */
  readonly figures: MessageInitShape<typeof RouteFiguresSchema> | undefined;
  /**
   * Returns a Failure for a model that cannot take the request. Reads the whole request. The same function for models for which it
   * returns the same; undefined for those of further kinds.
   */
  readonly translate: (() => ExplainedTranslation | Failure) | undefined;
}

/** A translation without what would be sent. */
export type ExplainedTranslation = Pick<Translation, "omitted" | "clamped" | "sent">;

/** A plan that is not run, with its reasons. */
export interface PlanExplanation extends Pick<Plan, "prompt" | "candidates" | "sent"> {
  /** The first candidate, if it is a route. */
  readonly route: Route | undefined;
  /** One for each of `candidates`. */
  readonly steps: readonly ExplainedModel[];
  /** Targets of the routes that are not among the candidates. */
  readonly leftOut: readonly ExplainedModel[];
}

/** Port of the router: models, and plans that answer requests. */
export interface Router {
  /**
   * The model or route with this name; undefined when there is none. With a caller also by the aliases of its account, and with its
   * account's own credentials.
   */
  find(name: string, caller?: Pick<Principal, "accountId" | "routing">): Model | Route | undefined;
  /** All models, then all routes, in the order of the configuration: the same list until they are replaced. */
  list(): readonly ListedModel[];

  /**
   * Plans the attempts. A route stands for its targets; of the first route's the primary is the first that is not known to be
   * down and loses nothing of the request, if there is one. Throws `invalid_request` when the primary does not support the
   * request, or, for a strict request, when a field would be omitted or clamped; of a route, when no target is left.
   */
  plan(request: CompletionRequest, candidates: readonly (Model | Route)[], asked: Asked): Plan;

  /** The plan that `plan` would make now, and why. Changes nothing, so that the next plan is the same. Throws what `plan` throws. */
  explain(request: CompletionRequest, candidates: readonly (Model | Route)[], asked: ExplainAsked): PlanExplanation;

  /** The same for embeddings. Throws `invalid_request` for more inputs than the provider takes, too. */
  planEmbeddings(request: EmbeddingRequest, candidates: readonly Model[]): EmbeddingPlan;
}
