import { create } from "@bufbuild/protobuf";
import {
  type CompletionRequest,
  ImageOptionsSchema,
  type ResponseFormat,
  ResponseFormatSchema,
} from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { invalidField } from "../../core/failure.ts";
import { MAX_INT32, MAX_STOPS } from "../../core/validate.ts";
import { toJsonSchema } from "./json-schema.ts";
import type { GenerationConfig } from "./schema.ts";

const CONFIG = "generationConfig";

/** Reads `generationConfig`. Adds the names of values that are not honoured to `unrecognized`. */
export function readGenerationConfig(
  given: GenerationConfig,
  request: CompletionRequest,
  unrecognized: string[],
): void {
  const { maxOutputTokens, temperature, topP, topK, candidateCount, seed } = given;
  if (maxOutputTokens != null) request.maxOutputTokens = toInt32(maxOutputTokens, "maxOutputTokens");
  if (temperature != null) request.temperature = temperature;
  if (topP != null) request.topP = topP;
  if (topK != null) request.topK = toInt32(topK, "topK");
  if (candidateCount != null) request.choiceCount = toInt32(candidateCount, "candidateCount");
  if (seed != null) request.seed = BigInt(seed);
  if (given.presencePenalty != null) request.presencePenalty = given.presencePenalty;
  if (given.frequencyPenalty != null) request.frequencyPenalty = given.frequencyPenalty;
  const stops = given.stopSequences ?? [];
  request.stopSequences = stops.slice(0, MAX_STOPS);
  if (stops.length > MAX_STOPS) unrecognized.push(`${CONFIG}.stopSequences[${MAX_STOPS}]`);
  readLogprobs(given, request);
  const format = toResponseFormat(given);
  if (format !== undefined) request.responseFormat = format;
  if (given.responseModalities != null) request.modalities = toModalities(given.responseModalities);
  if (given.imageConfig != null) {
    const { aspectRatio, imageSize } = given.imageConfig;
    request.imageOptions = create(ImageOptionsSchema, { aspectRatio: aspectRatio ?? "", size: imageSize ?? "" });
  }
  if (given.thinkingConfig != null) readThinking(given.thinkingConfig, request);
}

/** Refuses numbers beyond an int32. Core refuses other numbers out of range, and names the range. */
function toInt32(value: number, name: string): number {
  if (Math.abs(value) > MAX_INT32) throw invalidField(`${CONFIG}.${name}`, "is too large");
  return value;
}

function readLogprobs({ responseLogprobs, logprobs }: GenerationConfig, request: CompletionRequest): void {
  if (responseLogprobs === true) {
    const topCount = toInt32(logprobs ?? 0, "logprobs");
    request.logprobs = { $typeName: "parley.v1.LogprobOptions", topCount };
  } else if (logprobs != null) throw invalidField(`${CONFIG}.logprobs`, "needs responseLogprobs to be true");
}

/** Name of a response schema. The contract requires one, and the format has none. */
const SCHEMA_NAME = "response";

function toResponseFormat(given: GenerationConfig): ResponseFormat | undefined {
  const type = (given.responseMimeType ?? "").toLowerCase();
  if (type !== "" && type !== "text/plain" && type !== "application/json")
    throw invalidField(`${CONFIG}.responseMimeType`, "must be text/plain or application/json");
  const schema = given.responseJsonSchema ?? given.responseSchema;
  if (schema != null) {
    const value = { name: SCHEMA_NAME, schemaJson: JSON.stringify(toJsonSchema(schema)) };
    return create(ResponseFormatSchema, { format: { case: "jsonSchema", value } });
  }
  if (type !== "application/json") return undefined;
  return create(ResponseFormatSchema, { format: { case: "jsonObject", value: {} } });
}

/** Reads the modalities. Adds text, because the contract allows pictures only beside text. */
function toModalities(names: readonly string[]): Modality[] {
  const wanted = new Set(names.map((name) => name.toUpperCase()));
  wanted.delete("MODALITY_UNSPECIFIED");
  for (const name of wanted)
    if (name !== "TEXT" && name !== "IMAGE")
      throw invalidField(`${CONFIG}.responseModalities`, "must be of TEXT and IMAGE");
  if (wanted.size === 0) return [];
  return wanted.has("IMAGE") ? [Modality.TEXT, Modality.IMAGE] : [Modality.TEXT];
}

const LEVELS: Readonly<Record<string, ReasoningEffort>> = {
  NONE: ReasoningEffort.NONE,
  MINIMAL: ReasoningEffort.MINIMAL,
  LOW: ReasoningEffort.LOW,
  MEDIUM: ReasoningEffort.MEDIUM,
  HIGH: ReasoningEffort.HIGH,
  XHIGH: ReasoningEffort.XHIGH,
  MAX: ReasoningEffort.MAX,
};

function readThinking(
  { thinkingLevel, thinkingBudget }: NonNullable<GenerationConfig["thinkingConfig"]>,
  request: CompletionRequest,
): void {
  const level = (thinkingLevel ?? "").toUpperCase();
  if (level !== "" && level !== "THINKING_LEVEL_UNSPECIFIED") {
    const effort = Object.hasOwn(LEVELS, level) ? LEVELS[level] : undefined;
    if (effort === undefined)
      throw invalidField(`${CONFIG}.thinkingConfig.thinkingLevel`, `must be one of ${Object.keys(LEVELS).join(", ")}`);
    request.reasoning = { $typeName: "parley.v1.ReasoningOptions", effort };
  } else if (thinkingBudget != null && thinkingBudget !== -1) {
    request.reasoning = {
      $typeName: "parley.v1.ReasoningOptions",
      effort: thinkingBudget === 0 ? ReasoningEffort.NONE : ReasoningEffort.UNSPECIFIED,
      ...(thinkingBudget !== 0 && { maxTokens: toInt32(thinkingBudget, "thinkingConfig.thinkingBudget") }),
    };
  }
}
