import type { CompletionChunk, CompletionRequest, Usage } from "../../../gen/parley/v1/completion_pb.js";
import type { Failure } from "../../../src/core/failure.ts";
import type { CompletionRecord } from "../../../src/core/ledger.ts";
import type { Model } from "../../../src/core/model.ts";
import type { SimulatedKey } from "./key-directory.ts";
import type { Script } from "./scripts.ts";

/** One call of an upstream model, as the model saw it. */
export interface UpstreamRecord {
  /** Unlike every other in this world: every chunk carries it. */
  readonly number: number;
  /** The model's ID for callers. */
  readonly model: Model;
  readonly script: Script;
  readonly signal: AbortSignal;
  /** Asked for a whole answer, of which nothing is seen before its end. */
  readonly isWhole: boolean;
  readonly startedMs: number;
  endedMs: number | undefined;
  usage: Usage | undefined;
  /** Batches and chunks of text that were taken from it. */
  batches: number;
  chunks: number;
  state: "open" | "ended" | "failed" | "aborted";
  /** The code of the failure it ended with. */
  endedAs: string | undefined;
  /** Its completion was over before it was: it was still listened to for its count. */
  outlived: boolean;
}

/** What a caller is going to do, drawn when it arrives. */
export interface Habits {
  readonly deadlineMs: number | undefined;
  /** Is gone after this time, whatever it has received. */
  readonly leavesAfterMs: number | undefined;
  /** Takes so many batches and closes. */
  readonly takes: number;
  /** How long it does not read when it has read enough for now, and how often that is the case, in percent. */
  readonly pauseMs: number;
  readonly pauses: number;
}

/** One completion, from its arrival to its end, and everything that its caller could see of it. */
export class Journey {
  readonly calls: UpstreamRecord[] = [];
  readonly records: CompletionRecord[] = [];
  readonly number: number;
  readonly key: SimulatedKey;
  readonly request: CompletionRequest;
  readonly isStream: boolean;
  readonly habits: Habits;
  /** About as many tokens as the prompt has. The request itself is the gateway's once it is there, and may be emptied. */
  readonly promptTokens: number;
  arrivedMs = 0;
  /** When it was noted as over: it has ended when it is written down. */
  recordedMs: number | undefined;
  endedMs: number | undefined;
  signal: AbortSignal | undefined;
  /** The gateway knew who asked. */
  isAsked = false;
  /** The first choice, as it was configured then. */
  primary: Model | undefined;
  isAdmitted = false;
  admittedMs = 0;
  /** Its process was killed: nobody knows how it ended, or with the database away its entry went with the process. */
  isLost = false;
  /** The caller hangs up: ends its own timers. */
  hangUp: () => void = () => undefined;
  /** The text so far; of a whole answer all of it. */
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
    isStream,
    habits,
  }: Pick<Journey, "number" | "key" | "request" | "isStream" | "habits">) {
    this.number = number;
    this.key = key;
    this.request = request;
    this.isStream = isStream;
    this.habits = habits;
    this.promptTokens = promptEstimate(request);
  }

  get id(): string {
    return `chatcmpl-${this.number}`;
  }

  /** Whether the caller is gone, its deadline has passed, or the time for all attempts is up. */
  isStopped(nowMs: number): boolean {
    if (this.signal?.aborted === true) return true;
    return this.isAdmitted && nowMs >= this.admittedMs + (this.primary?.timeouts.totalMs ?? Infinity);
  }

  recorded(record: CompletionRecord, nowMs: number): void {
    this.records.push(record);
    this.recordedMs = nowMs;
  }

  /** What the caller received. Answers what is wrong with it, if anything. */
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
      else if (event.case === "delta") wrong ??= this.#add(event.value.content.value);
    }
    return wrong;
  }

  /** Every chunk is the next one of the only call that may speak: the last one. */
  #add(text: unknown): string | undefined {
    const call = this.calls.at(-1);
    const expected = call === undefined ? "nothing" : textOf(call.number, this.chunks);
    this.chunks += 1;
    this.text += String(text);
    return text === expected ? undefined : `${String(text)} in place of ${expected}`;
  }
}

/** What the chunk with this index of this call says. */
export function textOf(call: number, index: number): string {
  return `${call}.${index} `;
}

/** About as many tokens as the prompt has, by the documented rule: a quarter of its bytes, and four for each message. */
function promptEstimate({ messages }: CompletionRequest): number {
  let bytes = 0;
  for (const { content } of messages)
    for (const part of content) if (part.content.case === "text") bytes += Buffer.byteLength(part.content.value);
  return Math.ceil(bytes / 4) + 4 * messages.length;
}
