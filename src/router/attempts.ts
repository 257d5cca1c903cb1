import type { CompletionChunk, Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt, Report } from "../../gen/parley/v1/report_pb.js";
import { type Clock, sleep } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import type { Answer, Translation, UpstreamCall } from "../core/provider.ts";
import type { RestOutcome, RouterCall } from "../core/router.ts";
import { addDelta, type AnswerSize, sizeOfChoices } from "../core/token-estimate.ts";
import type { Breaker, BreakerPermit } from "./breaker.ts";
import { type AttemptPlan, translate } from "./plan.ts";
import { backoffMs, type BackoffOptions, type RetryBudget } from "./retry-budget.ts";

/** What attempts are decided by. */
export interface AttemptPorts {
  readonly clock: Clock;
  /** Gives 0 to 1. */
  readonly random: () => number;
  readonly backoff: BackoffOptions;
  readonly breakerOf: (model: Model) => Breaker;
  readonly budgetOf: (model: Model) => RetryBudget;
}

/** One call of an upstream model. Exactly one of `AttemptRun`'s `served` and `failed` ends it. */
export interface RunningAttempt {
  readonly model: Model;
  readonly call: UpstreamCall;
  readonly permit: BreakerPermit;
  readonly limit: TimeLimit;
  readonly translation: Translation;
  readonly startedMs: number;
  /** The provider's work, which may outlast the attempt. */
  work: Promise<Answer | void> | undefined;
  /** What the provider said that core was not given. */
  unseen: UnseenAnswer | undefined;
}

/** Measures what the provider says and core does not see. */
export class UnseenAnswer {
  readonly size: AnswerSize = { textTokens: 0, pictures: 0 };
  usage: Usage | undefined;

  add(batch: readonly CompletionChunk[]): void {
    for (const { event } of batch) {
      if (event.case === "delta") addDelta(this.size, event.value);
      else if (event.case === "usage") this.usage = event.value;
    }
  }
}

/** Retries of the primary after its first attempt. */
const PRIMARY_RETRIES = 1;

const NOTHING = Buffer.alloc(0);

/**
 * Runs a plan: decides, after each failure, what is tried next, and notes every attempt. Used the same way for whole
 * answers and for streams; see `router.ts`.
 */
export class AttemptRun {
  readonly #plan: AttemptPlan;
  readonly #call: RouterCall;
  readonly #ports: AttemptPorts;
  readonly #overall: TimeLimit;
  readonly #endRequest: () => void;
  /** The next candidate, by its index in the plan. */
  #next = 0;
  #begun = 0;
  #retries = 0;
  /** What the caller is told when nothing serves: the primary's failure. */
  #primaryFailure: Failure | undefined;
  #giveBack: (() => void) | undefined;
  #upstreamMs = 0;

  constructor(plan: AttemptPlan, call: RouterCall, ports: AttemptPorts) {
    this.#plan = plan;
    this.#call = call;
    this.#ports = ports;
    const [primary] = plan.candidates as [Model, ...Model[]];
    this.#overall = new TimeLimit(call.signal, ports.clock);
    this.#overall.start(primary.timeouts.totalMs, "The completion took longer than this gateway allows.");
    this.#endRequest = ports.budgetOf(primary).begin();
  }

  /** Begins the next attempt of the plan. Throws the final failure when there is none, or no time for it. */
  async next(): Promise<RunningAttempt> {
    for (;;) {
      this.#throwIfOver();
      const waitMs = this.#retryWaitMs();
      if (waitMs !== undefined) await this.#pause(waitMs);
      const model = this.#plan.candidates[this.#next];
      if (model === undefined) throw this.#noneLeft();
      const attempt = this.#begun === 0 ? this.#begin(model) : await this.#beginAnother(model);
      this.#next += 1;
      if (attempt === undefined) continue;
      this.#begun += 1;
      return attempt;
    }
  }

  /** The attempt's stream has content, which its caller is given: there is no attempt after this one. */
  committed({ limit, permit, translation }: RunningAttempt): void {
    limit.stop();
    permit.committed();
    this.#plan.primary.body = NOTHING;
    translation.body = NOTHING;
  }

