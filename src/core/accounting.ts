import { type CompletionChunk, type CompletionRequest, FinishReason } from "../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import type { Report } from "../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import type { Attempt } from "./attempt.ts";
import type { Call } from "./call.ts";
import { type Clock, waitAtMost } from "./clock.ts";
import {
  boundCost,
  type Capped,
  costOf,
  dearestCost,
  dearestTokens,
  mostTokens,
  type MostTokens,
  type Sending,
} from "./cost.ts";
import { toEntryDetails } from "./entry-details.ts";
import { Failure, type FailureCode } from "./failure.ts";
import { boundedUses, completeCounts, unboundedFees } from "./fees.ts";
import {
  type CompletionRecord,
  type Ledger,
  type NewLedgerEntry,
  NO_TOKENS,
  PROCESS_LOST,
  type Recorder,
  type TokenCounts,
  toTokenCounts,
} from "./ledger.ts";
import type { Reservation } from "./limiter.ts";
import { makes, mayDraw, type Model } from "./model.ts";
import type { Answer, CostedUsage, SentSize } from "./provider.ts";
import type {
  AttemptInFlight,
  Mode,
  Plan,
  Remainder,
  RemainderOutcome,
  RouterCall,
  UncountedAttempt,
} from "./router.ts";
import {
  addChunk,
  type AnswerSize,
  estimatePictures,
  estimateTokens,
  NOTHING_RECEIVED,
  type PromptSize,
  sizeOfChoices,
} from "./token-estimate.ts";

/** Completions that have ended for the caller while their ledger entries wait for the providers' token counts. */
export class Settling {
  readonly #open = new Map<Promise<void>, () => void>();
  #cut = false;

