import type { CompletionChunk, Usage } from "../../../gen/parley/v1/completion_pb.js";
import { AnswerBuilder, usageChunk } from "../../core/chunks.ts";
import type { Failure } from "../../core/failure.ts";
import type { Answer } from "../../core/provider.ts";
import { array, count, type Json, object, string } from "../wire/json.ts";
import { keepAll, type Redact } from "../wire/redaction.ts";
import { incomplete, noOutput, truncated } from "../wire/response-failure.ts";
import type { StreamReader } from "../wire/response.ts";
import { EventJson, isEndMarker, type SseEvent } from "../wire/sse.ts";
import { ChoiceReader } from "./choice-reader.ts";
import { findError, toInBandFailure } from "./failure.ts";
import { isBroken } from "./finish-reason.ts";
import { readUsage } from "./usage.ts";

/**
 * Reads the events of one stream. A choice's finish is passed on when the stream ends, not when it is read: some servers
 * say more after it, and what comes last must be the finishes and the usage.
 */
export class AnswerStream implements StreamReader {
  readonly #choices = new Map<number, ChoiceReader>();
  readonly #events = new EventJson();
  readonly #redact: Redact;
  #usage: Usage | undefined;
  #complete = false;

  /** `redact` takes the provider's credentials out of its errors. */
  constructor(redact: Redact = keepAll) {
    this.#redact = redact;
  }

  get complete(): boolean {
    return this.#complete;
  }

  /** Whether the upstream has named why every choice ended: only the marker, the usage, or late pieces may follow. */
  get finished(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every((choice) => choice.finished);
  }

  /** The same, or ended every choice without naming a reason, as some servers do with every piece. */
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
   * Appends what one object says: a chunk of a stream, or a whole completion, whose only difference is the name of
   * the field that holds a choice's message. Throws the Failure that the object reports, if it does.
   */
  readObject(json: unknown, out: CompletionChunk[]): void {
    const error = findError(json);
    if (error !== undefined) throw this.#toFailure(error);
    const answer = object(json);
    array(answer.choices).forEach((entry, position) => this.#readChoice(object(entry), position, out));
    this.#usage = readUsage(answer.usage) ?? this.#usage;
  }

  /** A stream that has said why every choice ended is complete, with or without the marker. */
  end(out: CompletionChunk[]): void {
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b).map(([, choice]) => choice);
    if (!this.ended) throw truncated();
    if (!choices.some((choice) => choice.meant)) throw noOutput();
    for (const choice of choices) choice.finish(out);
    if (this.#usage !== undefined) out.push(usageChunk(this.#usage));
    this.#complete = true;
  }

  /** The failure for an error in the answer; undefined for one of which nothing is said. */
  #toFailure(error: unknown): Failure {
    const begun = [...this.#choices.values()].some((choice) => choice.spoke);
    return toInBandFailure(error, { begun, redact: this.#redact });
  }

  #readChoice(entry: Json, position: number, out: CompletionChunk[]): void {
    const index = count(entry.index) ?? position;
    let choice = this.#choices.get(index);
    if (choice === undefined) this.#choices.set(index, (choice = new ChoiceReader(index)));
    if (entry.error) throw this.#toFailure(entry.error);
    choice.read(entry, out);
    if (isBroken(string(entry.finish_reason))) throw this.#toFailure(undefined);
    this.#usage = readUsage(entry.usage) ?? this.#usage;
  }
}

/**
 * A whole completion, read as a stream of one event. Throws the Failure that it reports, or `upstream_protocol` when it
 * is no completion or has no end.
 */
export function toAnswer(json: unknown, redact = keepAll): Answer {
  const builder = new AnswerBuilder();
  for (const chunk of toAnswerChunks(json, redact)) builder.add(chunk);
  return builder.build();
}

/** The same as chunks. */
export function toAnswerChunks(json: unknown, redact = keepAll): CompletionChunk[] {
  const error = findError(json);
  if (error !== undefined) throw toInBandFailure(error, { begun: false, redact });
  const reader = new AnswerStream(redact);
  const out: CompletionChunk[] = [];
  reader.readObject(json, out);
  if (!reader.ended) throw incomplete();
  reader.end(out);
  return out;
}
