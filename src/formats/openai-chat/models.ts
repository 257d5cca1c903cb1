import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import type { Model } from "../../../gen/parley/v1/model_pb.js";

/** A model in OpenAI's shape, with what its users need to know beside it. */
export function toModelObject(model: Model): object {
  const names = (modalities: readonly Modality[]): string[] =>
    modalities.map((modality) => Modality[modality].toLowerCase());
  return {
    id: model.id,
    object: "model",
    created: Number(model.created),
    owned_by: model.ownedBy,
    description: model.description,
    context_window: model.contextWindow,
    max_output_tokens: model.maxOutputTokens,
    modalities: { input: names(model.inputModalities), output: names(model.outputModalities) },
    preview: model.preview,
  };
}

/** The list of models in OpenAI's shape. */
export function toModelList(models: readonly Model[]): object {
  return { object: "list", data: models.map(toModelObject) };
}
