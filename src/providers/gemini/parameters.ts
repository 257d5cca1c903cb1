import { type CompletionRequest, Modality } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { UpstreamModel } from "../../core/provider.ts";
import type { TranslationLog } from "../wire/translation.ts";
import { toReasoning } from "./reasoning.ts";
import type { GenerationConfig } from "./wire.ts";

type Form = Pick<GenerationConfig, "responseMimeType" | "responseJsonSchema">;

/** How the answer is to be made; undefined when the request leaves everything to the provider. */
export function toGenerationConfig(
  request: CompletionRequest,
  { model, form }: { readonly model: UpstreamModel; readonly form: Form },
  log: TranslationLog,
): GenerationConfig | undefined {
  const config: GenerationConfig = {
    candidateCount: toCandidateCount(request, model),
    ...toSampling(request, model, log),
    maxOutputTokens: toMaxOutputTokens(request, model, log),
    stopSequences: request.stop.length > 0 ? request.stop : undefined,
    ...toLogprobs(request, model, log),
    responseMimeType: form.responseMimeType,
    responseJsonSchema: form.responseJsonSchema,
    responseModalities: toModalities(request, model),
    imageConfig: toImageConfig(request, model, log),
    thinkingConfig: toReasoning(request, model, log),
  };
  return Object.values(config).some((value) => value !== undefined) ? config : undefined;
}

function toMaxOutputTokens(
  { maxTokens }: CompletionRequest,
  model: UpstreamModel,
  log: TranslationLog,
): number | undefined {
  return maxTokens === undefined ? undefined : log.clamp("max_tokens", maxTokens, [1, model.maxOutputTokens]);
}

function toCandidateCount({ n }: CompletionRequest, { capabilities }: UpstreamModel): number | undefined {
  if (n === undefined || n === 1) return undefined;
  if (!capabilities.multipleChoices) throw invalidField("n", "must be 1 for this model");
  return n;
}

type Sampling = Pick<GenerationConfig, "temperature" | "topP" | "seed" | "presencePenalty" | "frequencyPenalty">;

function toSampling(request: CompletionRequest, { capabilities }: UpstreamModel, log: TranslationLog): Sampling {
  const { sampling, temperatureWithTopP, maxTemperature, penalties } = capabilities;
  const { temperature, topP, seed, presencePenalty, frequencyPenalty } = request;
  const takesTopP = sampling && (temperatureWithTopP || temperature === undefined);
  // A value that changes nothing is not missed where it cannot be sent.
  log.omitWhen(!sampling && temperature !== undefined && temperature !== 1, "temperature");
  log.omitWhen(!takesTopP && topP !== undefined && topP !== 1, "top_p");
  log.omitWhen(!capabilities.seed && seed !== undefined, "seed");
  log.omitWhen(!penalties && Boolean(presencePenalty), "presence_penalty");
  log.omitWhen(!penalties && Boolean(frequencyPenalty), "frequency_penalty");
  return {
    temperature:
      sampling && temperature !== undefined ? log.clamp("temperature", temperature, [0, maxTemperature]) : undefined,
    topP: takesTopP ? topP : undefined,
    // 32 bits are all that the provider takes; the lower ones are as good a seed as any.
    seed: capabilities.seed && seed !== undefined ? Number(BigInt.asIntN(32, seed)) : undefined,
    presencePenalty: penalties ? presencePenalty : undefined,
    frequencyPenalty: penalties ? frequencyPenalty : undefined,
  };
}

function toLogprobs(
  { logprobs, topLogprobs }: CompletionRequest,
  { capabilities }: UpstreamModel,
  log: TranslationLog,
): Pick<GenerationConfig, "responseLogprobs" | "logprobs"> {
  const asked = logprobs === true;
  const taken = asked && capabilities.logprobs;
  log.omitWhen(asked && !taken, "logprobs");
  log.omitWhen(asked && !taken && Boolean(topLogprobs), "top_logprobs");
  return { responseLogprobs: taken ? true : undefined, logprobs: taken ? topLogprobs : undefined };
}

/** An image model is held to text unless pictures were asked for; left alone it would make some. */
function toModalities(
  { modalities }: CompletionRequest,
  { outputModalities }: UpstreamModel,
): readonly string[] | undefined {
  if (modalities.includes(Modality.AUDIO)) throw invalidField("modalities", "this model does not answer with speech");
  const makesImages = outputModalities.has(Modality.IMAGE);
  if (!modalities.includes(Modality.IMAGE)) return makesImages ? ["TEXT"] : undefined;
  if (!makesImages) throw invalidField("modalities", "this model does not make images");
  // Asked for pictures only, the provider answers with nothing at all when words would be the better answer.
  return ["TEXT", "IMAGE"];
}

function toImageConfig(
  request: CompletionRequest,
  model: UpstreamModel,
  log: TranslationLog,
): GenerationConfig["imageConfig"] {
  const { aspectRatio = "", size = "" } = request.imageOptions ?? {};
  const taken = model.capabilities.imageOptions && request.modalities.includes(Modality.IMAGE);
  log.omitWhen(!taken && aspectRatio !== "", "image_config.aspect_ratio");
  log.omitWhen(!taken && size !== "", "image_config.image_size");
  if (!taken || (aspectRatio === "" && size === "")) return undefined;
  return { ...(aspectRatio !== "" && { aspectRatio }), ...(size !== "" && { imageSize: size }) };
}