  /** The attempt gave a whole answer, or the end of a stream. */
  served(attempt: RunningAttempt): Report {
    attempt.permit.succeeded();
    this.#note(attempt.model, "served", { startedMs: attempt.startedMs, upstreamStatus: 200 });
    const { omitted, clamped } = attempt.translation;
    return {
      $typeName: "parley.v1.Report",
      attempts: this.#call.attempts,
      omitted: [...omitted],
      clamped: [...clamped],
      upstreamMs: this.#upstreamMs,
    };
  }

  /** The attempt failed. Throws when that is final: the caller is gone, time is up, or content was already given. */
  failed(attempt: RunningAttempt, reason: unknown, { committed }: { readonly committed: boolean }): void {
    const over = this.#overall.isOver;
    const { limit } = attempt;
    let failure = Failure.from(over ? this.#overall.reason : limit.isOver ? limit.reason : reason);
    // Neither the caller's end nor the end of all time says anything about this one model.
    if (over) attempt.permit.abandoned();
    else {
      const openMs = attempt.permit.failed(failure);
      // Trying again before the rest is over would only be refused.
      if (openMs !== undefined) failure = failure.with({ retryAfterMs: Math.max(openMs, failure.retryAfterMs ?? 0) });
    }
    // Content came with a 2xx, whatever went wrong after it.
    const upstreamStatus = failure.upstreamStatus ?? (committed ? 200 : undefined);
    this.#note(attempt.model, failure.code, { startedMs: attempt.startedMs, failure, upstreamStatus });
    if ((committed || !failure.refused) && !attempt.call.progress!.unsent) this.#tellUncounted(attempt, committed);
    else if (limit.isOver) limit.giveUp();
    if (attempt.model === this.#plan.candidates[0]) this.#primaryFailure = failure;
    if (over || committed || !isUpstreamFailure(failure)) throw failure.with({ attempts: this.#call.attempts });
  }

  /** Ends every timer of the run. Must be called however it ends. */
  close(): void {
    this.#overall.close();
    this.#endRequest();
    this.#giveBack?.();
  }

  /** Milliseconds spent waiting for upstreams so far: attempts, the running one included, and the backoff between them. */
  upstreamMs(attempt: RunningAttempt): number {
    return this.#upstreamMs + this.#ports.clock.monotonic() - attempt.startedMs;
  }

  #tellUncounted(running: RunningAttempt, committed: boolean): void {
    const { model, call, translation, startedMs, limit, unseen } = running;
    this.#call.uncounted({
      model,
      attempt: this.#call.attempts.at(-1)!,
      sent: translation.sent,
      progress: call.progress!,
      elapsedMs: limit.workEndedMs - startedMs,
      committed,
      unseen: unseen?.size,
      rest: limit.settles ? { outcome: outcomeOf(running, committed), giveUp: () => limit.giveUp() } : undefined,
    });
  }

  /** As `#begin`, for an attempt that follows others, for which more money may have to be reserved. */
  async #beginAnother(model: Model): Promise<RunningAttempt | undefined> {
    const translation = this.#translate(model);
    if (translation instanceof Failure) return this.#skip(model, translation);
    const refusal = await this.#call.reserveAnother(model, translation.sent);
    this.#throwIfOver();
    return refusal === undefined ? this.#begin(model, translation) : this.#skip(model, refusal);
  }

