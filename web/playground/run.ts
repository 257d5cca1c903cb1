import { toJsonString } from "@bufbuild/protobuf";
import { ConnectError, Code } from "@connectrpc/connect";
import {
  type CompletionChunk,
  CompletionChunkSchema,
  type CompletionRequest,
} from "../../gen/parley/v1/completion_pb.js";
import { playground } from "../api/playground.ts";
import { addChunk, type Answer, NOTHING } from "./answer.ts";
import { shorten } from "./shorten.ts";

/** Number of events kept for display. */
const MAX_EVENTS = 5_000;

/** A received stream message. */
interface ArrivedEvent {
  /** Milliseconds since the request was sent. */
  readonly atMs: number;
  /** JSON, on one line. */
  readonly json: string;
}

/** State of one completion during and after the stream. Times are from `performance.now`. */
export interface Run {
  readonly request: CompletionRequest;
  readonly state: "running" | "done" | "stopped" | "failed";
  readonly answer: Answer;
  readonly startedMs: number;
  /** When the first content arrived. */
  readonly firstMs: number | undefined;
  readonly endedMs: number | undefined;
  readonly events: readonly ArrivedEvent[];
  /** Number of events received after MAX_EVENTS. */
  readonly furtherEvents: number;
  /** Error of a failed run. */
  readonly error: unknown;
  /** Request ID from the response headers; empty before them. */
  readonly requestId: string;
}

/** Shortest interval between updates, because rendering each chunk would make the page stutter. */
const TELL_MS = 40;

export interface RunOptions {
  readonly keyId: string;
  readonly request: CompletionRequest;
  readonly signal: AbortSignal;
  /** Called with the state at the start, at most every TELL_MS while streaming, and at the end. */
  readonly tell: (run: Run) => void;
}

/** Runs one completion. Resolves with the final state, also after a failure. */
export async function runCompletion({ keyId, request, signal, tell }: RunOptions): Promise<Run> {
  const progress = new Progress(request);
  let updatedMs = progress.run.startedMs;
  tell(progress.run);
  try {
    const stream = playground.stream(
      { keyId, completion: request },
      { signal, timeoutMs: 0, onHeader: (headers) => progress.named(headers.get("x-request-id") ?? "") },
    );
    for await (const { chunk } of stream) {
      if (chunk !== undefined) progress.add(chunk);
      const nowMs = performance.now();
      if (nowMs - updatedMs < TELL_MS) continue;
      updatedMs = nowMs;
      tell(progress.run);
    }
    progress.end("done");
  } catch (error) {
    const isStopped = signal.aborted && ConnectError.from(error).code === Code.Canceled;
    progress.end(isStopped ? "stopped" : "failed", isStopped ? undefined : error);
  }
  tell(progress.run);
  return progress.run;
}

class Progress {
  run: Run;
  readonly #events: ArrivedEvent[] = [];

  constructor(request: CompletionRequest) {
    this.run = {
      request,
      state: "running",
      answer: NOTHING,
      startedMs: performance.now(),
      firstMs: undefined,
      endedMs: undefined,
      events: this.#events,
      furtherEvents: 0,
      error: undefined,
      requestId: "",
    };
  }

  named(requestId: string): void {
    this.run = { ...this.run, requestId };
  }

  add(chunk: CompletionChunk): void {
    const nowMs = performance.now();
    const isKept = this.#events.length < MAX_EVENTS;
    if (isKept) {
      const json = toJsonString(CompletionChunkSchema, chunk);
      this.#events.push({ atMs: nowMs - this.run.startedMs, json: shorten(json) });
    }
    this.run = {
      ...this.run,
      answer: addChunk(this.run.answer, chunk),
      firstMs:
        this.run.firstMs ?? (chunk.event.case === "partDelta" || chunk.event.case === "partStart" ? nowMs : undefined),
      furtherEvents: this.run.furtherEvents + (isKept ? 0 : 1),
    };
  }

  end(state: "done" | "stopped" | "failed", error?: unknown): void {
    this.run = { ...this.run, state, error, endedMs: performance.now() };
  }
}
