import type { Report } from "../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import { type Attempt, toAttemptMessage, toDuration } from "../core/attempt.ts";
import { type Clock, sleep } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Model } from "../core/model.ts";
import type { Translation, UpstreamCall } from "../core/provider.ts";
import { releaseMemory } from "../core/release-memory.ts";
import type { RouterCall } from "../core/router.ts";
import type { Breaker } from "./breaker.ts";
import type { ContentTimes, Hedging } from "./hedging.ts";
import type { AttemptPlan } from "./plan.ts";
import { backoffMs, type BackoffOptions, type RetryBudget } from "./retry-budget.ts";
import { outcomeOf, type RunningAttempt, timesOf } from "./running-attempt.ts";
import { TimeLimit } from "./time-limit.ts";
import type { UpstreamLoad } from "./upstream-load.ts";

/** Ports and options of attempts. */
export interface AttemptPorts {
  readonly clock: Clock;
  /** Random number from 0 to 1. */
  readonly random: () => number;
  /** Returns the options in force now; a reload may change them. */
  readonly backoff: () => BackoffOptions;
  readonly breakerOf: (model: Model) => Breaker;
  readonly budgetOf: (model: Model) => RetryBudget;
  readonly loadOf: (model: Model) => UpstreamLoad;
  /** Hedges of the requested name, of a plan with `hedge`. */
  readonly hedgingOf: (name: string) => Hedging;
  /** Times of first attempts that may be hedged: to the first content, or to the end of a whole answer that is not `streamed`. */
  readonly contentTimesOf: (model: Model, streamed: boolean) => ContentTimes;
}

/** Retries of the primary after its first attempt. */
const PRIMARY_RETRIES = 1;

/** Statuses of a provider that cannot look up the content that a request names. A wrong configuration of this gateway has them too. */
const ABOUT_CONTENT: ReadonlySet<number> = new Set([400, 403, 404]);

const NOTHING = Buffer.alloc(0);
const NONE: readonly RunningAttempt[] = [];

/**
 * Runs a plan: decides after each failure which attempt follows, and records every attempt. `router.ts` uses it for whole answers
 * and for streams.
 */
export class AttemptRun {
  readonly #plan: AttemptPlan;
  readonly #call: RouterCall;
  readonly #ports: AttemptPorts;
  readonly #backoff: BackoffOptions;
  readonly #overall: TimeLimit;
  readonly #endRequest: () => void;
  /** Index of the next candidate in the plan. */
  #next = 0;
  #retries = 0;
  /** Failure of the primary, which is returned when no candidate answers. */
  #primaryFailure: Failure | undefined;
  #releaseRetry: (() => void) | undefined;
  /** Number of attempts in flight: two of a hedged request. */
  #inFlight = 0;
  /** Time since which at least one attempt has been in flight. */
  #busySinceMs = 0;
  #upstreamMs = 0;
  readonly #hedging: Hedging | undefined;
  /** Attempts in flight of a request that may be hedged. */
  #running: readonly RunningAttempt[] = NONE;
  #hedge: RunningAttempt | undefined;
  /** The attempt that has content. */
  #winner: RunningAttempt | undefined;
  #endHedge: (() => void) | undefined;
  /** Whether the bytes of the request to the primary may still be written: by an attempt that ended early. */
  #isWriting = false;
  /** Ends the wait for the time of the hedge. */
  #stopWaiting: (() => void) | undefined;

  constructor(plan: AttemptPlan, call: RouterCall, ports: AttemptPorts) {
    this.#plan = plan;
    this.#call = call;
    this.#ports = ports;
    this.#backoff = ports.backoff();
    const [primary] = plan.candidates as [Model, ...Model[]];
    this.#overall = new TimeLimit(call.signal, ports.clock);
    this.#overall.start(primary.timeouts.totalMs, "The completion took longer than this gateway allows.");
    this.#endRequest = ports.budgetOf(primary).begin();
    if (plan.hedge !== undefined) {
      this.#hedging = ports.hedgingOf(plan.hedge.name);
      this.#hedging.count(call.accountId);
    }
  }

