import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { Caller, CallerShare } from "./call.ts";
import type { Fees } from "./fees.ts";
import type { Limiter } from "./limiter.ts";
import { pageOfModels } from "./model-page.ts";
import { type ListedModel, modelNotFound, type Price, type TokenPrices } from "./model.ts";
import { mayUse } from "./principal.ts";
import type { Capabilities } from "./provider.ts";
import type { Router } from "./router.ts";
import {
  type ListModelsRequest,
  type ListModelsResponse,
  ListModelsResponseSchema,
  type Model as ModelMessage,
  ModelCapabilitiesSchema,
  type ModelPrice,
  ModelPriceSchema,
  ModelSchema,
  ModelStage,
  type PriceTier,
  PriceTierSchema,
} from "../../gen/parley/v1/model_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";

/** The model service. Each call counts as a request. */
export interface Models {
  /**
   * The models that the key may use. The list and its messages are shared with other calls and must not be changed. Throws
   * `rate_limited`.
   */
  list(caller: Caller): Promise<readonly ModelMessage[]>;
  /** A page of these models, whose messages are shared as well. Throws `invalid_request`, `rate_limited`. */
  page(request: ListModelsRequest, caller: Caller): Promise<ListModelsResponse>;
  /** One of these models. Throws `model_not_found`, `rate_limited`. */
  get(id: string, caller: Caller): Promise<ModelMessage>;
}

/** Counts a call that needs no completion as a request. Throws `rate_limited`. */
export async function countRequest(limiter: Limiter, { principal, completionId, admitted }: Caller): Promise<void> {
  const reservation = await limiter.reserve({ principal, completionId, tokens: 0, costMicroUsd: 0, lastsMs: 0 });
  reservation.release(0);
  admitted(reservation.facts);
}

/** Number of lists that `KeptLists` holds. */
const MAX_LISTS = 16;

/** Lists of the configured models by the set of models that a key may use (undefined: all). A reload empties it. */
class KeptLists {
  #all: readonly ListedModel[] | undefined;
  readonly #lists = new Map<ReadonlySet<string> | undefined, readonly ModelMessage[]>();

  /** Undefined when it is not kept. */
  find(all: readonly ListedModel[], visible: ReadonlySet<string> | undefined): readonly ModelMessage[] | undefined {
    return all === this.#all ? this.#lists.get(visible) : undefined;
  }

