import type { CompletionChunk, CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Usage } from "../../../gen/parley/v1/usage_pb.js";
import type { Attribution } from "../../../src/core/attribution.ts";
import type { ChoiceWriter } from "../../../src/core/chunks.ts";
import type { Failure } from "../../../src/core/failure.ts";
import type { CompletionRecord } from "../../../src/core/ledger.ts";
import type { Model } from "../../../src/core/model.ts";
import type { SimulatedKey } from "./key-directory.ts";
import type { Script } from "./scripts.ts";

/** One call of an upstream model, as recorded by the model. */
export interface UpstreamRecord {
  /** Unique in this world; every chunk contains it. */
  readonly number: number;
  /** The public ID of the model. */
  readonly model: Model;
  readonly script: Script;
  readonly signal: AbortSignal;
  /** Whether a whole answer was requested, so that nothing arrives before its end. */
  readonly isWhole: boolean;
  readonly startedMs: number;
  endedMs: number | undefined;
  usage: Usage | undefined;
  /** Finish reason of its only choice. */
  readonly writer: ChoiceWriter;
  /** Batches and text chunks that were read. */
  batches: number;
  chunks: number;
  state: "open" | "ended" | "failed" | "aborted";
  /** Failure code at its end. */
  endedAs: string | undefined;
  /** Whether it continued after the end of its completion, for its token counts. */
  outlived: boolean;
}

/** Behaviour of a caller, drawn when it arrives. */
export interface Habits {
  readonly deadlineMs: number | undefined;
  /** Cancels after this time. */
  readonly leavesAfterMs: number | undefined;
  /** Reads this number of batches, and closes the stream. */
  readonly takes: number;
  /** Duration of a pause in reading, and its probability per batch in percent. */
  readonly pauseMs: number;
  readonly pauses: number;
}

/** One completion, from its arrival to its end, with everything that its caller received. */
export class Journey {
  readonly calls: UpstreamRecord[] = [];
  readonly records: CompletionRecord[] = [];
  readonly number: number;
  readonly key: SimulatedKey;
  readonly request: CompletionRequest;
  readonly attribution: Attribution | undefined;
  readonly isStream: boolean;
  readonly habits: Habits;
  /** Estimated tokens of the prompt. The gateway may release the request after it has it. */
  readonly promptTokens: number;
  arrivedMs = 0;
  /** When it ended; the entry is written before. */
  recordedMs: number | undefined;
  endedMs: number | undefined;
  signal: AbortSignal | undefined;
  /** Whether a batch waits for the caller to read. */
  isWriting = false;
  /** Whether authentication succeeded. */
  isAsked = false;
  /** The primary model, as configured at the start. */
  primary: Model | undefined;
  isAdmitted = false;
  /** Its process was killed: its outcome is unknown, or its entry was lost because the database was unavailable. */
  isLost = false;
  /** Hangs up: clears the caller's own timers. */
  hangUp: () => void = () => undefined;
  /** The received text. */
  text = "";
  chunks = 0;
  batches = 0;
  servedModel: string | undefined;
  usage: Usage | undefined;
  isReported = false;
  failure: Failure | undefined;

  constructor({
    number,
    key,
    request,
    attribution,
    isStream,
    habits,
  }: Pick<Journey, "number" | "key" | "request" | "attribution" | "isStream" | "habits">) {
    this.number = number;
    this.key = key;
    this.request = request;
    this.attribution = attribution;
    this.isStream = isStream;
    this.habits = habits;
    this.promptTokens = promptEstimate(request);
  }

  get id(): string {
    return `chatcmpl-${this.number}`;
  }

  /** Whether the caller cancelled, its deadline has passed, or the timeout for all attempts. */
  isStopped(nowMs: number): boolean {
    if (this.signal?.aborted === true) return true;
    // The time begins with the first call, after the wait for the completion's note.
    const begunMs = this.calls[0]?.startedMs ?? Infinity;
    return this.isAdmitted && nowMs >= begunMs + (this.primary?.timeouts.totalMs ?? Infinity);
  }

  recorded(record: CompletionRecord, nowMs: number): void {
    this.records.push(record);
    this.recordedMs = nowMs;
  }

  /** Records what the caller received. Returns an error, if any. */
  receive(batch: readonly CompletionChunk[]): string | undefined {
    this.batches += 1;
    let wrong = batch.length === 0 ? "an empty batch" : undefined;
    for (const { event } of batch) {
      if (this.isReported) wrong ??= `${event.case} after the report`;
      if (event.case !== "start" && this.servedModel === undefined) wrong ??= `${event.case} before the start`;
      if (event.case === "start") {
        if (this.servedModel !== undefined) wrong ??= "a second start";
        this.servedModel = event.value.model;
      } else if (event.case === "report") this.isReported = true;
      else if (event.case === "usage") this.usage = event.value;
      else if (event.case === "partDelta") wrong ??= this.#add(event.value.content.value);
    }
    return wrong;
  }

  /** Every chunk must be the next one of the last call. */
  #add(text: unknown): string | undefined {
    const call = this.calls.at(-1);
    const expected = call === undefined ? "nothing" : textOf(call.number, this.chunks);
    this.chunks += 1;
    this.text += String(text);
    return text === expected ? undefined : `${String(text)} in place of ${expected}`;
  }
}

/** Text of the chunk with this index. */
export function textOf(call: number, index: number): string {
  return `${call}.${index} `;
}

/** Estimated tokens of the prompt, as documented: a quarter of its bytes, and four for each message. */
function promptEstimate({ messages }: CompletionRequest): number {
  let bytes = 0;
  for (const { parts } of messages)
    for (const { kind } of parts) if (kind.case === "text") bytes += Buffer.byteLength(kind.value);
  return Math.ceil(bytes / 4) + 4 * messages.length;
}
