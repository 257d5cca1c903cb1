import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { Caller } from "./call.ts";
import type { Limiter } from "./limiter.ts";
import { type Model, modelNotFound, type Price } from "./model.ts";
import { mayUse } from "./principal.ts";
import type { Capabilities } from "./provider.ts";
import type { Router } from "./router.ts";
import {
  type Model as ModelMessage,
  type ModelCapabilitiesSchema,
  type ModelPriceSchema,
  ModelSchema,
} from "../../gen/parley/v1/model_pb.js";

/** The model service. Each call counts as a request. */
export interface Models {
  /** The models that the key may use. Throws `rate_limited`. */
  list(caller: Caller): Promise<ModelMessage[]>;
  /** One of them. Throws `model_not_found`, `rate_limited`. */
  get(id: string, caller: Caller): Promise<ModelMessage>;
}

/** Answers from the router's registry. */
export function createModels(router: Router, limiter: Limiter): Models {
  const count = async ({ principal, completionId, admitted }: Caller): Promise<void> => {
    const reservation = await limiter.reserve({ principal, completionId, tokens: 0, costMicroUsd: 0, lastsMs: 0 });
    reservation.release(0);
    admitted(reservation.facts);
  };
  const visibleTo = ({ principal }: Caller): Model[] => router.list().filter((model) => mayUse(principal, model.id));
  return {
    async list(caller) {
      await count(caller);
      return visibleTo(caller).map(toMessage);
    },
    async get(id, caller) {
      await count(caller);
      const model = router.find(id);
      if (model === undefined || !mayUse(caller.principal, model.id)) {
        throw modelNotFound(id, { field: "model", visible: visibleTo(caller) });
      }
      return toMessage(model);
    },
  };
}

function toMessage({ id, description, created, providerName, preview, price, upstream }: Model): ModelMessage {
  return create(ModelSchema, {
    id,
    description,
    createTime: { seconds: BigInt(created) },
    provider: providerName,
    preview,
    contextWindow: upstream.contextWindow,
    maxOutputTokens: upstream.maxOutputTokens,
    inputModalities: [...upstream.inputModalities],
    outputModalities: [...upstream.outputModalities],
    capabilities: toCapabilitiesMessage(upstream.capabilities),
    ...(price !== undefined && { price: toPriceMessage(price) }),
  });
}

/** Prices in the contract. */
export function toPriceMessage(price: Price): MessageInitShape<typeof ModelPriceSchema> {
  return {
    inputMicroUsd: BigInt(price.input),
    outputMicroUsd: BigInt(price.output),
    cachedInputMicroUsd: BigInt(price.cachedInput),
    imageMicroUsd: BigInt(price.image),
    cacheWriteMicroUsd: BigInt(price.cacheWrite),
    cacheWriteHourMicroUsd: BigInt(price.cacheWriteHour),
    audioInputMicroUsd: BigInt(price.audioInput),
    audioOutputMicroUsd: BigInt(price.audioOutput),
  };
}

/** Capabilities in the contract: details of what a model cannot do at all are left out. */
export function toCapabilitiesMessage(capabilities: Capabilities): MessageInitShape<typeof ModelCapabilitiesSchema> {
  const { tools, forcedTools, jsonSchema, reasoning, reasoningByDefault, reasoningCanBeDisabled } = capabilities;
  const { sampling, maxTemperature, temperatureWithTopP, penalties, seed, logprobs, multipleChoices } = capabilities;
  const { prefill, imageUrls, imageOptions } = capabilities;
  const reasons = reasoning !== "none";
  return {
    tools,
    forcedTools,
    jsonSchema,
    reasoning: reasons,
    ...(reasons && { reasoningByDefault, reasoningCanBeDisabled }),
    // A budget is chosen by the effort too, by its share of the range.
    reasoningEfforts: reasons ? [...capabilities.reasoningEfforts] : [],
    ...(sampling && { sampling, maxTemperature, temperatureWithTopP }),
    penalties,
    seed,
    logprobs,
    multipleChoices,
    prefill,
    imageUrls,
    imageOptions,
  };
}