  keep(all: readonly ListedModel[], visible: ReadonlySet<string> | undefined, list: readonly ModelMessage[]): void {
    if (all !== this.#all || this.#lists.size >= MAX_LISTS) this.#lists.clear();
    this.#all = all;
    this.#lists.set(visible, list);
  }
}

/** Answers from the router's registry. Lists are kept until the models are replaced; the work for a new one is charged to the caller. */
export function createModels(router: Router, limiter: Limiter): Models {
  const messages = new WeakMap<ListedModel, ModelMessage>();
  const messageOf = (model: ListedModel): ModelMessage => {
    let message = messages.get(model);
    if (message === undefined) messages.set(model, (message = toMessage(model)));
    return message;
  };
  const lists = new KeptLists();
  const visibleTo = ({ principal }: Caller, all = router.list()): readonly ListedModel[] =>
    all.filter((model) => mayUse(principal, model.id));
  return {
    async list(caller) {
      await countRequest(limiter, caller);
      const { models } = caller.principal;
      const all = router.list();
      const kept = lists.find(all, models);
      if (kept !== undefined) return kept;
      const list = await inTurn(caller.share, () => visibleTo(caller, all).map(messageOf));
      lists.keep(all, models, list);
      return list;
    },
    async page(request, caller) {
      await countRequest(limiter, caller);
      return inTurn(caller.share, () => {
        const { models, nextPageToken } = pageOfModels(visibleTo(caller), request);
        return create(ListModelsResponseSchema, { models: models.map(messageOf), nextPageToken });
      });
    },
    async get(id, caller) {
      await countRequest(limiter, caller);
      const model = router.find(id, caller.principal);
      if (model === undefined || !mayUse(caller.principal, model.id)) {
        throw modelNotFound(id, { field: "model", visible: visibleTo(caller) });
      }
      return messageOf(model);
    },
  };
}

async function inTurn<T>(share: CallerShare | undefined, work: () => T): Promise<T> {
  return share === undefined ? work() : share.workInTurn(work);
}

/** Stages in the contract. */
export const MODEL_STAGES = {
  preview: ModelStage.PREVIEW,
  stable: ModelStage.STABLE,
  deprecated: ModelStage.DEPRECATED,
} as const satisfies Record<ListedModel["stage"], ModelStage>;

function toMessage(model: ListedModel): ModelMessage {
  const { id, description, created, providerName, dialect, stage, shutdown, price, labels, upstream } = model;
  return create(ModelSchema, {
    id,
    description,
    createTime: timestampFromMs(created * 1000),
    provider: providerName,
    dialect,
    stage: MODEL_STAGES[stage],
    ...(shutdown !== undefined && { shutdownTime: timestampFromMs(shutdown * 1000) }),
    contextWindow: upstream.contextWindow,
    ...(upstream.maxOutputTokens > 0 && { maxOutputTokens: upstream.maxOutputTokens }),
    inputModalities: [...upstream.inputModalities],
    outputModalities: [...upstream.outputModalities],
    capabilities: create(ModelCapabilitiesSchema, toCapabilitiesMessage(upstream.capabilities)),
    ...(price !== undefined && toPriceFields(price)),
    ...labels,
  });
}

/** The fields `price` and `price_tiers` of a model in the contract. */
export function toPriceFields(price: Price): { price: ModelPrice; priceTiers: PriceTier[] } {
  return {
    price: create(ModelPriceSchema, { ...toPriceMessage(price), ...toFeesMessage(price.fees) }),
    priceTiers: (price.tiers ?? []).map(({ abovePromptTokens, ...prices }) =>
      create(PriceTierSchema, { abovePromptTokens, price: create(ModelPriceSchema, toPriceMessage(prices)) }),
    ),
  };
}

function toPriceMessage(price: TokenPrices): MessageInitShape<typeof ModelPriceSchema> {
  return {
    inputMicroUsdPerMtok: BigInt(price.input),
    outputMicroUsdPerMtok: BigInt(price.output),
    cachedInputMicroUsdPerMtok: BigInt(price.cachedInput),
    imageOutputMicroUsdPerMtok: BigInt(price.imageOutput),
    cacheWriteMicroUsdPerMtok: BigInt(price.cacheWrite),
    cacheWriteHourMicroUsdPerMtok: BigInt(price.cacheWriteHour),
    audioInputMicroUsdPerMtok: BigInt(price.audioInput),
    audioOutputMicroUsdPerMtok: BigInt(price.audioOutput),
    imageInputMicroUsdPerMtok: BigInt(price.imageInput),
    cachedAudioInputMicroUsdPerMtok: BigInt(price.cachedAudioInput),
    cachedImageInputMicroUsdPerMtok: BigInt(price.cachedImageInput),
  };
}

function toFeesMessage(fees: Fees): MessageInitShape<typeof ModelPriceSchema> {
  const { requests, searchedRequests, webSearches, fileSearches, codeExecutions } = fees;
  return {
    ...toFee("requestMicroUsd", requests),
    ...toFee("searchedRequestMicroUsd", searchedRequests),
    ...toFee("webSearchMicroUsd", webSearches),
    ...toFee("fileSearchMicroUsd", fileSearches),
    ...toFee("codeExecutionMicroUsd", codeExecutions),
  };
}

function toFee(name: `${string}MicroUsd`, millionths = 0): Readonly<Record<string, bigint>> {
  return millionths > 0 ? { [name]: BigInt(Math.round(millionths / 1_000_000)) } : {};
}

/** Capabilities in the contract. Details of an unsupported capability are left out. */
export function toCapabilitiesMessage(capabilities: Capabilities): MessageInitShape<typeof ModelCapabilitiesSchema> {
  const { tools, forcedTools, jsonSchema, reasoning, reasoningByDefault, reasoningCanBeDisabled } = capabilities;
  const { sampling, maxTemperature, temperatureWithTopP, penalties, seed, logprobs, multipleChoices } = capabilities;
  const { prefill, imageUrls, imageOptions, embeddingDimensions } = capabilities;
  const reasons = reasoning !== "none";
  return {
    tools,
    forcedTools,
    jsonSchema,
    reasoning: reasons,
    ...(reasons && { reasoningByDefault, reasoningCanBeDisabled }),
    // For `budget` models the effort selects a share of the budget's range.
    reasoningEfforts: reasons ? capabilities.reasoningEfforts.map(toEffort) : [],
    ...(sampling && { sampling, maxTemperature, temperatureWithTopP }),
    penalties,
    seed,
    logprobs,
    multipleChoices,
    prefill,
    imageUrls,
    imageOptions,
    embeddingDimensions,
  };
}

/** Converts a configured effort, which is a name of the enum in lower case. */
function toEffort(word: string): ReasoningEffort {
  return ReasoningEffort[word.toUpperCase() as keyof typeof ReasoningEffort] ?? ReasoningEffort.UNSPECIFIED;
}
