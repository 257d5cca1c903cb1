import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import type { GeminiContent, GeminiPart } from "../../formats/gemini/content-schema.ts";
import type { GeminiRequest, GenerationConfig } from "../../formats/gemini/schema.ts";
import { Refusal } from "../answer.ts";
import type { Path } from "../body.ts";
import { measureImage } from "../image-input.ts";
import { BODY } from "./failure.ts";
import { SCHEMA_KEYWORDS, toCamelCase } from "./fields.ts";
import { checkSignatures, checkThinking } from "./thinking.ts";

const ASPECT_RATIOS = "1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:4 4:1 1:8 8:1".split(" ");
const IMAGE_SIZES = ["512", "1K", "2K", "4K"];
const MAX_STOP_SEQUENCES = 5;

/** Fields of which a part has exactly one. */
const DATA_FIELDS =
  "text inlineData fileData functionCall functionResponse executableCode codeExecutionResult toolCall toolResponse".split(
    " ",
  );

function refuseUnless(isRight: boolean, message: string, field?: string): void {
  if (!isRight) throw new Refusal(400, message, field === undefined ? {} : { field });
}

function checkRange(value: number | null | undefined, name: string, [least, most]: readonly [number, number]): void {
  refuseUnless(
    value == null || (value >= least && value <= most),
    `* GenerateContentRequest.generation_config.${name}: ${name} must be in the range [${least}, ${most}].\n`,
    `generation_config.${name}`,
  );
}

function checkGeneration(config: GenerationConfig): void {
  checkRange(config.temperature, "temperature", [0, 2]);
  checkRange(config.topP, "top_p", [0, 1]);
  checkRange(config.presencePenalty, "presence_penalty", [-2, 2]);
  checkRange(config.frequencyPenalty, "frequency_penalty", [-2, 2]);
  refuseUnless((config.candidateCount ?? 1) === 1, "Multiple candidates is not enabled for this model");
  refuseUnless(
    (config.maxOutputTokens ?? 1) > 0,
    "max_output_tokens must be positive.",
    "generation_config.max_output_tokens",
  );
  const stops = config.stopSequences ?? [];
  refuseUnless(
    stops.length <= MAX_STOP_SEQUENCES,
    `* GenerateContentRequest.generation_config.stop_sequences: at most ${MAX_STOP_SEQUENCES} stop sequences are allowed\n`,
  );
  refuseUnless(!stops.includes(""), "* GenerateContentRequest.generation_config.stop_sequences: must not be empty\n");
  const { responseSchema, responseJsonSchema, responseMimeType } = config;
  refuseUnless(
    responseSchema == null || responseJsonSchema == null,
    "Only one of response_schema and response_json_schema may be set.",
  );
  refuseUnless(
    (responseSchema ?? responseJsonSchema) == null || responseMimeType === "application/json",
    "Function calling config or response_schema requires response_mime_type `application/json`.",
  );
  checkSchema(responseSchema, ["generationConfig", "responseSchema"]);
  const { aspectRatio, imageSize } = config.imageConfig ?? {};
  refuseUnless(
    aspectRatio == null || ASPECT_RATIOS.includes(aspectRatio),
    "aspect_ratio must be one of " + ASPECT_RATIOS.map((ratio) => `'${ratio}'`).join(", "),
    "generation_config.image_config.aspect_ratio",
  );
  refuseUnless(
    imageSize == null || IMAGE_SIZES.includes(imageSize),
    "image_size must be one of " + IMAGE_SIZES.map((size) => `'${size}'`).join(", "),
    "generation_config.image_config.image_size",
  );
}

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null;
}

/** Checks the names of the keywords of a schema in the service's own form, at every depth. */
function checkSchema(schema: unknown, path: Path): void {
  if (!isObject(schema)) return;
  const unknown = Object.keys(schema).find((keyword) => !SCHEMA_KEYWORDS.split(" ").includes(keyword));
  if (unknown !== undefined) throw BODY.refuseUnknown([...path, unknown]);
  const { items, anyOf, properties } = schema;
  checkSchema(items, [...path, "items"]);
  if (Array.isArray(anyOf)) anyOf.forEach((each, index) => checkSchema(each, [...path, "anyOf", index]));
  if (!isObject(properties)) return;
  for (const [name, each] of Object.entries(properties)) checkSchema(each, [...path, "properties", name]);
}

