import { type CompletionChunk, FinishReason, type Usage } from "../../../gen/parley/v1/completion_pb.js";
import { deltaChunk, finishChunk, usageChunk } from "../../core/chunks.ts";
import type { Failure } from "../../core/failure.ts";
import { array, object, string } from "../wire/json.ts";
import { keepAll, type Redact } from "../wire/redaction.ts";
import { ChoiceReader } from "./choice-reader.ts";
import { toInBandFailure } from "./failure.ts";
import { readUsage } from "./usage.ts";

/** Largest accepted candidate index, because it is used as a list index later. A larger one reads as 0. */
const MAX_INDEX = 127;

/** An enum value of the provider. Anything else is not repeated to the caller. */
const WORD = /^[A-Z_]{1,64}$/;

/**
 * Reads `GenerateContentResponse` objects into chunks: one for a whole answer, many for a stream. Finishes are held
 * until the end, because the provider may say STOP before its last parts, and because its last count is the right one.
 */
export class AnswerReader {
  readonly #candidates = new Map<number, ChoiceReader>();
  readonly #unfinished: () => Failure;
  readonly #redact: Redact;
  #blockReason = "";
  #usage: Usage | undefined;
  #begun = false;

  /**
   * `unfinished` makes the failure for an answer that ends without a reason; `redact` takes the provider's credentials out
   * of its errors.
   */
  constructor(unfinished: () => Failure, redact: Redact = keepAll) {
    this.#unfinished = unfinished;
    this.#redact = redact;
  }

  /** Whether every candidate has a finish reason, or the prompt was blocked. More parts may still follow. */
  get finished(): boolean {
    return this.#candidatesFinished || (this.#candidates.size === 0 && this.#blockReason !== "");
  }

  /** Appends the chunks of one object, or of an array of them. Throws a Failure if it reports an error. */
  read(json: unknown, out: CompletionChunk[]): void {
    for (const each of Array.isArray(json) ? array(json) : [json]) this.#readOne(each, out);
  }

  /** Appends the finishes and the usage. Throws `upstream_protocol` for an unusable or unfinished answer. */
  finish(out: CompletionChunk[]): void {
    const candidates = [...this.#candidates.entries()].toSorted(([a], [b]) => a - b);
    if (this.#candidatesFinished) for (const [, candidate] of candidates) candidate.finish(out);
    else if (this.#blockReason !== "") this.#refuse(out);
    else throw this.#unfinished();
    if (this.#usage !== undefined) out.push(usageChunk(this.#usage));
  }

  get #candidatesFinished(): boolean {
    return this.#candidates.size > 0 && [...this.#candidates.values()].every((candidate) => candidate.finished);
  }

  #readOne(json: unknown, out: CompletionChunk[]): void {
    const { error, candidates, promptFeedback, usageMetadata } = object(json);
    if (error !== undefined && error !== null)
      throw toInBandFailure(json, { begun: this.#begun, redact: this.#redact });
    const before = out.length;
    for (const candidate of array(candidates)) {
      const { index } = object(candidate);
      this.#candidate(index).read(object(candidate), out);
    }
    this.#begun ||= out.length > before;
    this.#blockReason = string(object(promptFeedback)["blockReason"]) || this.#blockReason;
    this.#usage = readUsage(usageMetadata) ?? this.#usage;
  }

  #candidate(at: unknown): ChoiceReader {
    const index = typeof at === "number" && Number.isInteger(at) && at > 0 && at <= MAX_INDEX ? at : 0;
    let candidate = this.#candidates.get(index);
    if (candidate === undefined) this.#candidates.set(index, (candidate = new ChoiceReader(index)));
    return candidate;
  }

  /** The prompt was blocked: a refusal in place of candidates. */
  #refuse(out: CompletionChunk[]): void {
    const reason = WORD.test(this.#blockReason) ? ` (${this.#blockReason})` : "";
    out.push(deltaChunk(0, { case: "refusal", value: `The provider blocked the prompt${reason}.` }));
    out.push(finishChunk(0, FinishReason.CONTENT_FILTER, this.#blockReason));
  }
}
