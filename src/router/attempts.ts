import type { Attempt, Report } from "../../gen/parley/v1/report_pb.js";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import type { Translation, UpstreamCall } from "../core/provider.ts";
import type { RouterCall } from "../core/router.ts";
import { type BackoffOptions, backoffMs } from "./backoff.ts";
import type { Breaker, Pass } from "./breaker.ts";
import { type AttemptPlan, refuseLosses } from "./plan.ts";
import type { RetryBudget } from "./retry-budget.ts";

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
  readonly pass: Pass;
  readonly limit: TimeLimit;
  readonly translation: Translation;
  readonly startedMs: number;
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
      const attempt = this.#begin(model);
      this.#next += 1;
      if (attempt !== undefined) return attempt;
    }
  }

  /** The attempt's stream has content, which its caller is given: there is no attempt after this one. */
  committed({ limit, pass, translation }: RunningAttempt): void {
    limit.stop();
    pass.committed();
    this.#plan.primary.body = NOTHING;
    translation.body = NOTHING;
  }

  /** The attempt gave a whole answer, or the end of a stream. */
  served(attempt: RunningAttempt): Report {
    attempt.pass.succeeded();
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
    const over = this.#overall.signal.aborted;
    let failure = Failure.from(
      over ? this.#overall.signal.reason : attempt.limit.signal.aborted ? attempt.limit.signal.reason : reason,
    );
    // Neither the caller's end nor the end of all time says anything about this one model.
    if (over) attempt.pass.abandoned();
    else {
      const restMs = attempt.pass.failed(failure);
      // Trying again before the rest is over would only be refused.
      if (restMs !== undefined) failure = failure.with({ retryAfterMs: Math.max(restMs, failure.retryAfterMs ?? 0) });
    }
    // Content came with a 2xx, whatever went wrong after it.
    const upstreamStatus = failure.upstreamStatus ?? (committed ? 200 : undefined);
    this.#note(attempt.model, failure.code, { startedMs: attempt.startedMs, failure, upstreamStatus });
    if (attempt.model === this.#plan.candidates[0]) this.#primaryFailure = failure;
    if (over || committed || !isUpstreamFailure(failure)) throw failure.with({ attempts: this.#call.attempts });
  }

  /** Ends every timer of the run. Must be called however it ends. */
  close(): void {
    this.#overall.close();
    this.#endRequest();
    this.#giveBack?.();
  }

  /** Milliseconds spent with upstreams so far, an attempt under way included. */
  upstreamMs(attempt: RunningAttempt): number {
    return this.#upstreamMs + this.#ports.clock.monotonic() - attempt.startedMs;
  }

  #begin(model: Model): RunningAttempt | undefined {
    const translation = this.#translate(model);
    if (translation instanceof Failure) return this.#skip(model, translation);
    const pass = this.#ports.breakerOf(model).admit();
    if (pass instanceof Failure) {
      if (model === this.#plan.candidates[0]) this.#primaryFailure ??= pass;
      return this.#skip(model, pass, "resting after failures");
    }
    const limit = new TimeLimit(this.#overall.signal, this.#ports.clock);
    const { firstContentMs, idleMs } = model.timeouts;
    const limitMs = this.#plan.mode === "whole" && !translation.streamed ? firstContentMs + idleMs : firstContentMs;
    limit.start(limitMs, "The upstream provider did not answer in time.");
    const { hops, lineId } = this.#call;
    const call: UpstreamCall = { model: model.upstream, translation, signal: limit.signal, idleMs, lineId, hops };
    return { model, call, pass, limit, translation, startedMs: this.#ports.clock.monotonic() };
  }

  #translate(model: Model): Translation | Failure {
    const { request, candidates, mode, primary } = this.#plan;
    if (model === candidates[0]) return primary;
    try {
      const translation = model.provider.translate(request, model.upstream, mode);
      return (request.strict ? refuseLosses(model, translation) : undefined) ?? translation;
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
    const { signal } = this.#overall;
    await new Promise<void>((resolve) => {
      const cancel = this.#ports.clock.after(waitMs, () => {
        signal.removeEventListener("abort", stop);
        resolve();
      });
      const stop = (): void => {
        cancel();
        resolve();
      };
      signal.addEventListener("abort", stop, { once: true });
    });
    this.#throwIfOver();
  }

  #throwIfOver(): void {
    const { signal } = this.#overall;
    if (signal.aborted) throw Failure.from(signal.reason).with({ attempts: this.#call.attempts });
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
    const tookMs = startedMs === undefined ? 0 : this.#ports.clock.monotonic() - startedMs;
    this.#upstreamMs += tookMs;
    const attempt: Attempt = {
      $typeName: "parley.v1.Attempt",
      model: model.id,
      outcome,
      reason,
      durationMs: Math.round(tookMs),
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

/** Only what the provider's side did wrong lets another model try. */
function isUpstreamFailure(failure: Failure): boolean {
  return failure.code.startsWith("upstream_");
}

/** A signal that follows another one, and aborts by itself with `upstream_timeout` when its time is up. */
export class TimeLimit {
  readonly #controller = new AbortController();
  readonly #parent: AbortSignal;
  readonly #follow = (): void => this.#controller.abort(this.#parent.reason);
  readonly #clock: Clock;
  #cancelTimer: (() => void) | undefined;

  constructor(parent: AbortSignal, clock: Clock) {
    this.#parent = parent;
    this.#clock = clock;
    if (parent.aborted) this.#follow();
    else parent.addEventListener("abort", this.#follow, { once: true });
  }

  get signal(): AbortSignal {
    return this.#controller.signal;
  }

  start(limitMs: number, message: string): void {
    this.#cancelTimer = this.#clock.after(limitMs, () =>
      this.#controller.abort(new Failure("upstream_timeout", message)),
    );
  }

  /** The time limit no longer applies; the parent's signal still does. */
  stop(): void {
    this.#cancelTimer?.();
  }

  close(): void {
    this.#cancelTimer?.();
    this.#parent.removeEventListener("abort", this.#follow);
  }
}
