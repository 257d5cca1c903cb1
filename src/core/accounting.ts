import { type CompletionChunk, type CompletionRequest, FinishReason } from "../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { Report } from "../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import type { Attempt } from "./attempt.ts";
import { type Booking, bookSeen, bookUncounted, bookUsage, isCount, isWhole, NOT_STOPPED, sumOf } from "./bookings.ts";
import type { Call } from "./call.ts";
import { type Clock, waitAtMost } from "./clock.ts";
import { boundCost, type Capped } from "./cost.ts";
import { toEntryDetails } from "./entry-details.ts";
import { Failure, type FailureCode } from "./failure.ts";
import { unboundedFees } from "./fees.ts";
import { type CompletionRecord, type Ledger, type NewLedgerEntry, PROCESS_LOST, type Recorder } from "./ledger.ts";
import type { Reservation } from "./limiter.ts";
import { makes, mayDraw, type Model } from "./model.ts";
import type { Answer, SentSize } from "./provider.ts";
import type {
  AttemptInFlight,
  Mode,
  Plan,
  Remainder,
  RemainderOutcome,
  RouterCall,
  UncountedAttempt,
} from "./router.ts";
import { Settling } from "./settling.ts";
import { addChunk, type AnswerSize, NOTHING_RECEIVED, type PromptSize, sizeOfChoices } from "./token-estimate.ts";

/** Ports of the accounting. */
export interface AccountingPorts {
  readonly ledger: Ledger;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly settling: Settling;
}

interface Metered {
  readonly request: MeteredRequest;
  readonly call: Call;
  readonly mode: Mode;
}

/** A request of completions or embeddings. */
type MeteredRequest = Capped & Pick<CompletionRequest, "model">;

/** Fields that `CompletionRecord` and `NewLedgerEntry` share. */
type Noted = Omit<
  CompletionRecord,
  "principal" | "usage" | "costMicroUsd" | "reservedMicroUsd" | "failure" | "entry" | "trace"
>;

/** The reservation of a completion. */
export interface Reserved {
  readonly reservation: Reservation;
  readonly prompt: PromptSize;
  /** Size of the request that is sent to the first model. */
  readonly sent: SentSize;
  /** Reserved for budgets; undefined when a model of the plan has no price. */
  readonly costMicroUsd: number | undefined;
  /** Whether a budget of the key or its account limits the completion. */
  readonly hasBudget: boolean;
}

/** Collects the facts of one completion or embedding call while it runs, and records them once at its end. */
export class CompletionAccounting {
  readonly routerCall: RouterCall;
  readonly #ports: AccountingPorts;
  readonly #request: MeteredRequest;
  readonly #call: Call;
  readonly #mode: Mode;
  readonly #startedAtMs: number;
  readonly #attempts: Attempt[] = [];
  /** Size of the part of the answer that core has emitted. */
  #answer: AnswerSize = { ...NOTHING_RECEIVED };
  /** Bookings of earlier attempts that may be billed. */
  readonly #bookings: Booking[] = [];
  /** The last attempts, if their providers may still send token counts: two of a hedged call. */
  readonly #unsettled: (UncountedAttempt & { readonly remainder: Remainder })[] = [];
  /** Whether the bookings include the answer that the caller received. */
  #isBooked = false;
  /** Outcome until another one is set; a completion should never end with it. */
  #outcome: "served" | FailureCode = "internal";
  #failure: Failure | undefined;
  #candidates: readonly Model[] = [];
  #reserved: Reserved | undefined;
  #reservedMicroUsd: number | undefined;
  /** Size, model and token count of the attempt that answers. */
  #sent: SentSize | undefined;
  #model: Model | undefined;
  #usage: Usage | undefined;
  /** The booking of `usage`, computed on first use. */
  #counted: { readonly usage: Usage; readonly booking: Booking } | undefined;
  #firstContentMs: number | undefined;
  #report: Report | undefined;
  /** Finish reason of the first choice. */
  #finishReason = FinishReason.UNSPECIFIED;

