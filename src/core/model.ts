import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { Failure } from "./failure.ts";
import type { Fees, MaxToolUses } from "./fees.ts";
import type { Labels } from "./labels.ts";
import type { SealedCredential } from "./principal.ts";
import type { ProviderOption } from "./provider-options.ts";
import type { Provider, UpstreamModel } from "./provider.ts";
import { nearest } from "../encoding/nearest.ts";

/** Time limits of one completion. */
export interface Timeouts {
  /** Until the first content of a stream. A whole answer may take this plus `idleMs`. */
  readonly firstContentMs: number;
  /** Longest pause within an answer. */
  readonly idleMs: number;
  /** All attempts together, to the end of the answer. */
  readonly totalMs: number;
  /** How long the provider's token count is still read after the caller left or the deadline passed. 0: the connection is closed. */
  readonly settleMs: number;
}

/** Prices in millionths of a micro-USD per token, which is US dollars per million tokens × 1,000,000. */
export interface TokenPrices {
  readonly input: number;
  readonly output: number;
  readonly cachedInput: number;
  /** Input written to the provider's cache, for minutes and for an hour. */
  readonly cacheWrite: number;
  readonly cacheWriteHour: number;
  readonly audioInput: number;
  readonly imageInput: number;
  /** Speech and pictures that were read from the provider's cache. */
  readonly cachedAudioInput: number;
  readonly cachedImageInput: number;
  readonly imageOutput: number;
  readonly audioOutput: number;
}

/** Prices of a completion whose prompt has more than `abovePromptTokens`. */
interface PriceTier extends TokenPrices {
  readonly abovePromptTokens: number;
}

/** The price of a model. */
export interface Price extends TokenPrices {
  /** Prices for longer prompts, the shortest first. Default: none. */
  readonly tiers?: readonly PriceTier[];
  readonly fees: Fees;
}

/** When a second attempt of a request starts while the first one has no content. */
export interface Hedge {
  /** Milliseconds without content, or that percentile of the model's own times, 50 to 99. */
  readonly after: { readonly ms: number } | { readonly percentile: number };
  /** Largest share of the requests that are sent twice, above 0. */
  readonly budget: number;
}

/** The public facts of a model, or of a route (`route.ts`), for lists of models. Immutable. */
export interface ListedModel {
  readonly id: string;
  readonly description: string;
  /** Unix seconds. */
  readonly created: number;
  /** The configured provider's name. Empty for a route with several. */
  readonly providerName: string;
  /** The dialect of its provider. Empty for a route with several. */
  readonly dialect: string;
  readonly stage: "preview" | "stable" | "deprecated";
  /** Unix seconds; undefined when it is not known. */
  readonly shutdown: number | undefined;
  readonly price: Price | undefined;
  /** The labels of a route are those that all its targets share. */
  readonly labels: Labels;
  readonly upstream: ListedFacts;
}

/** The public facts of an upstream model. */
export type ListedFacts = Omit<UpstreamModel, "name" | "defaultMaxTokens">;

/** A configured model: its public facts and its upstream. Immutable. */
export interface Model extends ListedModel {
  readonly timeouts: Timeouts;
  /** Hedging of requests that name this model itself. Default: none. */
  readonly hedge?: Hedge | undefined;
  /** IDs of models that make the same vectors, in the order in which they serve when this one fails. Default: none. */
  readonly interchangeable?: readonly string[] | undefined;
  /** Whether the context window is only assumed; then it is no upper bound of a prompt. Default: no. */
  readonly isWindowAssumed?: boolean | undefined;
  /** Highest generation rate of one choice, in tokens per second: bounds the cost of an answer without a count. */
  readonly maxTokensPerSecond: number;
  /** Whether the provider generates on after the connection of a stream is closed, and bills that. Default: it stops. */
  readonly billsClosedStreams?: boolean | undefined;
  /** Whether the provider reads documents with a tool of its own, for a fee. Default: they cost only tokens. */
  readonly billsDocuments?: boolean | undefined;
  /** Whether the provider says what an answer costs (`CostedUsage`). Default: only the counts are known. */
  readonly statesCost?: boolean | undefined;
  /** Uses that budgets reserve for tools whose uses the request does not bound. Default: such a request is refused under a budget. */
  readonly maxToolUses?: MaxToolUses | undefined;
  /** The options that may be sent to its provider. Undefined: all. */
  readonly options?: ReadonlySet<ProviderOption> | undefined;
  readonly upstream: UpstreamModel;
  readonly provider: Provider;
  /** Its provider with an account's own credential in place of the configured ones. Default: accounts have none. */
  readonly providerOf?: ((accountId: string, credential: SealedCredential) => Provider) | undefined;
  /** ID of the account's own credential that `provider` uses. Default: it uses the configured ones. */
  readonly ownCredential?: string | undefined;
}

/** Characters of an unknown model name that a failure repeats and compares. */
const MAX_NAME = 256;

/** Key of health and breaker state: one upstream model of one provider and credential, whatever model IDs map to it. */
export function upstreamKey(model: Model): string {
  const { providerName, upstream, ownCredential } = model;
  return ownCredential === undefined
    ? `${providerName}/${upstream.name}`
    : `${providerName}/${upstream.name} ${ownCredential}`;
}

/**
 * The owner of the provider's state in a model's answers: the operator's contract with the provider, or the account's own. Another
 * credential of the same account has the same owner.
 */
export function stateOwner({ providerName, ownCredential }: Model): string {
  return ownCredential === undefined ? providerName : `${providerName} by the account's own credential`;
}

/** Whether a model may make pictures, even when the request does not ask for them. */
export function mayDraw({ outputModalities, pricesPictures }: UpstreamModel): boolean {
  return outputModalities.has(Modality.IMAGE) || pricesPictures === true;
}

/** Whether the model can answer a test completion of one token. Image models would charge a picture; embedding models answer none. */
export function canAnswerOneToken(model: Model): boolean {
  return !makes(model, Modality.EMBEDDING) && !makes(model, Modality.IMAGE);
}

/** Whether the model's answers may hold `modality`. */
export function makes(
  model: { readonly upstream: Pick<UpstreamModel, "outputModalities"> },
  modality: Modality,
): boolean {
  return model.upstream.outputModalities.has(modality);
}

/** Models that a refusal names: there may be thousands, and it is sent, logged and stored. */
const MAX_ADVISED = 5;

/** Names some of the models that could serve a refused request, as the end of a sentence; empty without any. */
export function adviseModels(ids: readonly string[]): string {
  if (ids.length === 0) return "";
  const others = ids.length - MAX_ADVISED;
  return ` (these do: ${ids.slice(0, MAX_ADVISED).join(", ")}${others > 0 ? ` and ${others} more` : ""})`;
}

/** The failure of a request whose `field` names a model that does not exist. `visible`: the models that the key may use. */
export function modelNotFound(
  id: string,
  { field, visible }: { readonly field: string; readonly visible: readonly ListedModel[] },
): Failure {
  const name = id.slice(0, MAX_NAME);
  const ids = visible.map((model) => model.id);
  const near = nearest(name, ids) ?? nearest(name.slice(name.lastIndexOf("/") + 1), ids);
  const advice = `${near === undefined ? "" : `Did you mean '${near}'? `}GET /v1/models (gRPC: ModelService.List) lists yours.`;
  const message = `The model '${name}' does not exist or you do not have access to it. ${advice}`;
  return new Failure("model_not_found", message, { violations: [{ field, description: "no such model" }] });
}
