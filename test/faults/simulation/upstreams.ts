import { create } from "@bufbuild/protobuf";
import { type CompletionChunk, type CompletionRequest, FinishReason } from "../../../gen/parley/v1/completion_pb.js";
import { OmissionReason } from "../../../gen/parley/v1/report_pb.js";
import { UsageSchema } from "../../../gen/parley/v1/usage_pb.js";
import { ChoiceWriter, usageChunk } from "../../../src/core/chunks.ts";
import type { Clock } from "../../../src/core/clock.ts";
import { Failure } from "../../../src/core/failure.ts";
import type { Model } from "../../../src/core/model.ts";
import { omission } from "../../../src/core/provider-options.ts";
import type {
  Answer,
  Emit,
  Provider,
  TranslateOptions,
  Translation,
  UpstreamCall,
  UpstreamModel,
} from "../../../src/core/provider.ts";
import { foldStream } from "../../support/fold.ts";
import { PLAINLY_SENT } from "../../support/scripted-provider.ts";
import type { Chance } from "./chance.ts";
import { type Journey, textOf, type UpstreamRecord } from "./journey.ts";
import { drawScript, type Weather } from "./scripts.ts";
import type { Watch } from "./watch.ts";

/** Shared state of the upstream models of all processes. */
export interface Sky {
  readonly chance: Chance;
  readonly watch: Watch;
  /** Behaviour by upstream model name. */
  readonly weather: Map<string, Weather>;
  journeyOf(tag: string): Journey;
  /** Returns a unique number for a call. */
  nextCall(): number;
}

/** Observes the upstream calls of one process. */
export interface CallWatch {
  began(call: UpstreamRecord, journey: Journey): void;
  committed(call: UpstreamRecord): void;
  ended(call: UpstreamRecord, failure: unknown): void;
}

/** A configured provider of one process: draws a script for each call, and numbers every chunk. */
export class Upstreams implements Provider {
  readonly #clock: Clock;
  readonly #sky: Sky;
  readonly #calls: CallWatch;
  readonly #modelOf: (upstreamName: string) => Model;
  #isClosed = false;

  constructor({
    clock,
    sky,
    calls,
    modelOf,
  }: {
    clock: Clock;
    sky: Sky;
    calls: CallWatch;
    modelOf: (name: string) => Model;
  }) {
    this.#clock = clock;
    this.#sky = sky;
    this.#calls = calls;
    this.#modelOf = modelOf;
  }

  /** The body is the completion's tag, which also determines what a model cannot accept. */
  translate(request: CompletionRequest, { name }: UpstreamModel, { mode }: TranslateOptions): Translation {
    const tag = request.endUserId ?? "";
    const number = Number(tag) + name.length + name.charCodeAt(1);
    if (number % 23 === 0) throw new Failure("invalid_request", "This model cannot take this.");
    const omitted = number % 7 === 0 ? [omission("seed", OmissionReason.UNSUPPORTED)] : [];
    const streamed = mode === "stream" || number % 4 === 0;
    return {
      body: Buffer.from(tag),
      omitted,
      clamped: [],
      streamed,
      verbatim: false,
      sent: { ...PLAINLY_SENT, textBytes: SENT_BYTES, maxTokens: request.maxOutputTokens },
    };
  }

  create(call: UpstreamCall): Promise<Answer> {
    if (call.translation.streamed) throw new Error("A translation that asks for a stream was posted as a whole one.");
    return foldStream((emit) => this.#say(call, emit, { isWhole: true }));
  }

  stream(call: UpstreamCall, emit: Emit): Promise<void> {
    return this.#say(call, emit, { isWhole: false });
  }

  async close(): Promise<void> {
    this.#isClosed = true;
  }

  async #say(upstream: UpstreamCall, emit: Emit, { isWhole }: { isWhole: boolean }): Promise<void> {
    const { signal, idleMs } = upstream;
    const { call, journey } = this.#begin(upstream, isWhole);
    const { batches, firstMs, gapMs, failure } = call.script;
    let reason: unknown;
    try {
      for (const [index, size] of batches.entries()) {
        await this.#wait(index === 0 ? firstMs : gapMs, idleMs, signal);
        const batch = this.#batch(call, size, journey);
        call.batches += 1;
        if (call.batches === 1) this.#calls.committed(call);
        if (!isWhole) this.#checkPull(call, journey);
        await emit(batch);
      }
      const patience = call.script.ending === "stalls" ? Infinity : batches.length === 0 ? firstMs : gapMs;
      await this.#wait(patience, batches.length === 0 ? Infinity : idleMs, signal);
      if (failure !== undefined) throw failure;
      // An adapter does not accept an empty whole answer.
      if (batches.length === 0 && !journey.isStream) throw EMPTY;
      call.state = "ended";
    } catch (thrown) {
      reason = thrown;
      call.state = signal.aborted ? "aborted" : "failed";
      call.endedAs = thrown instanceof Failure ? thrown.code : "internal";
      throw thrown;
    } finally {
      call.endedMs = this.#clock.monotonic();
      call.outlived = call.model.timeouts.settleMs > 0 && journey.isStopped(call.endedMs);
      this.#sky.watch.note(`call ${call.number} ${call.state} ${call.endedAs ?? ""}`, journey.number);
      // The router does not accept an empty answer.
      this.#calls.ended(call, call.state === "ended" && call.batches === 0 ? EMPTY : reason);
    }
  }

