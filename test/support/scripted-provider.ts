import { toJson } from "@bufbuild/protobuf";
import {
  type CompletionChunk,
  type CompletionRequest,
  CompletionRequestSchema,
} from "../../gen/parley/v1/completion_pb.js";
import { EmbeddingTask } from "../../gen/parley/v1/embedding_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { OmissionReason } from "../../gen/parley/v1/report_pb.js";
import type { Usage } from "../../gen/parley/v1/usage_pb.js";
import type { Clock } from "../../src/core/clock.ts";
import { Failure } from "../../src/core/failure.ts";
import type { Model } from "../../src/core/model.ts";
import { textsOf } from "../../src/core/validate-embedding.ts";
import type {
  Answer,
  Capabilities,
  EmbeddingProvider,
  Emit,
  Provider,
  Translation,
  UpstreamCall,
  UpstreamModel,
} from "../../src/core/provider.ts";
import { startChunk, toPart } from "../../src/core/chunks.ts";
import { omission } from "../../src/core/provider-options.ts";
import { bytesOfInputs } from "../../src/core/token-estimate.ts";
import { foldStream } from "./fold.ts";

const TEXT_START = startChunk({
  $typeName: "parley.v1.PartStart",
  choiceIndex: 0,
  partIndex: 0,
  part: toPart({ case: "text", value: "" }),
});

/** Behaviour of one call of an upstream model. A whole answer consists of the same batches. */
export interface Script {
  /** Sent in this order before the end. */
  readonly batches?: readonly (readonly CompletionChunk[])[];
  /** Then it succeeds, stays silent until a timeout or the caller ends it, or fails. */
  readonly ending: "end" | "hang" | Failure;
  /** Delay before each batch and before the end. */
  readonly pauseMs?: number;
  /** Token count of embeddings, whose vectors are `[1, 2]`. */
  readonly usage?: Usage;
}

/** One recorded call. */
export interface ScriptedCall {
  /** Upstream model name. */
  readonly model: string;
  readonly script: Script;
  readonly signal: AbortSignal;
  /** Key family of the request. */
  readonly keyFamilyId: string | undefined;
  /** Number of batches that were read. */
  given: number;
  /** How it ended: by itself or by the call's signal; `open` until then. */
  state: "open" | "ended" | "failed" | "aborted";
}

const NOTHING_LOST = { body: Buffer.from("{}"), omitted: [], clamped: [], streamed: false, verbatim: false } as const;

/** Fields of a sent request without options that change its price. */
export const PLAINLY_SENT = { priceFactor: 1, unbounded: "no", cacheWrite: "none" } as const;

/**
 * An in-memory provider. Each upstream model has scripts, one per call, with the last one repeated; every call is
 * recorded.
 */
export class ScriptedProvider implements Provider {
  readonly calls: ScriptedCall[] = [];
  readonly #clock: Clock;
  readonly #scripts: Readonly<Record<string, readonly Script[]>>;
  readonly #translations: Readonly<Record<string, Partial<Translation> | Failure>>;

  /** `translations` has the lost fields by upstream model, or the refusal. */
  constructor(
    clock: Clock,
    scripts: Readonly<Record<string, readonly Script[]>>,
    translations: Readonly<Record<string, Partial<Translation> | Failure>> = {},
  ) {
    this.#clock = clock;
    this.#scripts = scripts;
    this.#translations = translations;
  }

  translate(request: CompletionRequest, { name }: UpstreamModel): Translation {
    const translation = this.#translations[name];
    if (translation instanceof Failure) throw translation;
    const textBytes = JSON.stringify(toJson(CompletionRequestSchema, request)).length;
    return {
      ...NOTHING_LOST,
      sent: { ...PLAINLY_SENT, textBytes, maxTokens: request.maxOutputTokens },
      ...translation,
    };
  }

  async create(call: UpstreamCall): Promise<Answer> {
    if (call.translation.streamed) throw new Error("A translation that asks for a stream was posted as a whole one.");
    // Scripts have one text part.
    return foldStream(async (emit) => {
      await emit([TEXT_START]);
      await this.stream(call, emit);
    });
  }

