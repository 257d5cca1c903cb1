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

/** The attempts of one embedding request: its model with retries, then the models that make the same vectors. Runs once. */
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
  /**
   * Whether the gateway has closed the connection and the provider may generate the whole answer nevertheless: it is not streamed, or the
   * provider generates on (`Model.billsClosedStreams`).
   */
  readonly mayBillRest: boolean;
  /** Whether content was emitted to core. */
  readonly committed: boolean;
  /** Received parts of the answer that were not emitted to core. */
  readonly unseen: AnswerSize | undefined;
  /** The provider's count, where it failed with one. */
  readonly usage?: Usage | undefined;
  /** The rest of the answer, still being read; undefined when the connection is closed. */
  readonly remainder: Remainder | undefined;
}

/** The rest of an answer, read after the attempt has ended for the caller. */
export interface Remainder {
  /** Resolves at the end of the answer, after `settle_ms`, or after `giveUp`. Never rejects. */
  readonly outcome: Promise<RemainderOutcome>;
  /** Closes the connection. */
  readonly giveUp: () => void;
}

export interface RemainderOutcome {
  /** Undefined without a token count. */
  readonly usage: Usage | undefined;
  /** The provider refused the request and bills nothing. */
  readonly refused: boolean;
  /** From the start of the attempt to the end of reading. */
  readonly elapsedMs: number;
  /** As `UncountedAttempt.mayBillRest`, at the end of reading. */
  readonly mayBillRest: boolean;
  /** Received parts of the answer that were not emitted to core. */
  readonly unseen: AnswerSize | undefined;
}

/** An attempt that has not ended. */
export interface AttemptInFlight {
  readonly model: Model;
  readonly translation: { readonly sent: SentSize };
}

/** The facts of a call that the router needs. */
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
  /** Charges the caller for the work of the call. Default: it is not counted. */
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
   * Reserves the cost of another attempt, in addition to the cost of earlier attempts and of the attempt in flight `beside` it.
   * Resolves with the Failure when it is refused. Called before every attempt but the first.
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
  /** Fields that the contract does not have: every translation omits them, except the caller's own body. Default: none. */
  readonly unknown?: readonly Omission[];
  /** State of providers in the request. Default: there is none. */
  readonly state?: RequestState | undefined;
  /** `Call.body`. */
  readonly body?: CallersBody | undefined;
  /** Charged for translations after the plan: those for other candidates. */
  readonly share?: CallerShare | undefined;
  /**
   * The caller. A route keeps the caller's conversations at one target, and may select targets by the key's tags. Plans without
   * a caller count as one caller.
   */
  readonly caller?: Pick<Principal, "keyFamilyId" | "accountId" | "tags"> | undefined;
  /** Requirements for the targets of a route. The caller of `plan` has checked other candidates. Default: none. */
  readonly requirements?: readonly Requirement[] | undefined;
}

/** Requirements of an explanation. */
export interface ExplainAsked extends Asked {
  /** Whether the explanation may show tags of other keys and the number of their calls. Default: false. */
  readonly isForOperator?: boolean | undefined;
}

/** A model's place in a plan, or why it has none. */
export interface ExplainedModel {
  readonly model: Model;
  readonly reason: RouteReason;
  /** The reason in words. */
  readonly message: string;
  /** Undefined for a model that the request names by its ID. */
  readonly figures: MessageInitShape<typeof RouteFiguresSchema> | undefined;
  /**
   * Translates the whole request; returns a Failure when the model cannot serve it. Models with the same result share one function.
   * Undefined for models beyond the limit of kinds that are translated.
   */
  readonly translate: (() => ExplainedTranslation | Failure) | undefined;
}

/** A translation without its body. */
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
   * The model or route with this name; undefined when there is none. A caller's account adds its aliases, and its own credentials
   * for providers.
   */
  find(name: string, caller?: Pick<Principal, "accountId" | "routing">): Model | Route | undefined;
  /** All models, then all routes, in the order of the configuration. Returns the same array until a reload. */
  list(): readonly ListedModel[];

  /**
   * Plans the attempts. A route is replaced by its targets. If the first candidate is a route, the primary is its first target that
   * is not known to be down and loses no field of the request, if there is one. Throws `invalid_request` when the primary does not
   * support the request, when no target of a route is left, or, for a strict request, when a field would be omitted or clamped.
   */
  plan(request: CompletionRequest, candidates: readonly (Model | Route)[], asked: Asked): Plan;

  /** The plan that `plan` would make now, with reasons. Changes no state of the router. Throws what `plan` throws. */
  explain(request: CompletionRequest, candidates: readonly (Model | Route)[], asked: ExplainAsked): PlanExplanation;

  /** Plans the attempts of an embedding request, as `plan`. Also throws `invalid_request` for more inputs than the provider takes. */
  planEmbeddings(request: EmbeddingRequest, candidates: readonly Model[]): EmbeddingPlan;
}
