import { listModels, type Model } from "../models.ts";
import { Refusal } from "../refusal.ts";

const YES = { supported: true };
const NO = { supported: false };

function encodeModel(model: Model): Record<string, unknown> & { id: string } {
  return {
    id: model.id,
    type: "model",
    display_name: model.displayName,
    created_at: model.createdAt,
    lifecycle: "active",
    deprecated_at: null,
    retires_at: null,
    max_input_tokens: model.contextTokens,
    max_tokens: model.maxOutputTokens,
    capabilities: {
      thinking: { supported: true, types: { adaptive: NO, between_tools: NO, disabled: YES, enabled: YES } },
      structured_outputs: YES,
      image_input: YES,
      pdf_input: NO,
      citations: NO,
    },
  };
}

/** One page with every model of this dialect. */
export function encodeModelPage(): unknown {
  const data = listModels("anthropic").map(encodeModel);
  return { data, has_more: false, first_id: data[0]?.id ?? null, last_id: data.at(-1)?.id ?? null };
}

/** One model. Throws `Refusal` (404) when it is not listed. */
export function encodeOneModel(id: string): unknown {
  const model = listModels("anthropic").find((candidate) => candidate.id === id);
  if (!model) throw new Refusal(404, `model: ${id}`);
  return encodeModel(model);
}