  #begin(model: Model, translation = this.#translate(model)): RunningAttempt | undefined {
    if (translation instanceof Failure) return this.#skip(model, translation);
    const permit = this.#ports.breakerOf(model).admit();
    if (permit instanceof Failure) {
      if (model === this.#plan.candidates[0]) this.#primaryFailure ??= permit;
      return this.#skip(model, permit, "circuit breaker open");
    }
    const { firstContentMs, idleMs, settleMs } = model.timeouts;
    const limit = new TimeLimit(this.#overall, this.#ports.clock, settleMs);
    const limitMs = this.#plan.mode === "whole" && !translation.streamed ? firstContentMs + idleMs : firstContentMs;
    limit.start(limitMs, "The upstream provider did not answer in time.");
    const { hops, keyFamilyId, accountId } = this.#call;
    const { upstream } = model;
    this.#call.sending(translation.sent);
    const { signal } = limit;
    const progress = { unsent: false };
    const call: UpstreamCall = { model: upstream, translation, signal, idleMs, progress, keyFamilyId, accountId, hops };
    return {
      model,
      call,
      permit,
      limit,
      translation,
      startedMs: this.#ports.clock.monotonic(),
      work: undefined,
      unseen: undefined,
    };
  }

  #translate(model: Model): Translation | Failure {
    const { request, candidates, primary } = this.#plan;
    if (model === candidates[0]) return primary;
    try {
      return translate(request, model, this.#plan);
    } catch (reason) {
      // What this model cannot take, the next one may; anything else is a fault of ours and must not be hidden.
      if (reason instanceof Failure) return reason;
      throw reason;
    }
  }

  /** How long to wait before the primary is tried once more; undefined when it is not. Moves the plan back to it. */
  #retryWaitMs(): number | undefined {
    this.#giveBack?.();
    this.#giveBack = undefined;
    const [primary] = this.#plan.candidates as [Model, ...Model[]];
    const failure = this.#primaryFailure;
    if (this.#next !== 1 || failure === undefined || this.#retries >= PRIMARY_RETRIES) return undefined;
    const waitMs = backoffMs(failure, this.#retries, { options: this.#ports.backoff, random: this.#ports.random });
    if (waitMs === undefined) return undefined;
    // A rate limit's own rest is over when the wait is; any other rest says that a retry is not worth it.
    const rests = failure.code !== "upstream_rate_limited" && this.#ports.breakerOf(primary).state !== "closed";
    if (rests) return undefined;
    this.#giveBack = this.#ports.budgetOf(primary).take();
    if (this.#giveBack === undefined) return undefined;
    this.#retries += 1;
    this.#next = 0;
    return waitMs;
  }

  async #pause(waitMs: number): Promise<void> {
    const beganMs = this.#ports.clock.monotonic();
    await sleep(this.#ports.clock, waitMs, this.#overall.signal);
    this.#upstreamMs += this.#ports.clock.monotonic() - beganMs;
    this.#throwIfOver();
  }

  #throwIfOver(): void {
    const { isOver, reason } = this.#overall;
    if (isOver) throw Failure.from(reason).with({ attempts: this.#call.attempts });
  }

  #noneLeft(): Failure {
    const failure = this.#primaryFailure ?? new Failure("upstream_unavailable", "No upstream model is available.");
    return failure.with({ attempts: this.#call.attempts });
  }

  #skip(model: Model, failure: Failure, why = failure.message): undefined {
    this.#note(model, "skipped", { reason: why });
  }

  #note(
    model: Model,
    outcome: string,
    { startedMs, failure, upstreamStatus = failure?.upstreamStatus, reason = failure?.message ?? "" }: AttemptNote,
  ): void {
    const nowMs = this.#ports.clock.monotonic();
    const beganMs = startedMs ?? nowMs;
    this.#upstreamMs += nowMs - beganMs;
    const attempt: Attempt = {
      $typeName: "parley.v1.Attempt",
      model: model.id,
      outcome,
      reason,
      durationMs: Math.round(nowMs - beganMs),
      startMs: Math.round(beganMs - this.#call.arrivedMs),
    };
    if (upstreamStatus !== undefined) attempt.upstreamStatus = upstreamStatus;
    this.#call.attempts.push(attempt);
  }
}

interface AttemptNote {
  readonly startedMs?: number;
  readonly failure?: Failure;
  readonly upstreamStatus?: number | undefined;
  readonly reason?: string;
}

/** What the provider says until the end of its work, or of the time to settle. */
async function outcomeOf(attempt: RunningAttempt, committed: boolean): Promise<RestOutcome> {
  const { work, limit } = attempt;
  let answer: Answer | undefined;
  let refused = false;
  try {
    answer = (await work) ?? undefined;
  } catch (reason) {
    refused = reason instanceof Failure && reason.refused && !committed && attempt.unseen === undefined;
  }
  const { unseen } = attempt;
  const usage = answer?.usage ?? unseen?.usage;
  return {
    usage,
    refused,
    elapsedMs: limit.workEndedMs - attempt.startedMs,
    unseen: unseen?.size ?? (answer && sizeOfChoices(answer.choices)),
  };
}

/** Only what the provider's side did wrong lets another model try. */
function isUpstreamFailure(failure: Failure): boolean {
  return failure.code.startsWith("upstream_");
}

/**
 * Ends with a signal or another limit, its parent, or by itself with `upstream_timeout` when its time is up. `signal` aborts
 * then, but after the parent's end only `settleMs` later: a provider whose caller has left may still say what it counted.
 */
export class TimeLimit {
  /** Made when it is asked for: to follow a limit by its signal costs more than the rest of both. */
  #controller: AbortController | undefined;
  #hasAborted = false;
  readonly #parent: AbortSignal | TimeLimit;
  /** The limit that ends with this one: there is one attempt at a time. */
  #child: TimeLimit | undefined;
  readonly #clock: Clock;
  readonly #settleMs: number;
  readonly #follow = (): void => this.#end(this.#parent.reason, this.#settleMs);
  #cancelTimer: (() => void) | undefined;
  #cancelSettling: (() => void) | undefined;
  #isOver = false;
  #settles = false;
  #reason: unknown;
  #reject: ((reason: unknown) => void) | undefined;
  #release: (() => void) | undefined;
  #room: Promise<void> | undefined;
  #workEndedMs: number | undefined;

  constructor(parent: AbortSignal | TimeLimit, clock: Clock, settleMs = 0) {
    this.#parent = parent;
    this.#clock = clock;
    this.#settleMs = settleMs;
    if (parent instanceof TimeLimit ? parent.isOver : parent.aborted) this.#follow();
    else if (parent instanceof TimeLimit) parent.#child = this;
    else parent.addEventListener("abort", this.#follow, { once: true });
  }

  /** For whom does the work: aborts when it is no longer listened to. */
  get signal(): AbortSignal {
    if (this.#controller === undefined) {
      this.#controller = new AbortController();
      if (this.#hasAborted) this.#controller.abort(this.#reason);
    }
    return this.#controller.signal;
  }

  get isOver(): boolean {
    return this.#isOver;
  }

  /** Whether it is over and the work is listened to beyond that. */
  get settles(): boolean {
    return this.#settles;
  }

  /** When work that went on ended, by the clock's `monotonic`: now, if it has not. */
  get workEndedMs(): number {
    return this.#workEndedMs ?? this.#clock.monotonic();
  }

  /** Why it is over. */
  get reason(): unknown {
    return this.#reason;
  }

  start(limitMs: number, message: string): void {
    this.#cancelTimer = this.#clock.after(limitMs, () => this.#end(new Failure("upstream_timeout", message), 0));
  }

  /**
   * Settles as `work` does, or rejects with the reason when this is over before; the work may go on then. That waits for what
   * the caller is being given.
   */
  race<T>(work: Promise<T>): Promise<T> {
    return new Promise((resolve, reject) => {
      if (this.#isOver) reject(this.#reason);
      this.#reject = reject;
      work.then(
        (result) => (this.#isOver ? this.#workEnded() : resolve(result)),
        (reason: unknown) => (this.#isOver ? this.#workEnded() : reject(reason)),
      );
    });
  }

  /** Settles as `room` does, or resolves when this is over. */
  unlessOver(room: Promise<void>): Promise<void> {
    this.#room = room;
    return new Promise((resolve, reject) => {
      this.#release = resolve;
      room.then(resolve, (reason: unknown) => (this.#isOver ? resolve() : reject(reason)));
    });
  }

  /** The time limit no longer applies; the parent's signal still does. */
  stop(): void {
    this.#cancelTimer?.();
  }

  /** Ends the time to settle. */
  giveUp(): void {
    this.#cancelSettling?.();
    this.#abort();
  }

  /** Ends every timer but that of the time to settle. */
  close(): void {
    this.#cancelTimer?.();
    if (!(this.#parent instanceof TimeLimit)) this.#parent.removeEventListener("abort", this.#follow);
    else if (this.#parent.#child === this) this.#parent.#child = undefined;
  }

  #abort(): void {
    this.#hasAborted = true;
    this.#controller?.abort(this.#reason);
  }

  #workEnded(): void {
    this.#workEndedMs = this.#clock.monotonic();
    this.#cancelSettling?.();
  }

  #end(reason: unknown, settleMs: number): void {
    if (this.#isOver) return;
    this.#isOver = true;
    this.#settles = settleMs > 0;
    this.#reason = reason;
    this.#cancelTimer?.();
    if (settleMs === 0) this.#abort();
    else this.#cancelSettling = this.#clock.after(settleMs, () => this.#abort());
    if (this.#child !== undefined) this.#child.#follow();
    this.#release?.();
    const reject = (): void => this.#reject?.(reason);
    if (this.#room === undefined) reject();
    else this.#room.then(reject, reject);
  }
}