  /** Starts the next attempt of the plan. Throws the final failure when no candidate or no time is left. */
  async next(): Promise<RunningAttempt> {
    for (;;) {
      this.#throwIfOver();
      const waitMs = this.#retryWaitMs();
      if (waitMs !== undefined) await this.#pause(waitMs);
      const model = this.#plan.candidates[this.#next];
      if (model === undefined) throw this.#noneLeft();
      // The reservation of the call covers the primary's first attempt.
      const attempt = this.#isFirst ? this.#begin(model) : await this.#beginAnother(model);
      this.#next += 1;
      if (attempt !== undefined) return attempt;
    }
  }

  /** Whether `hedge` may start a second attempt beside this one. */
  isHedged(attempt: RunningAttempt): boolean {
    return this.#hedging !== undefined && attempt.isFirst;
  }

  /**
   * Starts the next attempt of the plan beside the first one when the first one has no content in time, and breaker, budgets and
   * limits permit it. Otherwise resolves with undefined, as soon as that is known.
   */
  async hedge(first: RunningAttempt): Promise<RunningAttempt | undefined> {
    const afterMs = this.#hedgeAfterMs(first);
    if (afterMs === undefined) return undefined;
    await new Promise<void>((resolve) => {
      const cancel = this.#ports.clock.after(afterMs, resolve);
      this.#stopWaiting = () => {
        cancel();
        resolve();
      };
    });
    const model = this.#hedgeModel;
    const mayBegin = (): boolean => this.#waits(first) && this.#ports.breakerOf(model).mayAdmit(this.#call.accountId);
    if (!mayBegin()) return undefined;
    const translation = this.#translate(model);
    if (translation instanceof Failure) return undefined;
    const hedging = this.#hedging!;
    const release = this.#permitHedge(hedging);
    if (release === undefined) return undefined;
    const isPaid = (await this.#call.reserveAnother(model, translation.sent, first)) === undefined;
    const hedge = isPaid && mayBegin() ? this.#begin(model, translation) : undefined;
    if (hedge === undefined) {
      hedging.giveUp(this.#call.accountId);
      release();
      return undefined;
    }
    hedging.start(this.#call.accountId);
    this.#hedge = hedge;
    this.#endHedge = release;
    // A hedge is the plan's next attempt, started early: that of the next target, or the retry of the same model.
    if (model === first.model) this.#retries += 1;
    else this.#next += 1;
    return hedge;
  }

  /** Call it when the attempt has content. Ends the other attempt in flight; throws when that one had content first. */
  won(attempt: RunningAttempt): void {
    if (this.#hedging === undefined || attempt === this.#winner) return;
    if (attempt.isLost) throw attempt.limit.reason;
    this.#noteContentTime(attempt);
    this.#winner = attempt;
    this.#stopWaiting?.();
    if (attempt === this.#hedge) this.#hedging.counts.won += 1;
    this.#endOthers(attempt, "Another attempt was faster.");
  }

  /** Call it when the attempt has its whole answer. Throws when a stream had no content, or another attempt had content first. */
  answered(attempt: RunningAttempt): void {
    if (attempt.committed) return;
    if (this.#plan.mode === "stream")
      throw new Failure("upstream_protocol", "The upstream model returned no usable output.");
    this.won(attempt);
  }

  /** Commits to the attempt: its content goes to the caller, and no other attempt follows. */
  committed(attempt: RunningAttempt): void {
    this.won(attempt);
    attempt.committed = true;
    attempt.firstContentMs = this.#ports.clock.monotonic();
    const { call, limit, permit, loaded, translation } = attempt;
    if (call.trace !== undefined) call.trace.firstContentMs = attempt.firstContentMs;
    this.#call.answering(translation.sent);
    limit.stop();
    permit.committed();
    loaded.answered();
    this.#dropSent(attempt);
  }

  /** Ends the attempt with a whole answer or the end of its stream. */
  served(attempt: RunningAttempt): Report {
    this.#call.answering(attempt.translation.sent);
    this.#ended(attempt);
    attempt.permit.succeeded();
    attempt.loaded.end("answered");
    this.#dropSent(attempt);
    this.#note(attempt.model, "served", { running: attempt, upstreamStatus: 200 });
    const { omitted, clamped } = attempt.translation;
    const { candidates, targets } = this.#plan;
    return {
      $typeName: "parley.v1.Report",
      attempts: this.#call.attempts.map(toAttemptMessage),
      omitted: [...omitted],
      clamped: [...clamped],
      targets: candidates.slice(0, targets).map(({ id }) => id),
      upstreamDuration: toDuration(this.#upstreamMs),
    };
  }

  /** Drops the bytes of the request, which no other attempt sends. The two attempts of a hedged request may still write the same ones. */
  #dropSent({ call, translation }: RunningAttempt): void {
    if (call.progress!.isWritten === true && this.#hedging === undefined) releaseMemory([translation.body]);
    this.#plan.primary.body = NOTHING;
    translation.body = NOTHING;
  }

  /** As `#dropSent`, after a failure. Another attempt may send the bytes of the primary's request again. */
  #dropFailed({ call, translation }: RunningAttempt): void {
    const isWritten = call.progress!.isWritten === true;
    if (translation === this.#plan.primary) this.#isWriting ||= !isWritten;
    else if (isWritten && this.#hedging === undefined) releaseMemory([translation.body]);
  }

  /** Ends the attempt with a failure. Throws when it is final: caller disconnected, deadline passed, or content was sent. */
  failed(attempt: RunningAttempt, reason: unknown): void {
    if (attempt.isLost) return;
    const { committed } = attempt;
    this.#ended(attempt);
    const over = this.#overall.isOver;
    const { limit } = attempt;
    let failure = Failure.from(over ? this.#overall.reason : limit.isOver ? limit.reason : reason);
    if (this.#plan.namesContent && failure.refused && ABOUT_CONTENT.has(failure.upstreamStatus ?? 0))
      failure = failure.with({ requestBound: true });
    const isOfRequest =
      over ||
      failure.requestBound ||
      failure.code === "upstream_rejected" ||
      this.#ports.breakerOf(attempt.model).worksForOthers(this.#call.accountId);
    attempt.loaded.end(isOfRequest ? "unknown" : "failed");
    this.#dropFailed(attempt);
    // A disconnected caller or a passed deadline does not count against the model's health.
    if (over) attempt.permit.abandoned();
    else {
      const openMs = attempt.permit.failed(failure);
      // A retry while the breaker is open would be refused.
      if (openMs !== undefined) failure = failure.with({ retryAfterMs: Math.max(openMs, failure.retryAfterMs ?? 0) });
    }
    const isFinal = over || committed || !isUpstreamFailure(failure);
    // After the end of the call, the other attempt in flight is still read for its token count.
    if (isFinal && !over) this.#endOthers(attempt, "Another attempt failed, and the request with it.");
    // Content implies a 2xx response, even if the stream failed later.
    const upstreamStatus = failure.upstreamStatus ?? (committed ? 200 : undefined);
    this.#note(attempt.model, failure.code, { running: attempt, failure, upstreamStatus });
    if ((committed || !failure.refused) && !attempt.call.progress!.unsent) this.#tellUncounted(attempt, failure.usage);
    else if (limit.isOver) limit.giveUp();
    if (failure.code === "upstream_timeout") this.#noteContentTime(attempt);
    if (attempt.model === this.#plan.candidates[0]) this.#primaryFailure = failure;
    else if (attempt === this.#hedge) this.#primaryFailure ??= failure;
    if (isFinal) throw failure.with({ attempts: this.#call.attempts });
  }

  /** Cancels all timers of the run. Must be called at every end. */
  close(): void {
    if (!this.#isWriting && this.#hedging === undefined) releaseMemory([this.#plan.primary.body]);
    this.#overall.close();
    this.#endRequest();
    this.#releaseRetry?.();
  }

  /** Milliseconds spent on upstreams so far: all attempts, the current one included, and backoff. */
  upstreamMs(): number {
    return this.#upstreamMs + this.#ports.clock.monotonic() - this.#busySinceMs;
  }

  get #isFirst(): boolean {
    return this.#next === 0 && this.#retries === 0;
  }

  /** The next target of a route, or the same model without a further target. */
  get #hedgeModel(): Model {
    const { candidates, targets } = this.#plan;
    return candidates[targets > 1 ? 1 : 0]!;
  }

  /** Milliseconds until the hedge; undefined while the percentile has too few samples. */
  #hedgeAfterMs({ model, translation }: RunningAttempt): number | undefined {
    const { after } = this.#plan.hedge!;
    if ("ms" in after) return after.ms;
    return this.#contentTimesOf(model, translation).percentile(after.percentile, this.#call.accountId);
  }

  #contentTimesOf(model: Model, translation: Translation): ContentTimes {
    return this.#ports.contentTimesOf(model, this.#plan.mode === "stream" || translation.streamed);
  }

  /**
   * Takes a permit of the name's hedging budget, then one of the retry budget of the primary's provider, which counts grants and
   * refusals. Returns the function that releases the latter.
   */
  #permitHedge(hedging: Hedging): (() => void) | undefined {
    const { candidates, hedge } = this.#plan;
    const { accountId } = this.#call;
    const isPermitted = hedging.permit(hedge!.budget, accountId);
    const release = isPermitted ? this.#ports.budgetOf(candidates[0]!).take() : undefined;
    if (release !== undefined) return release;
    if (isPermitted) hedging.giveUp(accountId);
    hedging.counts.refused += 1;
    return undefined;
  }

  /** Whether the first attempt is still in flight without content. */
  #waits(first: RunningAttempt): boolean {
    return !this.#overall.isOver && this.#winner === undefined && this.#running.includes(first);
  }

  /** Removes the attempt from those in flight. */
  #ended(attempt: RunningAttempt): void {
    this.#inFlight -= 1;
    if (this.#inFlight === 0) this.#upstreamMs += this.#ports.clock.monotonic() - this.#busySinceMs;
    if (this.#hedging === undefined) return;
    this.#running = this.#running.filter((other) => other !== attempt);
    if (attempt.isFirst) this.#stopWaiting?.();
    if (attempt === this.#hedge) this.#endHedge?.();
  }

  /** Ends the other attempts in flight: closes their connections, and books the cost that they may have. */
  #endOthers(attempt: RunningAttempt, why: string): void {
    for (const other of this.#running) {
      if (other === attempt) continue;
      other.isLost = true;
      const failure = new Failure("cancelled", why);
      other.limit.cancel(failure);
      this.#ended(other);
      this.#noteContentTime(other);
      other.permit.abandoned();
      // The first attempt would have taken at least this long, so its time is a sample. A hedge began later, so its time is none.
      other.loaded.end(other.isFirst ? "answered" : "unknown");
      this.#note(other.model, failure.code, { running: other, failure });
      if (!other.call.progress!.unsent) this.#tellUncounted(other);
    }
  }

  /** Notes the time to the first content of a first attempt, or a time that it exceeded. */
  #noteContentTime({ isFirst, model, translation, startedMs }: RunningAttempt): void {
    if (!isFirst || this.#hedging === undefined || this.#winner?.isFirst === true) return;
    const elapsedMs = this.#ports.clock.monotonic() - startedMs;
    this.#contentTimesOf(model, translation).add(elapsedMs, this.#call.accountId);
  }

  /** `usage`: the provider's count for an attempt that failed with one. */
  #tellUncounted(running: RunningAttempt, usage?: Usage): void {
    const { model, call, translation, startedMs, limit, unseen, committed } = running;
    const isStream = this.#plan.mode === "stream" || translation.streamed;
    const billsRest = !isStream || model.billsClosedStreams === true;
    this.#call.uncounted({
      model,
      attempt: this.#call.attempts.at(-1)!,
      sent: translation.sent,
      progress: call.progress!,
      elapsedMs: limit.workEndedMs - startedMs,
      mayBillRest: (limit.isOver || call.progress!.isCut === true) && billsRest,
      committed,
      unseen: unseen?.size,
      usage,
      remainder: limit.settles ? { outcome: outcomeOf(running, billsRest), giveUp: () => limit.giveUp() } : undefined,
    });
  }

  /** As `#begin`, for a fallback or a retry, which may need a larger reservation. */
  async #beginAnother(model: Model): Promise<RunningAttempt | undefined> {
    const translation = this.#translate(model);
    if (translation instanceof Failure) return this.#skip(model, translation);
    const refusal = await this.#call.reserveAnother(model, translation.sent);
    this.#throwIfOver();
    return refusal === undefined ? this.#begin(model, translation) : this.#skip(model, refusal);
  }

  #begin(model: Model, translation = this.#translate(model)): RunningAttempt | undefined {
    if (translation instanceof Failure) return this.#skip(model, translation);
    const permit = this.#ports.breakerOf(model).admit(this.#call.accountId);
    if (permit instanceof Failure) {
      if (model === this.#plan.candidates[0]) this.#primaryFailure ??= permit;
      return this.#skip(model, permit, "circuit breaker open");
    }
    const { firstContentMs, idleMs, settleMs } = model.timeouts;
    const limit = new TimeLimit(this.#overall, this.#ports.clock, settleMs);
    const limitMs = this.#plan.mode === "whole" && !translation.streamed ? firstContentMs + idleMs : firstContentMs;
    limit.start(limitMs, "The upstream provider did not answer in time.");
    const { hops, share, keyFamilyId, accountId, trace } = this.#call;
    const { upstream } = model;
    const { signal } = limit;
    const progress = { unsent: false, paused: (until: Promise<void>) => limit.suspend(until) };
    const call: UpstreamCall = {
      model: upstream,
      translation,
      signal,
      idleMs,
      progress,
      keyFamilyId,
      accountId,
      hops,
      share,
      trace: trace?.beginAttempt(),
    };
    const attempt: RunningAttempt = {
      model,
      isFirst: this.#isFirst,
      call,
      permit,
      loaded: this.#ports.loadOf(model).begin(this.#plan.mode, accountId),
      limit,
      translation,
      startedMs: this.#ports.clock.monotonic(),
      work: undefined,
      unseen: undefined,
      committed: false,
      firstContentMs: undefined,
      isLost: false,
    };
    if (this.#inFlight === 0) this.#busySinceMs = attempt.startedMs;
    this.#inFlight += 1;
    if (this.#hedging !== undefined) this.#running = [...this.#running, attempt];
    return attempt;
  }

  #translate(model: Model): Translation | Failure {
    const { candidates, primary } = this.#plan;
    if (model === candidates[0]) return primary;
    try {
      return this.#plan.translate(model);
    } catch (reason) {
      // The next model may support the request. Any other error is a bug and must not be hidden.
      if (reason instanceof Failure) return reason;
      throw reason;
    }
  }

  /** Returns the backoff before a retry of the primary, and moves the plan back to the primary; undefined when there is no retry. */
  #retryWaitMs(): number | undefined {
    this.#releaseRetry?.();
    this.#releaseRetry = undefined;
    const [primary] = this.#plan.candidates as [Model, ...Model[]];
    const failure = this.#primaryFailure;
    if (this.#next !== 1 || failure === undefined || this.#retries >= PRIMARY_RETRIES) return undefined;
    const waitMs = backoffMs(failure, this.#retries, { options: this.#backoff, random: this.#ports.random });
    if (waitMs === undefined) return undefined;
    // The wait outlasts a breaker that a rate limit opened. Any other open breaker rules out a retry.
    const isOpen =
      failure.code !== "upstream_rate_limited" && !this.#ports.breakerOf(primary).mayAdmit(this.#call.accountId);
    if (isOpen) return undefined;
    this.#releaseRetry = this.#ports.budgetOf(primary).take();
    if (this.#releaseRetry === undefined) return undefined;
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
    outcome: Attempt["outcome"],
    { running, failure, upstreamStatus = failure?.upstreamStatus, reason = failure?.message ?? "" }: AttemptNote,
  ): void {
    const nowMs = this.#ports.clock.monotonic();
    const beganMs = running?.startedMs ?? nowMs;
    const { trace, attempts } = this.#call;
    if (trace !== undefined) trace.attempts[attempts.length] = running?.call.trace;
    const { arrivedMs } = this.#call;
    attempts.push({
      model: model.id,
      outcome,
      ...(failure?.detail === "context_length_exceeded" && { detail: failure.detail }),
      ...(model.ownCredential !== undefined && { ownCredential: true }),
      upstreamStatus,
      reason,
      durationMs: Math.round(nowMs - beganMs),
      startMs: Math.round(beganMs - arrivedMs),
      ...(running !== undefined && timesOf(running, arrivedMs)),
      ...(failure?.providerError !== undefined && { providerError: failure.providerError }),
    });
  }
}

interface AttemptNote {
  /** Undefined for a skipped model. */
  readonly running?: RunningAttempt;
  readonly failure?: Failure;
  readonly upstreamStatus?: number | undefined;
  readonly reason?: string;
}

/** Whether the failure is on the provider's side; only then another model is tried. */
function isUpstreamFailure(failure: Failure): boolean {
  return failure.code.startsWith("upstream_");
}