  constructor(ports: AccountingPorts, { request, call, mode }: Metered) {
    this.#ports = ports;
    this.#request = request;
    this.#call = call;
    this.#mode = mode;
    this.#startedAtMs = ports.clock.now();
    const created = Math.floor(this.#startedAtMs / 1000);
    const { completionId, arrivedMs, signal, hops, share, principal, trace } = call;
    const { keyFamilyId, accountId } = principal;
    this.routerCall = {
      completionId,
      arrivedMs,
      created,
      signal,
      keyFamilyId,
      accountId,
      hops,
      share,
      trace,
      attempts: this.#attempts,
      answering: (sent) => void (this.#sent = sent),
      uncounted: (attempt) => this.#noteUncounted(attempt),
      reserveAnother: (model, sent, beside) => this.#reserveAnother(model, sent, beside),
    };
  }

  planned({ candidates }: Pick<Plan, "candidates">): void {
    this.#candidates = candidates;
    const { trace } = this.#call;
    if (trace !== undefined) trace.plannedMs = this.#ports.clock.monotonic();
  }

  /**
   * Keeps the reservation, and notes the completion in the ledger. From now on the completion must have a ledger entry. Waits
   * for the note for at most MAX_NOTING_MS (MAX_PAID_NOTING_MS under a budget), and not beyond the end of the call; a slower note is
   * stored later.
   */
  async reserved(reserved: Reserved): Promise<void> {
    this.#reserved = reserved;
    this.#reservedMicroUsd = reserved.costMicroUsd;
    this.#sent = reserved.sent;
    const { trace } = this.#call;
    if (trace !== undefined) trace.reservedMs = this.#ports.clock.monotonic();
    const noted = this.#ports.ledger.begin(this.#toLostEntry(reserved));
    if (noted === undefined) return;
    const limitMs = reserved.hasBudget ? MAX_PAID_NOTING_MS : MAX_NOTING_MS;
    await waitAtMost(noted, { clock: this.#ports.clock, limitMs, signal: this.#call.signal });
  }

  /** The entry of a completion whose process is lost: at most what its first attempt can cost, or what its budgets hold. */
  #toLostEntry({ prompt, sent, hasBudget, costMicroUsd, reservation }: Reserved): NewLedgerEntry {
    const model = this.#candidates[0]!;
    const { totalMs: elapsedMs } = model.timeouts;
    const attempt = { ...NOT_STOPPED, model, sent, elapsedMs };
    const request = this.#request;
    const booking = bookUncounted(attempt, { request, prompt, hasBudget, seen: NOTHING_RECEIVED, outcome: undefined });
    const { requestId, completionId, entrance, principal, attribution } = this.#call;
    const { accountId, keyId, keyFamilyId } = principal;
    const cost = Math.min(hasBudget ? costMicroUsd! : booking.costMicroUsd, MAX_COST_MICRO_USD);
    return {
      requestId,
      completionId,
      entrance,
      accountId,
      keyId,
      keyFamilyId,
      requestedModel: request.model,
      servedModel: undefined,
      streamed: this.#mode === "stream",
      outcome: PROCESS_LOST,
      attempts: [],
      startedAtMs: this.#startedAtMs,
      endedAtMs: this.#startedAtMs,
      durationMs: 0,
      firstContentMs: undefined,
      limits: reservation.facts,
      tokens: booking.tokens,
      costMicroUsd: cost,
      // The whole cost is that of the first attempt.
      ...(booking.ownCostMicroUsd > 0 && { ownCostMicroUsd: cost }),
      partial: false,
      estimated: true,
      ...(attribution !== undefined && { attribution }),
      ...(reservation.budgets !== undefined && { budgets: reservation.budgets }),
    };
  }

  observe(chunk: CompletionChunk): void {
    const { event } = chunk;
    if (event.case === "partDelta" || event.case === "partStart" || event.case === "partialImage") {
      addChunk(this.#answer, chunk);
    } else if (event.case === "start") {
      this.#model = this.#find(event.value.model);
      this.#firstContentMs = this.#ports.clock.monotonic() - this.#call.arrivedMs;
    } else if (event.case === "usage") this.#noteCount(event.value);
    else if (event.case === "report") this.complete(event.value);
    else if (event.case === "choiceFinish" && event.value.choiceIndex === 0)
      this.#finishReason = event.value.finishReason;
  }

  answered(model: Model, { usage, choices }: Answer): void {
    this.#model = model;
    this.#finishReason = choices[0]?.finishReason ?? FinishReason.UNSPECIFIED;
    if (!isWhole(usage) || mayDraw(model.upstream) || makes(model, Modality.AUDIO))
      this.#answer = sizeOfChoices(choices);
    if (usage !== undefined) this.#noteCount(usage);
  }

  /** Keeps a provider's count, unless it contradicts what was received. */
  #noteCount(usage: Usage): void {
    if (isCount(usage, this.#answer)) this.#usage = usage;
  }

  /** Completes the report of a whole answer with what core knows. */
  complete(report: Report): void {
    const costMicroUsd = this.#countedCost(this.#usage);
    if (costMicroUsd !== undefined) report.costMicroUsd = BigInt(costMicroUsd);
    this.#report = report;
    this.#outcome = "served";
  }

  /** Sets the failure. Ignored once the answer was complete: a caller that leaves later does not change the outcome. */
  failed(reason: unknown): Failure {
    const failure = Failure.from(reason);
    if (this.#outcome === "served") return failure;
    this.#failure = failure;
    this.#outcome = failure.code;
    return failure;
  }

  /**
   * Ends the accounting. Resolves when the ledger entry is durable and the reservation released; at once when the provider
   * may still send its count, in which case `settling` does the rest.
   */
  async end(): Promise<void> {
    const { requestId, completionId, entrance, arrivedMs, attribution } = this.#call;
    const noted: Noted = {
      requestId,
      completionId,
      entrance,
      requestedModel: this.#request.model,
      servedModel: this.#model?.id,
      streamed: this.#mode === "stream",
      outcome: this.#outcome,
      attempts: this.#attempts,
      startedAtMs: this.#startedAtMs,
      endedAtMs: this.#ports.clock.now(),
      limits: this.#reserved?.reservation.facts ?? this.#failure?.limits,
      durationMs: this.#ports.clock.monotonic() - arrivedMs,
      firstContentMs: this.#firstContentMs,
      ...(attribution !== undefined && { attribution }),
    };
    const unsettled = this.#unsettled;
    if (unsettled.length === 0) return this.#writeDown(noted, false);
    const settle = async (): Promise<void> => {
      for (const attempt of unsettled) this.#settle(attempt, await attempt.remainder.outcome);
      await this.#writeDown(noted, true);
    };
    this.#ports.settling.add(settle(), () => unsettled.forEach(({ remainder }) => remainder.giveUp()));
  }

  async #writeDown(noted: Noted, isSettled: boolean): Promise<void> {
    const total = this.#total();
    const entry = this.#toEntry(noted, total);
    const { principal, trace } = this.#call;
    const { clock, ledger, recorder } = this.#ports;
    const beganMs = trace && clock.monotonic();
    const written = entry && ledger.append(entry);
    const record: CompletionRecord = {
      ...noted,
      principal,
      usage: this.#usage,
      costMicroUsd: this.#countedCost(this.#usage),
      reservedMicroUsd: this.#reservedMicroUsd,
      failure: this.#failure,
      entry,
      trace,
    };
    try {
      recorder.record(record);
    } finally {
      // A failing log or metric must not keep the reservation.
      await written;
    }
    if (beganMs !== undefined) trace?.end(record, { ledgerMs: [beganMs, clock.monotonic()], isSettled });
  }

  /** Releases the reservation and makes the ledger entry, if the completion must have one. */
  #toEntry(noted: Noted, { tokens, costMicroUsd, ownCostMicroUsd, estimated }: Booking): NewLedgerEntry | undefined {
    if (this.#reserved === undefined) return undefined;
    const { accountId, keyId, keyFamilyId } = this.#call.principal;
    const { reservation } = this.#reserved;
    reservation.release(tokens.prompt + tokens.completion);
    const partial = this.#model !== undefined && this.#outcome !== "served";
    const capped = Math.min(costMicroUsd, MAX_COST_MICRO_USD);
    const own = ownCostMicroUsd === 0 ? {} : { ownCostMicroUsd: Math.min(ownCostMicroUsd, capped) };
    const details = toEntryDetails(this.#call, this.#report, this.#finishReason);
    return {
      ...noted,
      accountId,
      keyId,
      keyFamilyId,
      tokens,
      costMicroUsd: capped,
      ...own,
      partial,
      estimated,
      ...(details !== undefined && { details }),
      ...(reservation.budgets !== undefined && { budgets: reservation.budgets }),
    };
  }

  /** Cost by the provider's count plus the bookings of earlier attempts; undefined without a count or a price. */
  #countedCost(usage: Usage | undefined): number | undefined {
    const model = this.#model;
    if (usage === undefined || model?.price === undefined) return undefined;
    if (this.#isBooked) return sumOf(this.#bookings).costMicroUsd;
    return this.#withBookings(this.#bookCounted(usage, model)).costMicroUsd;
  }

  /** Sum over all attempts. */
  #total(): Booking {
    const model = this.#model;
    if (model === undefined || this.#isBooked) return sumOf(this.#bookings);
    const own = this.#usage === undefined ? this.#bookSeen(model) : this.#bookCounted(this.#usage, model);
    return this.#withBookings(own);
  }

  #withBookings(own: Booking): Booking {
    return this.#bookings.length === 0 ? own : sumOf([...this.#bookings, own]);
  }

  #bookCounted(usage: Usage, model: Model): Booking {
    // The count belongs to the last attempt, whose model and request no longer change.
    if (this.#counted?.usage !== usage)
      this.#counted = { usage, booking: bookUsage(usage, this.#answer, { model, sent: this.#sent! }) };
    return this.#counted.booking;
  }

  #bookSeen(model: Model): Booking {
    const { prompt, hasBudget } = this.#reserved!;
    const sent = this.#sent!;
    const request = this.#request;
    // A filter cuts off the count too, and a caller can cause that: reasoning that is not shown may have come before.
    const isMeasured = this.#finishReason !== FinishReason.CONTENT_FILTER && !this.#answer.hasSpeech;
    if (!hasBudget || isMeasured) return bookSeen(this.#answer, { prompt, hasBudget, sent, model, request });
    const elapsedMs = this.#ports.clock.monotonic() - this.#call.arrivedMs;
    const attempt = { ...NOT_STOPPED, model, sent, elapsedMs };
    return bookUncounted(attempt, { request, prompt, hasBudget, seen: this.#answer, outcome: undefined });
  }

  #noteUncounted(attempt: UncountedAttempt): void {
    // A count that arrived before the stream broke stays valid.
    if (attempt.committed && this.#usage !== undefined) return attempt.remainder?.giveUp();
    const { remainder } = attempt;
    if (remainder === undefined) this.#settle(attempt, undefined);
    else this.#unsettled.push({ ...attempt, remainder });
  }

  #settle(attempt: UncountedAttempt, outcome: RemainderOutcome | undefined): void {
    const { committed } = attempt;
    const { prompt, hasBudget } = this.#reserved!;
    const booking = bookUncounted(attempt, {
      request: this.#request,
      prompt,
      hasBudget,
      seen: committed ? this.#answer : NOTHING_RECEIVED,
      outcome,
    });
    this.#bookings.push(booking);
    if (committed) this.#isBooked = true;
    if (outcome?.usage !== undefined && !booking.estimated) this.#usage = outcome.usage;
  }

  async #reserveAnother(
    model: Model,
    sent: SentSize,
    beside: AttemptInFlight | undefined,
  ): Promise<Failure | undefined> {
    const { reservation, prompt, hasBudget } = this.#reserved!;
    const next = boundCost(this.#request, { prompt, sent, model });
    const other =
      beside === undefined
        ? 0
        : boundCost(this.#request, { prompt, sent: beside.translation.sent, model: beside.model });
    const held = this.#reservedMicroUsd;
    if (next === undefined) return hasBudget ? unboundedFees({ model, sent, prompt }) : undefined;
    if (other === undefined || held === undefined) return undefined;
    const missing = sumOf(this.#bookings).costMicroUsd + other + next - held;
    if (missing <= 0) return undefined;
    try {
      await reservation.extend(missing);
    } catch (reason) {
      return Failure.from(reason);
    }
    this.#reservedMicroUsd = held + missing;
    return undefined;
  }

  #find(id: string): Model | undefined {
    return this.#candidates.find((model) => model.id === id);
  }
}

/** Highest cost of an entry, 100,000 USD: sums of the ledger must stay whole numbers, whatever providers count. */
const MAX_COST_MICRO_USD = 100_000_000_000;

/** Longest wait for the note of a completion. A slow database must not delay calls that need it for nothing else. */
const MAX_NOTING_MS = 500;
/** The same under a budget: the hold of a process that is killed before its note is stored is released, and its money spent again. */
const MAX_PAID_NOTING_MS = 3_000;
