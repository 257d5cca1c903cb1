import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { camelKeys } from "../../src/config/config.ts";
import { type Dialect, DIALECT_DEFAULTS } from "../../src/config/dialects.ts";
import type { Provider, UpstreamModel } from "../../src/core/provider.ts";
import { toAnthropicRequest } from "../../src/providers/anthropic/request.ts";
import { toConverseRequest } from "../../src/providers/bedrock-converse/request.ts";
import { toGeminiRequest } from "../../src/providers/gemini/request.ts";
import { toOpenAiRequest } from "../../src/providers/openai/request.ts";
import { toResponsesRequest } from "../../src/providers/openai-responses/request.ts";

/** Each dialect's translation of a request. */
export const TRANSLATIONS: Readonly<Record<Dialect, Provider["translate"]>> = {
  anthropic: toAnthropicRequest,
  "bedrock-converse": toConverseRequest,
  gemini: toGeminiRequest,
  openai: toOpenAiRequest,
  "openai-responses": toResponsesRequest,
};

/** A model with its dialect's defaults. */
export function modelOf(dialect: Dialect): UpstreamModel {
  return {
    name: "any",
    contextWindow: 200_000,
    maxOutputTokens: 64_000,
    defaultMaxTokens: 8192,
    inputModalities: new Set([Modality.TEXT, Modality.IMAGE]),
    outputModalities: new Set([Modality.TEXT]),
    capabilities: camelKeys(DIALECT_DEFAULTS[dialect].capabilities),
  };
}
