import type { CompletionChunk, Usage } from "../../../gen/parley/v1/completion_pb.js";
import { usageChunk } from "../../core/chunks.ts";
import { Failure } from "../../core/failure.ts";
import type { StreamReader } from "../answer.ts";
import { array, count, type Json, object } from "../lenient.ts";
import type { SseEvent } from "../sse.ts";
import { ChoiceReader } from "./choice-reader.ts";
import { findError, toInnerFailure } from "./failure.ts";
import { readUsage } from "./usage.ts";

/**
 * Reads the events of one stream. A choice's finish is passed on when the stream ends, not when it is read: some servers
 * say more after it, and what comes last must be the finishes and the usage.
 */
export class OpenAiStreamReader implements StreamReader {
  readonly #choices = new Map<number, ChoiceReader>();
  #usage: Usage | undefined;
  #complete = false;

  get complete(): boolean {
    return this.#complete;
  }

  /** Whether the upstream has said why every choice ended. */
  get ended(): boolean {
    return this.#choices.size > 0 && [...this.#choices.values()].every((choice) => choice.ended);
  }

  read({ event, data }: SseEvent, out: CompletionChunk[]): void {
    const text = data.trim();
    if (text === "") return;
    if (text === "[DONE]") return this.end(out);
    const json: unknown = JSON.parse(text);
    if (event === "error") throw toInnerFailure(findError(json) ?? json, "stream");
    this.readObject(json, out);
  }

  /**
   * Appends what one object says: a chunk of a stream, or a whole completion, whose only difference is the name of
   * the field that holds a choice's message. Throws the Failure that the object reports, if it does.
   */
  readObject(json: unknown, out: CompletionChunk[]): void {
    const error = findError(json);
    if (error !== undefined) throw toInnerFailure(error, "stream");
    const answer = object(json);
    array(answer.choices).forEach((entry, position) => this.#readChoice(object(entry), position, out));
    this.#usage = readUsage(answer.usage) ?? this.#usage;
  }

  /** A stream that has said why every choice ended is complete, with or without the marker. */
  end(out: CompletionChunk[]): void {
    const choices = [...this.#choices].toSorted(([a], [b]) => a - b).map(([, choice]) => choice);
    if (!this.ended) {
      throw new Failure("upstream_protocol", "The upstream provider closed the stream before it was complete.");
    }
    if (!choices.some((choice) => choice.meant)) {
      throw new Failure("upstream_protocol", "The upstream provider's answer was empty.");
    }
    for (const choice of choices) choice.finish(out);
    if (this.#usage !== undefined) out.push(usageChunk(this.#usage));
    this.#complete = true;
  }

  #readChoice(entry: Json, position: number, out: CompletionChunk[]): void {
    const index = count(entry.index) ?? position;
    let choice = this.#choices.get(index);
    if (choice === undefined) this.#choices.set(index, (choice = new ChoiceReader(index)));
    choice.read(entry, out);
    this.#usage = readUsage(entry.usage) ?? this.#usage;
  }
}
