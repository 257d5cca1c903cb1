import { listModels, type Model } from "../models.ts";
import { Refusal } from "../refusal.ts";

function encodeModel(model: Model): unknown {
  return {
    name: `models/${model.id}`,
    version: "simulated",
    displayName: model.displayName,
    description: "A simulated model: it answers at once and always the same.",
    inputTokenLimit: model.contextTokens,
    outputTokenLimit: model.maxOutputTokens,
    supportedGenerationMethods: ["generateContent"],
    temperature: 1,
    maxTemperature: 2,
    thinking: true,
  };
}

/** One page with every model of this dialect. */
export function encodeModelPage(): unknown {
  return { models: listModels("gemini").map(encodeModel) };
}

/** One model. Throws `Refusal` (404) when it is not listed. */
export function encodeOneModel(id: string): unknown {
  const model = listModels("gemini").find((candidate) => candidate.id === id);
  if (!model) throw new Refusal(404, `Model is not found: models/${id} for api version v1beta`);
  return encodeModel(model);
}
