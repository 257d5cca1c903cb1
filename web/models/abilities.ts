import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../gen/parley/v1/completion_pb.js";

/** Whether the answers of a model may hold this. */
export function makes({ outputModalities }: Model, modality: Modality): boolean {
  return outputModalities.includes(modality);
}

function reads({ inputModalities }: Model, modality: Modality): boolean {
  return inputModalities.includes(modality);
}

/** What people look for in a model, as it is shown. */
export const ABILITIES: readonly (readonly [name: string, has: (model: Model) => boolean])[] = [
  ["Makes images", (model) => makes(model, Modality.IMAGE)],
  ["Makes speech", (model) => makes(model, Modality.AUDIO)],
  ["Reads images", (model) => reads(model, Modality.IMAGE)],
  ["Hears audio", (model) => reads(model, Modality.AUDIO)],
  ["Calls tools", ({ capabilities }) => capabilities?.tools === true],
  ["Structured output", ({ capabilities }) => capabilities?.jsonSchema === true],
  ["Reasons", ({ capabilities }) => capabilities?.reasoning === true],
];
