import type { Modality } from "../../gen/parley/v1/completion_pb.js";
import { Failure } from "./failure.ts";
import type { ProviderOption } from "./provider-options.ts";
import type { Provider, UpstreamModel } from "./provider.ts";
import { nearest } from "../encoding/nearest.ts";

/** Time limits of one completion. */
export interface Timeouts {
  /** Until a streamed answer's first content. A whole answer may take this and `idleMs` together. */
  readonly firstContentMs: number;
  /** The longest silence in the middle of an answer. */
  readonly idleMs: number;
  /** All attempts together, to the end of the answer. */
  readonly totalMs: number;
  /** How long the provider is still read for its count of tokens after the caller left or its time was up; 0: not at all. */
  readonly settleMs: number;
}

/** Prices in millionths of a micro-USD per token, which is US dollars per million tokens × 1,000,000. */
export interface Price {
  readonly input: number;
  readonly output: number;
  readonly cachedInput: number;
  /** Input that is written to the provider's cache, for minutes and for an hour. */
  readonly cacheWrite: number;
  readonly cacheWriteHour: number;
  readonly audioInput: number;
  readonly image: number;
  readonly audioOutput: number;
}

/** A model that can be asked for: what callers know of it, and where it is served. Immutable. */
export interface Model {
  readonly id: string;
  readonly description: string;
  /** Unix seconds. */
  readonly created: number;
  /** The configured provider's name. */
  readonly providerName: string;
  readonly preview: boolean;
  readonly price: Price | undefined;
  readonly timeouts: Timeouts;
  /** Tokens that one choice of an answer has per second at most: bounds the cost of an answer that was not counted. */
  readonly maxTokensPerSecond: number;
  /** The options that may be sent to its provider; undefined: all. */
  readonly options?: ReadonlySet<ProviderOption> | undefined;
  readonly upstream: UpstreamModel;
  readonly provider: Provider;
}

/** Characters of a model's name that a failure repeats and compares. */
const MAX_NAME = 256;

/** What health is kept by: one upstream model of one provider, whatever IDs lead to it. */
export function upstreamKey(model: Model): string {
  return `${model.providerName}/${model.upstream.name}`;
}

/** Whether the model's answers may hold `modality`. */
export function makes(model: Model, modality: Modality): boolean {
  return model.upstream.outputModalities.has(modality);
}

/**
 * The failure of a request that names, in `field`, a model that does not exist or that its key may not see. `visible` are
 * the models that the key may use.
 */
export function modelNotFound(
  id: string,
  { field, visible }: { readonly field: string; readonly visible: readonly Model[] },
): Failure {
  const name = id.slice(0, MAX_NAME);
  const ids = visible.map((model) => model.id);
  const near = nearest(name, ids) ?? nearest(name.slice(name.lastIndexOf("/") + 1), ids);
  const advice = `${near === undefined ? "" : `Did you mean '${near}'? `}GET /v1/models lists yours.`;
  const message = `The model '${name}' does not exist or you do not have access to it. ${advice}`;
  return new Failure("model_not_found", message, { violations: [{ field, description: "no such model" }] });
}
