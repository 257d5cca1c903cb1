import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";

/** Whether the model can output this modality. */
export function makes({ outputModalities }: Model, modality: Modality): boolean {
  return outputModalities.includes(modality);
}

function reads({ inputModalities }: Model, modality: Modality): boolean {
  return inputModalities.includes(modality);
}

/** Capabilities of a model, as displayed and filtered. */
export const ABILITIES: readonly (readonly [name: string, has: (model: Model) => boolean])[] = [
  ["Image output", (model) => makes(model, Modality.IMAGE)],
  ["Audio output", (model) => makes(model, Modality.AUDIO)],
  ["Embeddings", (model) => makes(model, Modality.EMBEDDING)],
  ["Vision", (model) => reads(model, Modality.IMAGE)],
  ["Audio", (model) => reads(model, Modality.AUDIO)],
  ["Tool calling", ({ capabilities }) => capabilities?.tools === true],
  ["Structured output", ({ capabilities }) => capabilities?.jsonSchema === true],
  ["Reasoning", ({ capabilities }) => capabilities?.reasoning === true],
];
