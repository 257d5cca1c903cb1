import { create } from "@bufbuild/protobuf";
import { type Model, modelNotFound } from "./model.ts";
import { mayUse, type Principal } from "./principal.ts";
import type { Router } from "./router.ts";
import { type Model as ModelMessage, ModelSchema } from "../../gen/parley/v1/model_pb.js";

/** The model service, as both entrances call it. */
export interface Models {
  /** The models that the key may use. */
  list(principal: Principal): ModelMessage[];
  /** One of them. Throws `model_not_found`. */
  get(id: string, principal: Principal): ModelMessage;
}

/** Answers from the router's registry. */
export function createModels(router: Router): Models {
  return {
    list: (principal) =>
      router
        .list()
        .filter((model) => mayUse(principal, model.id))
        .map(toMessage),
    get(id, principal) {
      const model = router.find(id);
      if (model !== undefined && mayUse(principal, model.id)) return toMessage(model);
      throw modelNotFound(id, "model");
    },
  };
}

function toMessage({ id, description, created, providerName, preview, upstream }: Model): ModelMessage {
  return create(ModelSchema, {
    id,
    description,
    created: BigInt(created),
    ownedBy: providerName,
    preview,
    contextWindow: upstream.contextWindow,
    maxOutputTokens: upstream.maxOutputTokens,
    inputModalities: [...upstream.inputModalities],
    outputModalities: [...upstream.outputModalities],
  });
}
