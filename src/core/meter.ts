import type { CompletionChunk, CompletionRequest, Usage } from "../../gen/parley/v1/completion_pb.js";
import type { Attempt, Report } from "../../gen/parley/v1/report_pb.js";
import type { Call } from "./call.ts";
import type { Clock } from "./clock.ts";
import { costOf } from "./cost.ts";
import { Failure, type FailureCode } from "./failure.ts";
import { type Ledger, type NewLedgerEntry, NO_TOKENS, type TokenCounts, toTokenCounts } from "./ledger.ts";
import type { Reservation } from "./limiter.ts";
import type { Model } from "./model.ts";
import type { Answer } from "./provider.ts";
import { type CompletionRecord, type Recorder, STOPPED } from "./record.ts";
import type { Mode, Plan, RouterCall } from "./router.ts";
import { estimateAnswerTokens, estimateTokens, type PromptSize, sizeOfChoices, sizeOfDelta } from "./token-estimate.ts";
import { mostTokens } from "./worst-case.ts";

/** Where a meter writes what it saw. */
export interface MeterPorts {
  readonly ledger: Ledger;
  readonly recorder: Recorder;
  readonly clock: Clock;
}

interface Metered {
  readonly request: CompletionRequest;
  readonly call: Call;
  readonly mode: Mode;
}

/** What both the record and the ledger entry say. */
type Noted = Omit<CompletionRecord, "principal" | "usage" | "costMicroUsd" | "failure" | "entry">;

/** What is noted of one completion while it runs, and written down once when it is over. */
export class Meter {
  readonly routerCall: RouterCall;
  readonly #ports: MeterPorts;
  readonly #request: CompletionRequest;
  readonly #call: Call;
  readonly #mode: Mode;
  readonly #startedAtMs: number;
  readonly #attempts: Attempt[] = [];
  /** What of the answer went by. */
  readonly #answer = { chars: 0, pictures: 0 };
  /** That of a completion that ended without a word, which none should. */
  #outcome: "served" | FailureCode = "internal";
  #failure: Failure | undefined;
  #candidates: readonly Model[] = [];
  #reservation: Reservation | undefined;
  #prompt: PromptSize | undefined;
  #model: Model | undefined;
  #usage: Usage | undefined;
  #firstContentMs: number | undefined;

  constructor(ports: MeterPorts, { request, call, mode }: Metered) {
    this.#ports = ports;
    this.#request = request;
    this.#call = call;
    this.#mode = mode;
    this.#startedAtMs = ports.clock.now();
    const created = Math.floor(this.#startedAtMs / 1000);
    const { completionId, signal, hops, principal } = call;
    const { lineId } = principal;
    this.routerCall = { completionId, created, signal, lineId, hops, attempts: this.#attempts };
  }

  planned({ candidates }: Plan): void {
    this.#candidates = candidates;
  }

  /** From now on a ledger entry is owed. The prompt may be asked for when the request no longer holds it. */
  reserved(reservation: Reservation, prompt: PromptSize): void {
    this.#reservation = reservation;
    this.#prompt = prompt;
  }

  observe({ event }: CompletionChunk): void {
    if (event.case === "delta") {
      const { chars, pictures } = sizeOfDelta(event.value);
      this.#answer.chars += chars;
      this.#answer.pictures += pictures;
    } else if (event.case === "start") {
      this.#model = this.#find(event.value.model);
      this.#firstContentMs = this.#ports.clock.monotonic() - this.#call.arrivedMs;
    } else if (event.case === "usage") this.#usage = event.value;
    else if (event.case === "report") this.complete(event.value);
  }

  answered(model: Model, { usage, choices }: Answer): void {
    this.#model = model;
    this.#usage = usage;
    if (usage === undefined) Object.assign(this.#answer, sizeOfChoices(choices));
  }

  /** The answer is whole: adds to its report what core knows. */
  complete(report: Report): void {
    report.omitted = [...this.#request.unrecognizedFields, ...report.omitted];
    const costMicroUsd = this.#countedCost();
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

  /** The completion is over: gives back what was reserved, and resolves when it is written down. */
  async end(): Promise<void> {
    const { principal, requestId, completionId, entrance, arrivedMs } = this.#call;
    const durationMs = this.#ports.clock.monotonic() - arrivedMs;
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
      limits: this.#reservation?.facts ?? this.#failure?.limits,
      durationMs,
      firstContentMs: this.#firstContentMs,
    };
    const entry = this.#settle(noted);
    const written = entry && this.#ports.ledger.append(entry);
    try {
      const costMicroUsd = this.#countedCost();
      this.#ports.recorder.record({
        ...noted,
        principal,
        usage: this.#usage,
        costMicroUsd,
        failure: this.#failure,
        entry,
      });
    } finally {
      // Whatever becomes of logs and metrics: what was reserved is owed.
      await written;
    }
  }

  /** Gives back what was reserved and makes the entry, if any is owed. */
  #settle(noted: Noted): NewLedgerEntry | undefined {
    if (this.#reservation === undefined) return undefined;
    const { accountId, keyId, lineId } = this.#call.principal;
    const { tokens, model, estimated } = this.#spent();
    this.#reservation.release(tokens.prompt + tokens.completion);
    return {
      ...noted,
      accountId,
      keyId,
      lineId,
      tokens,
      costMicroUsd: model?.price === undefined ? 0 : costOf(tokens, model.price),
      partial: this.#model !== undefined && this.#outcome !== "served",
      estimated,
    };
  }

  /** What the provider's own count comes to; undefined without a count or a price. */
  #countedCost(): number | undefined {
    const price = this.#model?.price;
    return this.#usage === undefined || price === undefined ? undefined : costOf(toTokenCounts(this.#usage), price);
  }

  /**
   * What has been used, and of which model. Where the provider did not count, or was stopped before it did: the prompt and
   * what went by of the answer, estimated, and never more than there can have been: money was held for no more. What no
   * provider had taken when it failed costs nothing.
   */
  #spent(): { tokens: TokenCounts; model: Model | undefined; estimated: boolean } {
    if (this.#usage !== undefined) return { tokens: toTokenCounts(this.#usage), model: this.#model, estimated: false };
    const model = this.#model ?? this.#stoppedModel();
    const size = this.#prompt;
    if (model === undefined || size === undefined) return { tokens: NO_TOKENS, model, estimated: false };
    const most = mostTokens(this.#request, size, model);
    const prompt = Math.min(estimateTokens(size), most.prompt);
    const completion = Math.min(estimateAnswerTokens(this.#answer), most.completion);
    return { tokens: { ...NO_TOKENS, prompt, completion }, model, estimated: true };
  }

  /** The model of an attempt that was under way when the caller left or its time was up. */
  #stoppedModel(): Model | undefined {
    const last = this.#attempts.at(-1);
    return last !== undefined && STOPPED.has(last.outcome) ? this.#find(last.model) : undefined;
  }

  #find(id: string): Model | undefined {
    return this.#candidates.find((model) => model.id === id);
  }
}
