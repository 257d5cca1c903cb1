import { createHash } from "node:crypto";
import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import { isBlank } from "./parts.ts";
import type { TranslationContext } from "./context.ts";
import type { MessagesBody } from "./wire.ts";

/** Smallest `top_p` that the provider takes together with reasoning. */
const MIN_REASONING_TOP_P = 0.95;

/** Sampling parameters. Logs the ones that the model does not take, unless they have the default value. */
export function toSampling(
  { request: { temperature, topP }, model: { capabilities }, log }: TranslationContext,
  { reasoning }: { readonly reasoning: boolean },
): Pick<MessagesBody, "temperature" | "top_p"> {
  const takesTemperature = capabilities.sampling && !reasoning;
  const sentTemperature = takesTemperature ? temperature : undefined;
  const takesTopP =
    capabilities.sampling &&
    (capabilities.temperatureWithTopP || sentTemperature === undefined) &&
    (!reasoning || (topP ?? 1) >= MIN_REASONING_TOP_P);
  log.omitWhen(!takesTemperature && (temperature ?? 1) !== 1, "temperature");
  log.omitWhen(!takesTopP && (topP ?? 1) !== 1, "top_p");
  const range = [0, capabilities.maxTemperature] as const;
  return {
    temperature: sentTemperature === undefined ? undefined : log.clamp("temperature", sentTemperature, range),
    top_p: takesTopP ? topP : undefined,
  };
}

/** Stop sequences. Blank ones are omitted because the provider refuses them. */
export function toStopSequences({ request: { stop }, log }: TranslationContext): string[] | undefined {
  if (stop.length === 0) return undefined;
  stop.forEach((text, index) => log.omitWhen(isBlank(text), `stop[${index}]`));
  const kept = stop.filter((text) => !isBlank(text));
  return kept.length > 0 ? kept : undefined;
}

/** The caller's end user. An e-mail address is sent as its hash, because the provider asks for no personal data. */
export function toMetadata({ request: { user, safetyIdentifier }, log }: TranslationContext): MessagesBody["metadata"] {
  const id = user ?? safetyIdentifier;
  log.omitWhen(safetyIdentifier !== undefined && safetyIdentifier !== id, "safety_identifier");
  if (id === undefined || id === "") return undefined;
  return { user_id: id.includes("@") ? createHash("sha256").update(id).digest("hex") : id };
}

/** The service tier. */
export function toServiceTier({ request: { serviceTier }, log }: TranslationContext): MessagesBody["service_tier"] {
  if (serviceTier === "auto") return "auto";
  if (serviceTier === "default") return "standard_only";
  log.omitWhen(serviceTier !== undefined, "service_tier");
  return undefined;
}

/** Throws `invalid_request` for several choices and for image or audio output, which the provider does not support. */
export function refuseImpossible({ request: { n, modalities } }: TranslationContext): void {
  if (n !== undefined && n > 1) throw invalidField("n", "must be 1 for this model");
  if (modalities.includes(Modality.IMAGE) || modalities.includes(Modality.AUDIO)) {
    throw invalidField("modalities", "this model answers with text only");
  }
}

/** Logs the parameters that the provider does not support, unless they have no effect. */
export function noteUnsupported({ request, log }: TranslationContext): void {
  log.omitWhen(request.seed !== undefined, "seed");
  log.omitWhen((request.frequencyPenalty ?? 0) !== 0, "frequency_penalty");
  log.omitWhen((request.presencePenalty ?? 0) !== 0, "presence_penalty");
  log.omitWhen(Object.keys(request.logitBias).length > 0, "logit_bias");
  log.omitWhen(request.logprobs === true, "logprobs");
  log.omitWhen((request.topLogprobs ?? 0) > 0, "top_logprobs");
  log.omitWhen(Boolean(request.imageOptions?.aspectRatio), "image_config.aspect_ratio");
  log.omitWhen(Boolean(request.imageOptions?.size), "image_config.image_size");
  log.omitWhen(request.audioOptions !== undefined, "audio");
  log.omitWhen(Object.keys(request.metadata).length > 0, "metadata");
  log.omitWhen(request.store === true, "store");
  log.omitWhen((request.verbosity ?? "medium") !== "medium", "verbosity");
  log.omitWhen(request.prediction !== undefined, "prediction");
  log.omitWhen(request.promptCacheKey !== undefined, "prompt_cache_key");
  for (const name of Object.keys(request.openaiOptionsJson).toSorted()) log.omit(name);
}
