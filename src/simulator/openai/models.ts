import { findModel, MODELS, type Model } from "../models.ts";
import { Refusal } from "../refusal.ts";

function encodeModel(model: Model): unknown {
  const created = Math.floor(Date.parse(model.createdAt) / 1000);
  return { id: model.id, object: "model", created, owned_by: "simulator" };
}

/** Every model: an OpenAI-compatible server may host anything. */
export function encodeModelList(): unknown {
  return { object: "list", data: MODELS.map(encodeModel) };
}

/** One model. Throws `Refusal` (404) when it is not listed. */
export function encodeOneModel(id: string): unknown {
  const model = findModel(id);
  if (model) return encodeModel(model);
  throw new Refusal(404, `The model '${id}' does not exist or you do not have access to it.`, {
    field: "model",
    code: "model_not_found",
  });
}