function checkPart(part: GeminiPart, where: string): void {
  const filled = Object.keys(part).filter((name) => part[name] != null && DATA_FIELDS.includes(toCamelCase(name)));
  refuseUnless(
    filled.length === 1,
    filled.length === 0
      ? `* GenerateContentRequest.${where}.data: required oneof field 'data' must have one initialized field\n`
      : `Invalid value at '${where}' (oneof), oneof field 'data' is already set. Cannot set '${filled[1]}'`,
    where,
  );
  const { functionResponse: response, videoMetadata } = part;
  refuseUnless(
    response == null || Boolean(response.name),
    `* GenerateContentRequest.${where}.function_response.name: Name cannot be empty.\n`,
    `${where}.function_response.name`,
  );
  const fps = videoMetadata?.fps ?? 1;
  refuseUnless(fps > 0 && fps <= 24, "The fps of a video must be in the range (0, 24].", `${where}.video_metadata.fps`);
}

function checkContents(contents: readonly GeminiContent[]): void {
  refuseUnless(contents.length > 0, "* GenerateContentRequest.contents: contents is not specified\n", "contents");
  for (const [index, { parts }] of contents.entries()) {
    const field = `contents[${index}].parts`;
    const message = `* GenerateContentRequest.${field}: contents.parts must not be empty.\n`;
    if (!parts?.length) throw new Refusal(400, message, { field });
    for (const [at, part] of parts.entries()) checkPart(part, `${field}[${at}]`);
  }
}

/** Checks that images with bytes are images. */
function checkImages({ messages }: CompletionRequest): void {
  for (const { kind } of messages.flatMap(({ parts }) => parts)) {
    const isReadable =
      kind.case !== "image" ||
      kind.value.source.case !== "data" ||
      measureImage(Buffer.from(kind.value.source.value)) !== undefined;
    refuseUnless(isReadable, "Unable to process input image. Please retry or report in the developer forum.");
  }
}

/** Checks that the next content has one response per call. */
function checkCalls(contents: readonly GeminiContent[]): void {
  let calls = 0;
  for (const [index, { parts }] of contents.entries()) {
    const responses = parts?.filter((part) => part.functionResponse).length ?? 0;
    refuseUnless(
      responses === calls,
      "Please ensure that the number of function response parts is equal to the number of function call parts of the " +
        "function call turn.",
    );
    calls = parts?.filter((part) => part.functionCall).length ?? 0;
    const before = contents[index - 1]?.role ?? "user";
    refuseUnless(
      calls === 0 || (index > 0 && before !== "model"),
      "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    );
  }
}

function checkTools({ tools, toolConfig }: GeminiRequest): void {
  for (const [index, { functionDeclarations: declarations }] of (tools ?? []).entries()) {
    for (const [at, { name, parameters, parametersJsonSchema }] of (declarations ?? []).entries()) {
      refuseUnless(
        /^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$/u.test(name),
        "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), " +
          "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.",
      );
      refuseUnless(
        parameters == null || parametersJsonSchema == null,
        "Only one of parameters and parameters_json_schema may be set.",
      );
      checkSchema(parameters, ["tools", index, "functionDeclarations", at, "parameters"]);
    }
  }
  const config = toolConfig?.functionCallingConfig;
  refuseUnless(
    config?.allowedFunctionNames == null || config.mode === "ANY" || config.mode === "VALIDATED",
    "Function calling config: allowed_function_names should be set only when the mode is ANY or VALIDATED.",
  );
}

/** Checks the rules that the format does not have. `request`: what it has read. Throws `Refusal` (400) for the first violation. */
export function checkRules(body: GeminiRequest, request: CompletionRequest): void {
  checkContents(body.contents);
  checkImages(request);
  checkGeneration(body.generationConfig ?? {});
  checkThinking(body.generationConfig ?? {}, request.model);
  checkTools(body);
  checkCalls(body.contents);
  checkSignatures(body.contents, request.model);
}
