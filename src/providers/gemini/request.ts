import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { Translation, UpstreamModel } from "../../core/provider.ts";
import { TranslationLog } from "../wire/translation.ts";
import { toMessages } from "./messages.ts";
import { toResponseFormat } from "./response-format.ts";
import { toGenerationConfig } from "./parameters.ts";
import { toTools } from "./tools.ts";
import type { GenerateContentRequest, SystemInstruction } from "./wire.ts";

/**
 * The request as a `generateContent` body: a pure function. The body is the same for both modes; a whole answer is
 * streamed when its token limit, or the model's default one where the request has none, is above `streamAbove`.
 *
 * Throws `invalid_request` for what the model cannot do at all; everything else it cannot do is listed.
 */
export function toGeminiRequest(
  request: CompletionRequest,
  model: UpstreamModel,
  mode: "whole" | "stream",
): Translation {
  const log = new TranslationLog();
  const { systemInstruction, contents } = toMessages(request.messages, { model, log });
  const { instruction, ...form } = toResponseFormat(request, model, log);
  const body: GenerateContentRequest = {
    systemInstruction: instruct(systemInstruction, instruction),
    contents,
    ...toTools(request, model, log),
    generationConfig: toGenerationConfig(request, { model, form }, log),
    serviceTier: toServiceTier(request, log),
  };
  omitForeign(request, log);
  const limit = Math.min(request.maxTokens ?? model.defaultMaxTokens, model.maxOutputTokens);
  return log.finish(body, {
    streamed: mode === "stream" || limit > model.capabilities.streamAbove,
    maxTokens: body.generationConfig?.maxOutputTokens,
    tier: body.serviceTier,
  });
}

function instruct(system: SystemInstruction | undefined, more: string | undefined): SystemInstruction | undefined {
  return more === undefined ? system : { parts: [...(system?.parts ?? []), { text: more }] };
}

function toServiceTier({ serviceTier }: CompletionRequest, log: TranslationLog): GenerateContentRequest["serviceTier"] {
  switch (serviceTier) {
    case "flex":
    case "priority":
      return serviceTier;
    case "default":
      return "standard";
    case undefined:
    case "auto":
      return undefined;
    default:
      log.omit("service_tier");
      return undefined;
  }
}

/** Lists what the provider has no counterpart for. */
function omitForeign(request: CompletionRequest, log: TranslationLog): void {
  log.omitWhen(Object.keys(request.logitBias).length > 0, "logit_bias");
  log.omitWhen(request.audioOptions !== undefined, "audio");
  log.omitWhen(request.user !== undefined, "user");
  log.omitWhen(request.safetyIdentifier !== undefined, "safety_identifier");
  log.omitWhen(Object.keys(request.metadata).length > 0, "metadata");
  log.omitWhen(request.store === true, "store");
  log.omitWhen(request.verbosity !== undefined && request.verbosity !== "medium", "verbosity");
  log.omitWhen(request.prediction !== undefined, "prediction");
  log.omitWhen(request.promptCacheKey !== undefined, "prompt_cache_key");
  for (const name of Object.keys(request.openaiOptionsJson)) log.omit(name);
  omitOfMessages(request, log);
  request.tools.forEach(({ cacheMark }, index) =>
    log.omitWhen(cacheMark !== undefined, `tools[${index}].cache_control`),
  );
}

/** Names of speakers and documents, cache marks (prefixes are cached unasked), how closely to look at a picture. */
function omitOfMessages({ messages }: CompletionRequest, log: TranslationLog): void {
  messages.forEach(({ name, content, cacheMark }, index) => {
    const field = `messages[${index}]`;
    if (name) log.omit(`${field}.name`);
    if (cacheMark !== undefined) log.omit(`${field}.cache_control`);
    content.forEach(({ content: part, cacheMark: partMark }, position) => {
      const asked = part.case === "image" && part.value.detail !== "" && part.value.detail !== "auto";
      if (asked) log.omit(`${field}.content[${position}].image_url.detail`);
      if (part.case === "file" && part.value.name !== "") log.omit(`${field}.content[${position}].file.filename`);
      if (partMark !== undefined) log.omit(`${field}.content[${position}].cache_control`);
    });
  });
}
