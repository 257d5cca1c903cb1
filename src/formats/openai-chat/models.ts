import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { type Model, ModelStage } from "../../../gen/parley/v1/model_pb.js";

/** A model in OpenAI's format, with additional facts. */
export function toModelObject(model: Model): object {
  const names = (modalities: readonly Modality[]): string[] =>
    modalities.map((modality) => Modality[modality].toLowerCase());
  return {
    id: model.id,
    object: "model",
    created: Number(model.createTime?.seconds ?? 0),
    owned_by: model.provider,
    description: model.description,
    context_window: model.contextWindow,
    max_output_tokens: model.maxOutputTokens,
    modalities: { input: names(model.inputModalities), output: names(model.outputModalities) },
    preview: model.stage === ModelStage.PREVIEW,
  };
}

/** The list of models in OpenAI's format. */
export function toModelList(models: readonly Model[]): object {
  return { object: "list", data: models.map(toModelObject) };
}