  async stream(asked: UpstreamCall, emit: Emit): Promise<void> {
    const { signal, idleMs } = asked;
    const call = this.#begin(asked);
    const { batches = [], ending, pauseMs = 0 } = call.script;
    try {
      for (const batch of batches) {
        await this.#wait(pauseMs, signal);
        call.given += 1;
        await emit(batch);
      }
      if (ending === "hang") {
        await this.#wait(idleMs, signal);
        throw new Failure("upstream_timeout", "The upstream provider fell silent.");
      }
      await this.#wait(pauseMs, signal);
      if (ending !== "end") throw ending;
      call.state = "ended";
    } catch (reason) {
      call.state = signal.aborted ? "aborted" : "failed";
      throw reason;
    }
  }

  readonly embeddings: EmbeddingProvider = {
    translate: ({ inputs, task }, { name }) => {
      const translation = this.#translations[name];
      if (translation instanceof Failure) throw translation;
      const omitted = task === EmbeddingTask.UNSPECIFIED ? [] : [omission("task", OmissionReason.UNSUPPORTED)];
      const sent = { ...PLAINLY_SENT, textBytes: bytesOfInputs(textsOf(inputs)), maxTokens: 0 };
      return { ...NOTHING_LOST, omitted, sent, ...translation };
    },
    create: async (call, inputs) => {
      await this.stream(call, () => undefined);
      const { usage } = this.calls.at(-1)!.script;
      return { vectors: Array.from({ length: inputs }, () => [1, 2]), usage };
    },
  };

  async close(): Promise<void> {}

  #begin({ model: { name: model }, signal, keyFamilyId }: UpstreamCall): ScriptedCall {
    const scripts = this.#scripts[model] ?? [];
    const script = scripts[Math.min(this.calls.filter((call) => call.model === model).length, scripts.length - 1)];
    if (script === undefined) throw new RangeError(`no script for ${model}`);
    const call: ScriptedCall = { model, script, signal, keyFamilyId, given: 0, state: "open" };
    this.calls.push(call);
    return call;
  }

  async #wait(ms: number, signal: AbortSignal): Promise<void> {
    signal.throwIfAborted();
    if (ms === 0) return;
    await new Promise<void>((resolve, reject) => {
      const cancel = this.#clock.after(ms, () => {
        signal.removeEventListener("abort", stop);
        resolve();
      });
      const stop = (): void => {
        cancel();
        reject(signal.reason);
      };
      signal.addEventListener("abort", stop, { once: true });
    });
  }
}

/** Overrides for an ordinary model. */
export interface ModelFacts extends Partial<Omit<Model, "id" | "provider" | "upstream">> {
  readonly upstream?: Partial<Omit<UpstreamModel, "capabilities">>;
  readonly capabilities?: Partial<Capabilities>;
}

/** A text model of `provider`, whose upstream name is `<id>-upstream`. */
export function modelOf(id: string, provider: Provider, { upstream, capabilities, ...facts }: ModelFacts = {}): Model {
  return {
    id,
    description: `The model ${id}`,
    created: 1_700_000_000,
    providerName: "scripted",
    dialect: "scripted",
    stage: "stable",
    shutdown: undefined,
    price: undefined,
    labels: {},
    timeouts: { firstContentMs: 60_000, idleMs: 120_000, totalMs: 900_000, settleMs: 0 },
    maxTokensPerSecond: 1_000,
    ...facts,
    provider,
    upstream: {
      name: `${id}-upstream`,
      contextWindow: 128_000,
      maxOutputTokens: 8_000,
      defaultMaxTokens: 4_000,
      inputModalities: new Set([Modality.TEXT, Modality.IMAGE]),
      outputModalities: new Set([Modality.TEXT]),
      ...upstream,
      capabilities: { ...ABLE, ...capabilities },
    },
  };
}

/** A model with all capabilities. */
export const ABLE: Capabilities = {
  sampling: true,
  temperatureWithTopP: true,
  maxTemperature: 2,
  penalties: true,
  seed: true,
  logprobs: true,
  multipleChoices: true,
  reasoning: "level",
  reasoningByDefault: false,
  reasoningCanBeDisabled: true,
  reasoningEfforts: ["low", "medium", "high"],
  reasoningBudget: [0, 0],
  preservedReasoning: false,
  tools: true,
  forcedTools: true,
  jsonSchema: true,
  prefill: true,
  midConversationSystem: true,
  imageUrls: true,
  imageOptions: true,
  embeddingDimensions: true,
  maxTokensField: "max_tokens",
  contentParts: true,
  streamUsage: true,
  cachePoints: false,
  streamAbove: 1_000_000,
};