  /** Adds a completion. `work` ends within `settle_ms` of the model plus one ledger write; `giveUp` ends it earlier. */
  add(work: Promise<void>, giveUp: () => void): void {
    const done = work.catch(() => undefined).finally(() => this.#open.delete(done));
    this.#open.set(done, giveUp);
    if (this.#cut) giveUp();
  }

  get size(): number {
    return this.#open.size;
  }

  /** Resolves when the ledger entries of all added completions have been written. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open.keys());
  }

  /** Stops reading from providers, for open and for later completions. Entries without a token count are booked as estimates. */
  cut(): void {
    this.#cut = true;
    for (const giveUp of this.#open.values()) giveUp();
  }
}

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

/** What is known of the end of an attempt that may be billed as a whole. */
const NOT_STOPPED = { progress: { unsent: false }, mayBillRest: false, unseen: undefined } as const;

/** Tokens and cost booked for one attempt. */
interface Booking {
  readonly tokens: TokenCounts;
  readonly costMicroUsd: number;
  /** Part of the cost: of attempts with the account's own credential. */
  readonly ownCostMicroUsd: number;
  readonly estimated: boolean;
}

/** An attempt without a token count. */
interface UncountedFacts {
  readonly request: Capped;
  readonly prompt: PromptSize;
  readonly hasBudget: boolean;
  /** Size of the part of its answer that core received. */
  readonly seen: AnswerSize;
  /** What the provider sent after the attempt had ended; undefined when the connection was closed at once. */
  readonly outcome: RemainderOutcome | undefined;
}

/**
 * What a provider may bill for an attempt: its own count if that came in time, nothing if it refused the request. Otherwise an
 * estimate. The prompt is estimated by its size (under a budget: its upper bound; with documents or searches: the context
 * window). The answer has as many tokens as the model can generate in the elapsed time (under a budget all, if the provider may not
 * have noticed the end), at most those allowed by the request, and at least those received. The kinds of these tokens are not known, so
 * all have the price of the dearest kind.
 */
function bookUncounted(
  {
    model,
    sent,
    progress,
    ...attempt
  }: Pick<UncountedAttempt, "model" | "sent" | "progress" | "elapsedMs" | "mayBillRest" | "unseen" | "usage">,
  { request, prompt, hasBudget, seen, outcome }: UncountedFacts,
): Booking {
  const { elapsedMs, mayBillRest, unseen: later } = outcome ?? attempt;
  const answer = joinSizes(seen, later ?? NOTHING_RECEIVED);
  const usage = outcome?.usage ?? attempt.usage;
  if (usage !== undefined && isCount(usage, answer)) return bookUsage(usage, answer, { model, sent });
  if (outcome?.refused === true || progress.unsent) return toBooking(NO_TOKENS, 0, { model, estimated: false });
  const most = mostTokens(request, { prompt, sent, model });
  const received = receivedTokens(answer, { most, sent, hasBudget });
  // Rejected tokens of a predicted answer are billed, and need no time.
  const each = Math.ceil((elapsedMs / 1000) * model.maxTokensPerSecond) + prompt.predictedBytes;
  // A caller with a budget could let a provider generate whole answers, again and again, and leave each time.
  const generated = hasBudget && mayBillRest ? Infinity : each * (request.choiceCount ?? 1);
  const booked = {
    prompt: promptTokens(most.prompt, { prompt, hasBudget, sent, model }),
    completion: Math.max(received.completion, Math.min(generated, most.completion)),
  };
  const sending = { prompt, sent, model };
  const costMicroUsd = dearestCost(booked, sending) ?? dearestTokens(booked, sending) ?? 0;
  return toBooking({ ...NO_TOKENS, ...booked }, costMicroUsd, { model, estimated: true });
}

/** Tokens of a prompt that the provider did not count: an estimate, at most `most`. */
function promptTokens(
  most: number,
  { prompt, hasBudget, sent, model }: Sending & Pick<UncountedFacts, "hasBudget">,
): number {
  // Only the provider knows how many tokens a document or a search adds to the prompt. A caller with a budget could send text
  // of more tokens than the estimate, again and again.
  const isEstimable = !hasBudget && !prompt.unbounded && sent.unbounded !== "search";
  if (isEstimable) return Math.min(estimateTokens(prompt), most);
  // An assumed context window (`isWindowAssumed`) is no upper bound, so it serves only where no budget could be overrun.
  return hasBudget ? most : Math.min(most, model.upstream.contextWindow);
}

/** The size of an answer in two pieces. */
function joinSizes(one: AnswerSize, other: AnswerSize): AnswerSize {
  return {
    textTokens: one.textTokens + other.textTokens,
    refusalTokens: one.refusalTokens + other.refusalTokens,
    pictures: one.pictures + other.pictures,
    picturesBegun: one.picturesBegun + other.picturesBegun,
    hasSpeech: one.hasSpeech || other.hasSpeech,
  };
}

/**
 * Tokens of the received part of an answer: its text, at most as much as the request allows, and all pictures. A picture of
 * which only a preview came is billed too, and a preview and its finished picture count once. Under a budget each picture has
 * its largest size, because a caller could leave before the token count of large pictures, again and again.
 */
function receivedTokens(
  { textTokens, pictures, picturesBegun }: AnswerSize,
  { most, sent, hasBudget }: { readonly most: MostTokens } & Pick<Sending, "sent"> & Pick<UncountedFacts, "hasBudget">,
): Pick<TokenCounts, "completion" | "image"> {
  const image = estimatePictures(Math.max(pictures, picturesBegun), hasBudget ? sent.pictureTokens : undefined);
  return { completion: Math.min(Math.ceil(textTokens), most.text) + image, image };
}

/** Booking of a complete answer without a count: the received tokens. */
function bookSeen(
  seen: AnswerSize,
  { request, hasBudget, ...sending }: Sending & Pick<UncountedFacts, "request" | "hasBudget">,
): Booking {
  const most = mostTokens(request, sending);
  const prompt = promptTokens(most.prompt, { ...sending, hasBudget });
  const received = receivedTokens(seen, { most, sent: sending.sent, hasBudget });
  return book({ ...NO_TOKENS, prompt, ...received, ...boundedUses(sending) }, sending, { estimated: true });
}

/**
 * Booking of a provider's count. `completeCounts` completes `usage` in place, so the caller receives the same counts. Some servers
 * count pictures and speech, whose tokens may cost several times as much, only in the sum of the answer: then each picture is booked as
 * the largest, and an answer with speech as speech. It costs no less than the provider says.
 */
function bookUsage(usage: CostedUsage, { pictures, hasSpeech }: AnswerSize, sending: Omit<Sending, "prompt">): Booking {
  completeCounts(usage, sending);
  const counts = toTokenCounts(usage);
  const { statedMicroUsd } = usage;
  const lacksPictures = pictures > 0 && counts.image === 0;
  const lacksSpeech = hasSpeech && (counts.completionAudio ?? 0) === 0;
  if (!lacksPictures && !lacksSpeech) return book(counts, sending, { estimated: false, statedMicroUsd });
  const made = lacksPictures ? estimatePictures(pictures, sending.sent.pictureTokens) : counts.image;
  const image = Math.min(made, counts.completion);
  const spoken = lacksSpeech ? counts.completion - image : counts.completionAudio;
  return book({ ...counts, image, completionAudio: spoken }, sending, { estimated: true, statedMicroUsd });
}

/** Prices the tokens and fees; 0 for a model without a price. */
function book(
  tokens: TokenCounts,
  { model, sent }: Omit<Sending, "prompt">,
  {
    estimated,
    statedMicroUsd = 0,
  }: Pick<Booking, "estimated"> & { readonly statedMicroUsd?: CostedUsage["statedMicroUsd"] },
): Booking {
  if (model.price === undefined) return toBooking(tokens, 0, { model, estimated });
  const costMicroUsd = costOf(tokens, model.price, sent);
  // The host that OpenRouter chose may be dearer than the price that is known here, and bill units that are not counted.
  const most = model.statesCost === true ? Math.max(costMicroUsd, statedMicroUsd) : costMicroUsd;
  return toBooking(tokens, most, { model, estimated });
}

function toBooking(
  tokens: TokenCounts,
  costMicroUsd: number,
  { model, estimated }: Pick<Sending, "model"> & Pick<Booking, "estimated">,
): Booking {
  return { tokens, costMicroUsd, ownCostMicroUsd: model.ownCredential === undefined ? 0 : costMicroUsd, estimated };
}

/** Whether a count has tokens of both kinds, so that it is one whatever the answer: measuring 60 MiB would take tens of milliseconds. */
function isWhole(usage: Usage | undefined): boolean {
  return usage !== undefined && usage.inputTokens > 0 && usage.outputTokens > 0;
}

/**
 * Whether a provider has counted. Some send zeros, or only one kind of tokens: each prompt has a token, and so has an answer with
 * text, pictures or speech. A refusal may be in the gateway's words, as that of a prompt which the provider blocked.
 */
function isCount(usage: Usage, { textTokens, refusalTokens, pictures, hasSpeech }: AnswerSize): boolean {
  const isEmpty = textTokens === refusalTokens && pictures === 0 && !hasSpeech;
  return usage.inputTokens > 0 && (usage.outputTokens > 0 || isEmpty);
}

/** Sum of bookings. */
function sumOf(bookings: readonly Booking[]): Booking {
  const [only] = bookings;
  if (only !== undefined && bookings.length === 1) return only;
  const tokens: { -readonly [K in keyof TokenCounts]: TokenCounts[K] } = { ...NO_TOKENS };
  let costMicroUsd = 0;
  let ownCostMicroUsd = 0;
  let estimated = false;
  for (const booking of bookings) {
    const { unknown, ...counts } = booking.tokens;
    for (const [kind, count = 0] of Object.entries(counts) as [keyof typeof counts, number?][])
      tokens[kind] = (tokens[kind] ?? 0) + count;
    if (unknown !== undefined) tokens.unknown = [...new Set([...(tokens.unknown ?? []), ...unknown])];
    costMicroUsd += booking.costMicroUsd;
    ownCostMicroUsd += booking.ownCostMicroUsd;
    estimated ||= booking.estimated;
  }
  return { tokens, costMicroUsd, ownCostMicroUsd, estimated };
}
