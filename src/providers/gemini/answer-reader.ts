import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { PartBudget } from "../../core/part-budget.ts";
import { usageChunk } from "../../core/chunks.ts";
import type { Failure } from "../../core/failure.ts";
import { FurtherFields } from "../wire/further-fields.ts";
import { array, object, string } from "../wire/json.ts";
import { keepAll, type Redact } from "../wire/redaction.ts";
import { ChoiceReader } from "./choice-reader.ts";
import { toInBandFailure } from "./failure.ts";
import { readUsage } from "./usage.ts";

/** Fields of a response that are read, or that the gateway sets itself. */
const OF_RESPONSE: ReadonlySet<string> = new Set([
  "candidates",
  "promptFeedback",
  "usageMetadata",
  "modelVersion",
  "responseId",
  "createTime",
]);

/** Largest accepted candidate index, because it is used as a list index later. A larger one reads as 0. */
const MAX_INDEX = 127;

/** Queries of one answer that are counted. */
const MAX_QUERIES = 10_000;

/** Form of an enum value. Other block reasons are not passed on to the caller. */
const WORD = /^[A-Z_]{1,64}$/;

/**
 * Reads `GenerateContentResponse` objects into chunks: one object for a whole answer, many for a stream. Finishes and
 * usage are held until the end: the provider may send STOP before the last parts, and only its last token count is
 * final.
 */
export class AnswerReader {
  readonly #candidates = new Map<number, ChoiceReader>();
  readonly #budget = new PartBudget();
  readonly #unfinished: () => Failure;
  readonly #redact: Redact;
  readonly #further = new FurtherFields("gemini.response.", OF_RESPONSE, this.#budget);
  #blockReason = "";
  #usage: Usage | undefined;
  /** Queries of the provider's searches. */
  readonly #queries = new Set<string>();
  #begun = false;

  /**
   * `unfinished` creates the failure for an answer that ends without a finish reason; `redact` removes the provider's
   * credentials from error messages.
   */
  constructor(unfinished: () => Failure, redact: Redact = keepAll) {
    this.#unfinished = unfinished;
    this.#redact = redact;
  }

  /** Whether every candidate has a finish reason, or the prompt was blocked. More parts may still follow. */
  get finished(): boolean {
    return this.#candidatesFinished || (this.#candidates.size === 0 && this.#blockReason !== "");
  }

  /** Appends the chunks of one object, or of an array of objects. Throws the Failure of an in-band error. */
  read(json: unknown, out: CompletionChunk[]): void {
    for (const each of Array.isArray(json) ? array(json) : [json]) this.#readOne(each, out);
  }

  /** Appends the finishes and the usage. Throws `upstream_protocol` for an unusable or unfinished answer. */
  finish(out: CompletionChunk[]): void {
    const candidates = [...this.#candidates.entries()].toSorted(([a], [b]) => a - b);
    if (this.#candidatesFinished) candidates.forEach(([, candidate], at) => this.#finish(candidate, at === 0, out));
    else if (this.#blockReason !== "") this.#refuse(candidates, out);
    else throw this.#unfinished();
    if (this.#usage === undefined) return;
    if (this.#queries.size > 0) this.#usage.webSearches = this.#queries.size;
    out.push(usageChunk(this.#usage));
  }

  /** Finishes a candidate. The further fields of the response go to the first candidate. */
  #finish(candidate: ChoiceReader, isFirst: boolean, out: CompletionChunk[]): void {
    candidate.finish(isFirst ? this.#further.read(this.#redact) : {}, out);
  }

  get #candidatesFinished(): boolean {
    return this.#candidates.size > 0 && [...this.#candidates.values()].every((candidate) => candidate.finished);
  }

  #readOne(json: unknown, out: CompletionChunk[]): void {
    const { error, candidates, promptFeedback, usageMetadata } = object(json);
    this.#usage = readUsage(usageMetadata) ?? this.#usage;
    if (error !== undefined && error !== null) {
      // Candidates beside an error are an answer that broke off.
      const begun = this.#begun || array(candidates).length > 0;
      // The count so far may lack a part of the content before it.
      const usage = this.#begun ? undefined : this.#usage;
      throw toInBandFailure(json, { begun, usage, redact: this.#redact });
    }
    this.#further.add(object(json));
    const before = out.length;
    for (const candidate of array(candidates)) {
      const { index, groundingMetadata } = object(candidate);
      this.#candidate(index).read(object(candidate), out);
      this.#countSearches(object(groundingMetadata)["webSearchQueries"]);
    }
    this.#begun ||= out.length > before;
    this.#blockReason = string(object(promptFeedback)["blockReason"]) || this.#blockReason;
  }

  /** Counts distinct queries: equal and empty ones are billed once (ai.google.dev, "Grounding with Google Search", November 2026). */
  #countSearches(queries: unknown): void {
    for (const query of array(queries))
      if (string(query) !== "" && this.#queries.size < MAX_QUERIES) this.#queries.add(string(query));
  }

  #candidate(at: unknown): ChoiceReader {
    const index = typeof at === "number" && Number.isInteger(at) && at > 0 && at <= MAX_INDEX ? at : 0;
    let candidate = this.#candidates.get(index);
    if (candidate === undefined) {
      candidate = new ChoiceReader(index, { budget: this.#budget, redact: this.#redact });
      this.#candidates.set(index, candidate);
    }
    return candidate;
  }

  /**
   * Appends a refusal for each unfinished candidate, or for candidate 0 without candidates, when the prompt was
   * blocked.
   */
  #refuse(candidates: readonly (readonly [number, ChoiceReader])[], out: CompletionChunk[]): void {
    const reason = WORD.test(this.#blockReason) ? ` (${this.#blockReason})` : "";
    const refused = candidates.length > 0 ? candidates.map(([, candidate]) => candidate) : [this.#candidate(0)];
    for (const candidate of refused) {
      const explanation = `The provider blocked the prompt${reason}.`;
      if (candidate.finished) this.#finish(candidate, false, out);
      else candidate.refuse(explanation, this.#blockReason, out);
    }
  }
}