  #begin(
    { model, translation, signal, idleMs }: UpstreamCall,
    isWhole: boolean,
  ): { call: UpstreamRecord; journey: Journey } {
    const { chance, watch, weather } = this.#sky;
    const journey = this.#sky.journeyOf(translation.body.toString());
    const call: UpstreamRecord = {
      number: this.#sky.nextCall(),
      model: this.#modelOf(model.name),
      script: drawScript(chance, weather.get(model.name) ?? "fine", idleMs),
      signal,
      isWhole,
      outlived: false,
      startedMs: this.#clock.monotonic(),
      endedMs: undefined,
      usage: undefined,
      writer: new ChoiceWriter(0),
      batches: 0,
      chunks: 0,
      state: "open",
      endedAs: undefined,
    };
    watch.count(`upstream calls: ${call.script.ending}`);
    watch.note(`call ${call.number} of ${model.name}: ${call.script.ending}`, journey.number);
    if (this.#isClosed)
      watch.breach("attempts", `${model.name} was called after its provider was closed`, journey.number);
    if (signal.aborted) watch.breach("attempts", `${model.name} was called after its caller cancelled`, journey.number);
    if (journey.isStream && journey.batches > 0)
      watch.breach("chunks", `${model.name} was called after content had reached the caller`, journey.number);
    journey.calls.push(call);
    this.#calls.began(call, journey);
    return { call, journey };
  }

  #batch(call: UpstreamRecord, size: number, journey: Journey): CompletionChunk[] {
    const { number, script } = call;
    const isLast = call.batches === script.batches.length - 1;
    const chunks: CompletionChunk[] = [];
    for (let count = 0; count < size; count++) {
      call.writer.text({ case: "text", value: textOf(number, call.chunks) }, chunks);
      call.chunks += 1;
    }
    if (isLast && script.ending === "well") call.writer.finish({ reason: FinishReason.STOP, native: "stop" }, chunks);
    if (call.batches === script.usageAfter) {
      const inputTokens = this.#sky.chance.between(1, 20);
      const outputTokens = this.#sky.chance.between(1, journey.request.maxOutputTokens ?? 1);
      const cachedInputTokens = this.#sky.chance.between(0, inputTokens);
      const totalTokens = inputTokens + outputTokens;
      call.usage = create(UsageSchema, { inputTokens, outputTokens, totalTokens, cachedInputTokens });
      chunks.push(usageChunk(call.usage));
    }
    return chunks;
  }

  /** Nothing is read ahead while the caller does not read. */
  #checkPull(call: UpstreamRecord, journey: Journey): void {
    if (journey.isStopped(this.#clock.monotonic())) return;
    if (journey.isStream && call.batches > journey.batches + 1)
      this.#sky.watch.breach("chunks", `call ${call.number} was read ahead of its caller`, journey.number);
  }

  /** As in an adapter: idle time is limited, and a signal aborts. */
  async #wait(ms: number, idleMs: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (ms === 0) return;
    await new Promise<void>((resolve, reject) => {
      const stop = (): void => {
        cancel();
        reject(signal.reason);
      };
      const limitMs = Math.min(ms, idleMs);
      const cancel = Number.isFinite(limitMs)
        ? this.#clock.after(limitMs, () => {
            signal.removeEventListener("abort", stop);
            if (ms > idleMs) reject(new Failure("upstream_timeout", "The upstream provider fell silent."));
            else resolve();
          })
        : () => undefined;
      signal.addEventListener("abort", stop, { once: true });
    });
  }
}

/** A size larger than that of every drawn request. */
export const SENT_BYTES = 400;

const EMPTY = new Failure("upstream_protocol", "Nothing was said.");
