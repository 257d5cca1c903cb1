import type { CompletionChunk } from "../../../gen/parley/v1/completion_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import { AnswerBuilder } from "../../core/answer-builder.ts";
import { PartBudget } from "../../core/part-budget.ts";
import { usageChunk } from "../../core/chunks.ts";
import { Failure } from "../../core/failure.ts";
import type { Answer } from "../../core/provider.ts";
import { FurtherFields } from "../wire/further-fields.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";
import { keepAll, type Redact } from "../wire/redaction.ts";
import { incomplete, noOutput, truncated } from "../wire/response-failure.ts";
import type { StreamReader } from "../wire/response.ts";
import { EventJson, isEndMarker, type SseEvent } from "../wire/sse.ts";
import { ChoiceReader } from "./choice-reader.ts";
import { findError, toInBandFailure } from "../wire/openai-failure.ts";
import { isBroken } from "./finish-reason.ts";
import { addChoiceUsages, readUsage } from "./usage.ts";

/** Largest number of choices that a request may ask for. */
const MAX_CHOICES = 128;

const OF_ANSWER: ReadonlySet<string> = new Set(["choices"]);

const tooManyChoices = (): Failure =>
  new Failure("upstream_protocol", `The provider's answer has more than ${MAX_CHOICES} choices.`);

/**
 * Reads the events of one stream. Emits the finishes at the end of the stream: some servers send more content after a finish
 * reason, and finishes and usage must come last.
 */
export class AnswerStream implements StreamReader {
  readonly #choices = new Map<number, ChoiceReader>();
  readonly #budget = new PartBudget();
  readonly #events = new EventJson();
  readonly #redact: Redact;
  readonly #form: "delta" | "message";
  readonly #further = new FurtherFields("openai.", OF_ANSWER, this.#budget);
  #usage: Usage | undefined;
  /** Usage of single choices, by their index: some servers, such as Moonshot's, have it there. */
  readonly #choiceUsages = new Map<number, Usage>();
  #complete = false;

  /**
   * `redact` removes the provider's credentials from its errors. `form`: the field with the content when a choice has both. Perplexity
   * sends an empty delta in a whole completion, and the message so far in every chunk.
   */
  constructor(redact: Redact = keepAll, form: "delta" | "message" = "delta") {
    this.#redact = redact;
    this.#form = form;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Whether every choice has a finish reason: only the end marker, usage or late pieces may follow. */
  get finished(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every((choice) => choice.finished);
  }

  /** Whether every choice has ended, with or without a known reason: some servers send an empty one with every piece. */
  get ended(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every((choice) => choice.ended);
  }

  read({ event, data }: SseEvent, out: CompletionChunk[]): void {
    if (isEndMarker(data)) return this.end(out);
    const json = this.#events.read(data);
    if (json === undefined) return;
    if (event === "error") throw this.#toFailure(findError(json) ?? json);
    this.readObject(json, out);
  }

  /**
   * Appends the chunks of one object: a stream chunk or a whole completion, which differ only in the field name of a choice's
   * message. Throws the Failure of an error object.
   */
  readObject(json: unknown, out: CompletionChunk[]): void {
    const error = findError(json);
    const answer = object(json);
    const usage = readUsage(answer.usage);
    if (error !== undefined) throw this.#toFailure(error, usage);
    this.#further.add(answer);
    array(answer.choices).forEach((entry, position) => this.#readChoice(object(entry), { position, usage }, out));
    this.#usage = usage ?? this.#usage;
  }

  /** Ends the stream: complete with all finish reasons, with or without the end marker. */
  end(out: CompletionChunk[]): void {
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b).map(([, choice]) => choice);
    if (!this.ended) throw truncated();
    if (!choices.some((choice) => choice.meant)) throw noOutput();
    const redact = this.#redact;
    // The further fields of the answer go to the first choice.
    choices.forEach((choice, at) =>
      choice.finish({ details: at === 0 ? this.#further.read(redact) : {}, redact }, out),
    );
    const usage = this.#usage ?? addChoiceUsages([...this.#choiceUsages.values()]);
    if (usage !== undefined) out.push(usageChunk(usage));
    this.#complete = true;
  }

  /** The failure of an error in the answer. `usage`: the count beside the error. An earlier one counts only a part of the answer. */
  #toFailure(error: unknown, usage?: Usage): Failure {
    const counted = [this.#usage, ...this.#choiceUsages.values()].some((each) => (each?.outputTokens ?? 0) > 0);
    const begun = counted || [...this.#choices.values()].some((choice) => choice.spoke);
    return toInBandFailure(error, { begun, usage, redact: this.#redact });
  }

  #readChoice(
    entry: Json,
    { position, usage }: { readonly position: number; readonly usage: Usage | undefined },
    out: CompletionChunk[],
  ): void {
    const index = count(entry.index) ?? position;
    let choice = this.#choices.get(index);
    if (choice === undefined) {
      if (this.#choices.size >= MAX_CHOICES) throw tooManyChoices();
      this.#choices.set(index, (choice = new ChoiceReader(index, this.#budget, this.#form)));
    }
    choice.read(entry, out);
    // After its content, which may be billed.
    if (entry.error) throw this.#toFailure(entry.error, usage);
    if (isBroken(string(entry.finish_reason))) throw this.#toFailure(undefined, usage);
    const own = readUsage(entry.usage);
    if (own !== undefined) this.#choiceUsages.set(index, own);
  }
}

/**
 * Reads a whole completion as a stream of one event. Throws the Failure of an error object, or `upstream_protocol` for an
 * invalid or unfinished completion.
 */
export function toAnswer(json: unknown, redact = keepAll): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json, redact)) builder.add(chunk);
  return builder.build();
}

/** Reads a whole completion into chunks. */
export function toAnswerChunks(json: unknown, redact = keepAll): CompletionChunk[] {
  const error = findError(json);
  const { choices, usage } = object(json);
  // Choices beside an error are an answer that broke off, which may be billed.
  if (error !== undefined)
    throw toInBandFailure(error, { begun: array(choices).length > 0, usage: readUsage(usage), redact });
  const reader = new AnswerStream(redact, "message");
  const out: CompletionChunk[] = [];
  reader.readObject(json, out);
  if (!reader.ended) throw incomplete();
  reader.end(out);
  return out;
}
