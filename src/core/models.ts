import { create } from "@bufbuild/protobuf";
import type { Caller } from "./call.ts";
import type { Limiter } from "./limiter.ts";
import { type Model, modelNotFound } from "./model.ts";
import { mayUse } from "./principal.ts";
import type { Router } from "./router.ts";
import { type Model as ModelMessage, ModelSchema } from "../../gen/parley/v1/model_pb.js";

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
