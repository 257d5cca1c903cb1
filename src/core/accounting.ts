import type { CompletionChunk, CompletionRequest, Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt, Report } from "../../gen/parley/v1/report_pb.js";
import type { Call } from "./call.ts";
import type { Clock } from "./clock.ts";
import { boundCost, type Capped, costOf, mostTokens, type Sending } from "./cost.ts";
import { Failure, type FailureCode } from "./failure.ts";
import {
  type CompletionRecord,
  type Ledger,
  type NewLedgerEntry,
  NO_TOKENS,
  type Recorder,
  type TokenCounts,
  toTokenCounts,
} from "./ledger.ts";
import type { Reservation } from "./limiter.ts";
import type { Model } from "./model.ts";
import type { Answer, SentSize } from "./provider.ts";
import type { Mode, Plan, RestOutcome, RouterCall, UncountedAttempt } from "./router.ts";
import {
  addDelta,
  type AnswerSize,
  estimateAnswerTokens,
  estimateTokens,
  type PromptSize,
  sizeOfChoices,
} from "./token-estimate.ts";

/** Completions whose callers have their end, and whose ledger entries wait for the providers' counts. */
export class Settling {
  readonly #open = new Map<Promise<void>, () => void>();
  #cut = false;

  /** `work` never outlasts the models' time to settle by more than a ledger entry takes; `giveUp` ends that time. */
  add(work: Promise<void>, giveUp: () => void): void {
    const done = work.catch(() => undefined).finally(() => this.#open.delete(done));
    this.#open.set(done, giveUp);
    if (this.#cut) giveUp();
  }

  get size(): number {
    return this.#open.size;
  }

  /** Resolves when none is left. */
  async idle(): Promise<void> {
    while (this.#open.size > 0) await Promise.all(this.#open.keys());
  }

  /** Providers are heard no longer, from now on either: what is not counted is booked by its bound. */
  cut(): void {
    this.#cut = true;
    for (const giveUp of this.#open.values()) giveUp();
  }
}

/** Where a meter writes what it saw. */
export interface AccountingPorts {
  readonly ledger: Ledger;
  readonly recorder: Recorder;
  readonly clock: Clock;
  readonly settling: Settling;
}

interface Metered {
  readonly request: CompletionRequest;
  readonly call: Call;
  readonly mode: Mode;
}

/** What both the record and the ledger entry say. */
type Noted = Omit<CompletionRecord, "principal" | "usage" | "costMicroUsd" | "reservedMicroUsd" | "failure" | "entry">;

/** What was reserved for a completion. */
export interface Reserved {
  readonly reservation: Reservation;
  readonly prompt: PromptSize;
  /** As it is sent to the first model. */
  readonly sent: SentSize;
  /** For budgets; undefined when a model of the plan has no price. */
  readonly costMicroUsd: number | undefined;
}

/** What is noted of one completion while it runs, and written down once when it is over. */
export class CompletionAccounting {
  readonly routerCall: RouterCall;
  readonly #ports: AccountingPorts;
  readonly #request: CompletionRequest;
  readonly #call: Call;
  readonly #mode: Mode;
  readonly #startedAtMs: number;
  readonly #attempts: Attempt[] = [];
  /** What of the answer went by. */
  #answer: AnswerSize = { textTokens: 0, pictures: 0 };
  /** What earlier attempts may be billed. */
  readonly #bookings: Booking[] = [];
  /** The last attempt, when the provider may still be heard to count it. */
  #unsettled: UncountedAttempt | undefined;
  /** Whether the answer that its caller saw is among the bookings. */
  #isBooked = false;
  /** That of a completion that ended without a word, which none should. */
  #outcome: "served" | FailureCode = "internal";
  #failure: Failure | undefined;
  #candidates: readonly Model[] = [];
  #reserved: Reserved | undefined;
  #reservedMicroUsd: number | undefined;
  /** By the latest attempt. */
  #sent: SentSize | undefined;
  #model: Model | undefined;
  #usage: Usage | undefined;
  /** The booking of `usage`, once it was asked for. */
  #counted: { readonly usage: Usage; readonly booking: Booking } | undefined;
  #firstContentMs: number | undefined;

  constructor(ports: AccountingPorts, { request, call, mode }: Metered) {
    this.#ports = ports;
    this.#request = request;
    this.#call = call;
    this.#mode = mode;
    this.#startedAtMs = ports.clock.now();
    const created = Math.floor(this.#startedAtMs / 1000);
    const { completionId, arrivedMs, signal, hops, principal } = call;
    const { keyFamilyId, accountId } = principal;
    this.routerCall = {
      completionId,
      arrivedMs,
      created,
      signal,
      keyFamilyId,
      accountId,
      hops,
      attempts: this.#attempts,
      sending: (sent) => void (this.#sent = sent),
      uncounted: (attempt) => this.#noteUncounted(attempt),
      reserveAnother: (model, sent) => this.#reserveAnother(model, sent),
    };
  }

  planned({ candidates }: Plan): void {
    this.#candidates = candidates;
  }

  /** From now on a ledger entry is owed. */
  reserved(reserved: Reserved): void {
    this.#reserved = reserved;
    this.#reservedMicroUsd = reserved.costMicroUsd;
    this.#sent = reserved.sent;
  }

  observe({ event }: CompletionChunk): void {
    if (event.case === "delta") {
      addDelta(this.#answer, event.value);
    } else if (event.case === "start") {
      this.#model = this.#find(event.value.model);
      this.#firstContentMs = this.#ports.clock.monotonic() - this.#call.arrivedMs;
    } else if (event.case === "usage") this.#usage = event.value;
    else if (event.case === "report") this.complete(event.value);
  }

  answered(model: Model, { usage, choices }: Answer): void {
    this.#model = model;
    this.#usage = usage;
    if (usage === undefined) this.#answer = sizeOfChoices(choices);
  }

  /** The answer is whole: adds to its report what core knows. */
  complete(report: Report): void {
    report.omitted = [...this.#request.unrecognizedFields, ...report.omitted];
    const costMicroUsd = this.#countedCost(this.#usage);
    if (costMicroUsd !== undefined) report.costMicroUsd = BigInt(costMicroUsd);
    this.#outcome = "served";
  }

  /** Changes nothing of the outcome once the answer was whole: what becomes of its caller then is no failure of it. */
  failed(reason: unknown): Failure {
    const failure = Failure.from(reason);
    if (this.#outcome === "served") return failure;
    this.#failure = failure;
    this.#outcome = failure.code;
    return failure;
  }

  /**
   * The completion is over. Resolves when it is written down and what was reserved is given back, or, when the provider is
   * still heard for its count, at once: the rest is `settling`'s.
   */
  async end(): Promise<void> {
    const { requestId, completionId, entrance, arrivedMs } = this.#call;
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
    };
    const unsettled = this.#unsettled;
    if (unsettled?.rest === undefined) return this.#writeDown(noted);
    const { outcome, giveUp } = unsettled.rest;
    const settle = async (): Promise<void> => {
      this.#settle(unsettled, await outcome);
      await this.#writeDown(noted);
    };
    this.#ports.settling.add(settle(), giveUp);
  }

  async #writeDown(noted: Noted): Promise<void> {
    const total = this.#total();
    const entry = this.#toEntry(noted, total);
    const written = entry && this.#ports.ledger.append(entry);
    try {
      this.#ports.recorder.record({
        ...noted,
        principal: this.#call.principal,
        usage: this.#usage,
        costMicroUsd: this.#countedCost(this.#usage),
        reservedMicroUsd: this.#reservedMicroUsd,
        failure: this.#failure,
        entry,
      });
    } finally {
      // Whatever becomes of logs and metrics: what was reserved is owed.
      await written;
    }
  }

  /** Gives back what was reserved and makes the entry, if any is owed. */
  #toEntry(noted: Noted, { tokens, costMicroUsd, estimated }: Booking): NewLedgerEntry | undefined {
    if (this.#reserved === undefined) return undefined;
    const { accountId, keyId, keyFamilyId } = this.#call.principal;
    this.#reserved.reservation.release(tokens.prompt + tokens.completion);
    const partial = this.#model !== undefined && this.#outcome !== "served";
    return { ...noted, accountId, keyId, keyFamilyId, tokens, costMicroUsd, partial, estimated };
  }

  /**
   * What the provider's own count of the answer comes to, and what attempts before it may be billed; undefined without a
   * count or a price.
   */
  #countedCost(usage: Usage | undefined): number | undefined {
    const model = this.#model;
    if (usage === undefined || model?.price === undefined) return undefined;
    if (this.#isBooked) return sumOf(this.#bookings).costMicroUsd;
    return this.#withBookings(this.#bookCounted(usage, model)).costMicroUsd;
  }

  /** All attempts. */
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
    // A count is what the last attempt ended with: its model and what it was sent do not change any more.
    if (this.#counted?.usage !== usage)
      this.#counted = { usage, booking: book(toTokenCounts(usage), { model, sent: this.#sent! }, false) };
    return this.#counted.booking;
  }

  #bookSeen(model: Model): Booking {
    const { prompt } = this.#reserved!;
    return bookSeen(this.#answer, { prompt, sent: this.#sent!, model, request: this.#request });
  }

  #noteUncounted(attempt: UncountedAttempt): void {
    // What the provider had counted before its stream broke stays its count.
    if (attempt.committed && this.#usage !== undefined) return attempt.rest?.giveUp();
    if (attempt.rest === undefined) this.#settle(attempt, undefined);
    else this.#unsettled = attempt;
  }

  #settle(attempt: UncountedAttempt, outcome: RestOutcome | undefined): void {
    const { committed } = attempt;
    const booking = bookUncounted(attempt, {
      request: this.#request,
      prompt: this.#reserved!.prompt,
      seen: committed ? this.#answer : NOTHING_SEEN,
      outcome,
    });
    this.#bookings.push(booking);
    if (committed) this.#isBooked = true;
    if (outcome?.usage !== undefined) this.#usage = outcome.usage;
  }

  async #reserveAnother(model: Model, sent: SentSize): Promise<Failure | undefined> {
    const { reservation, prompt } = this.#reserved!;
    const next = boundCost(this.#request, { prompt, sent, model });
    const held = this.#reservedMicroUsd;
    if (next === undefined || held === undefined) return undefined;
    const missing = sumOf(this.#bookings).costMicroUsd + next - held;
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

const NOTHING_SEEN: AnswerSize = { textTokens: 0, pictures: 0 };

/** What one attempt is booked at. */
interface Booking {
  readonly tokens: TokenCounts;
  readonly costMicroUsd: number;
  readonly estimated: boolean;
}

/** An attempt that was not counted, and what is known of it now. */
interface UncountedFacts {
  readonly request: Capped;
  readonly prompt: PromptSize;
  /** What went by of its answer, as far as core was given it. */
  readonly seen: AnswerSize;
  /** What the provider said after the attempt's end; undefined when it was not listened to. */
  readonly outcome: RestOutcome | undefined;
}

/**
 * What a provider may bill for an attempt: its own count where it came in time, nothing where it refused. Otherwise the
 * prompt by its size (with documents or searches: the context window), and of the answer all that the model can have generated in the time that it had, at least what was
 * seen of it and at most what the request allowed.
 */
function bookUncounted(
  { model, sent, progress, ...attempt }: UncountedAttempt,
  { request, prompt, seen, outcome }: UncountedFacts,
): Booking {
  if (outcome?.usage !== undefined) return book(toTokenCounts(outcome.usage), { model, sent }, false);
  if (outcome?.refused === true || progress.unsent) return { tokens: NO_TOKENS, costMicroUsd: 0, estimated: false };
  const most = mostTokens(request, { prompt, sent, model });
  const { elapsedMs, unseen: later } = outcome ?? attempt;
  const said = estimateAnswerTokens({
    textTokens: seen.textTokens + (later?.textTokens ?? 0),
    pictures: seen.pictures + (later?.pictures ?? 0),
  });
  const generated = Math.ceil((elapsedMs / 1000) * model.maxTokensPerSecond) * (request.n ?? 1);
  const tokens = {
    ...NO_TOKENS,
    // How much a document of a few bytes or a search brings into the prompt only the provider knows.
    prompt: prompt.unbounded || sent.searches ? most.prompt : Math.min(estimateTokens(prompt), most.prompt),
    completion: Math.min(Math.max(said, generated), most.completion),
  };
  return book(tokens, { model, sent }, true);
}

/** An answer that came to its end without a count: what was seen of it, and no more than the request allowed. */
function bookSeen(seen: AnswerSize, { request, ...sending }: Sending & { readonly request: Capped }): Booking {
  const most = mostTokens(request, sending);
  const prompt = Math.min(estimateTokens(sending.prompt), most.prompt);
  const completion = Math.min(estimateAnswerTokens(seen), most.completion);
  return book({ ...NO_TOKENS, prompt, completion }, sending, true);
}

/** These tokens at the model's prices; they cost nothing without a price. */
function book(tokens: TokenCounts, { model, sent }: Omit<Sending, "prompt">, estimated: boolean): Booking {
  return { tokens, costMicroUsd: model.price === undefined ? 0 : costOf(tokens, model.price, sent), estimated };
}

const KEPT = Object.keys(NO_TOKENS) as (keyof typeof NO_TOKENS)[];

/** All of them together. */
function sumOf(bookings: readonly Booking[]): Booking {
  const [only] = bookings;
  if (only !== undefined && bookings.length === 1) return only;
  const tokens = { ...NO_TOKENS };
  let costMicroUsd = 0;
  let estimated = false;
  for (const booking of bookings) {
    for (const kind of KEPT) tokens[kind] += booking.tokens[kind];
    costMicroUsd += booking.costMicroUsd;
    estimated ||= booking.estimated;
  }
  return { tokens, costMicroUsd, estimated };
}
