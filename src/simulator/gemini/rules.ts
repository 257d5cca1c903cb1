import { Refusal } from "../answer.ts";
import { decodeBytes, measureImage } from "../image-input.ts";
import type { Content, ContentPart, GenerateBody, GenerationConfig } from "./schema.ts";
import { checkSignatures, checkThinking } from "./thinking.ts";

const ASPECT_RATIOS = "1:1 2:3 3:2 3:4 4:3 4:5 5:4 9:16 16:9 21:9 1:4 4:1 1:8 8:1".split(" ");
const IMAGE_SIZES = ["512", "1K", "2K", "4K"];
const MAX_STOP_SEQUENCES = 5;

const DATA_FIELDS = [
  "text",
  "inlineData",
  "fileData",
  "functionCall",
  "functionResponse",
  "executableCode",
  "codeExecutionResult",
  "toolCall",
  "toolResponse",
] as const satisfies readonly (keyof ContentPart)[];

function refuseUnless(isRight: boolean, message: string, field?: string): void {
  if (!isRight) throw new Refusal(400, message, field === undefined ? {} : { field });
}

function checkRange(value: number | undefined, name: string, [least, most]: readonly [number, number]): void {
  refuseUnless(
    value === undefined || (value >= least && value <= most),
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
  const hasSchema = config.responseSchema !== undefined || config.responseJsonSchema !== undefined;
  refuseUnless(
    config.responseSchema === undefined || config.responseJsonSchema === undefined,
    "Only one of response_schema and response_json_schema may be set.",
  );
  refuseUnless(
    !hasSchema || config.responseMimeType === "application/json" || config.responseMimeType === "text/x.enum",
    "Function calling config or response_schema requires response_mime_type `application/json`.",
  );
  const { aspectRatio, imageSize } = config.imageConfig ?? {};
  refuseUnless(
    aspectRatio === undefined || ASPECT_RATIOS.includes(aspectRatio),
    "aspect_ratio must be one of " + ASPECT_RATIOS.map((ratio) => `'${ratio}'`).join(", "),
    "generation_config.image_config.aspect_ratio",
  );
  refuseUnless(
    imageSize === undefined || IMAGE_SIZES.includes(imageSize),
    "image_size must be one of " + IMAGE_SIZES.map((size) => `'${size}'`).join(", "),
    "generation_config.image_config.image_size",
  );
}

function checkPart(part: ContentPart, where: string): void {
  const filled = DATA_FIELDS.filter((field) => part[field] !== undefined);
  refuseUnless(
    filled.length === 1,
    filled.length === 0
      ? `* GenerateContentRequest.${where}.data: required oneof field 'data' must have one initialized field\n`
      : `Invalid value at '${where}' (oneof), oneof field 'data' is already set. Cannot set '${filled[1]}'`,
    where,
  );
  if (!part.inlineData) return;
  const bytes = decodeBytes(part.inlineData.data);
  if (!bytes) {
    throw new Refusal(400, `Invalid value at '${where}.inline_data.data' (TYPE_BYTES), Base64 decoding failed`);
  }
  const isReadable = !part.inlineData.mimeType.startsWith("image/") || measureImage(bytes) !== undefined;
  refuseUnless(isReadable, "Unable to process input image. Please retry or report in the developer forum.");
}

function checkContents(contents: readonly Content[]): void {
  refuseUnless(contents.length > 0, "* GenerateContentRequest.contents: contents is not specified\n", "contents");
  for (const [index, { role = "user", parts = [] }] of contents.entries()) {
    refuseUnless(["user", "model", "function"].includes(role), "Please use a valid role: user, model.");
    refuseUnless(
      parts.length > 0,
      `* GenerateContentRequest.contents[${index}].parts: contents.parts must not be empty.\n`,
      `contents[${index}].parts`,
    );
    for (const [at, part] of parts.entries()) checkPart(part, `contents[${index}].parts[${at}]`);
  }
}

/** Checks that the next content has one response per call. */
function checkCalls(contents: readonly Content[]): void {
  let calls = 0;
  for (const [index, { parts = [] }] of contents.entries()) {
    const responses = parts.filter((part) => part.functionResponse).length;
    refuseUnless(
      responses === calls,
      "Please ensure that the number of function response parts is equal to the number of function call parts of the " +
        "function call turn.",
    );
    calls = parts.filter((part) => part.functionCall).length;
    const before = contents[index - 1]?.role ?? "user";
    refuseUnless(
      calls === 0 || (index > 0 && before !== "model"),
      "Please ensure that function call turn comes immediately after a user turn or after a function response turn.",
    );
  }
}

function checkTools({ tools, toolConfig }: GenerateBody): void {
  const declarations = tools.flatMap((tool) => tool.functionDeclarations ?? []);
  for (const { name, parameters, parametersJsonSchema } of declarations) {
    refuseUnless(
      /^[A-Za-z_][A-Za-z0-9_.:-]{0,127}$/u.test(name),
      "Invalid function name. Must start with a letter or an underscore. Must be alphanumeric (a-z, A-Z, 0-9), " +
        "underscores (_), dots (.), colons (:), or dashes (-), with a maximum length of 128.",
    );
    refuseUnless(
      parameters === undefined || parametersJsonSchema === undefined,
      "Only one of parameters and parameters_json_schema may be set.",
    );
  }
  const config = toolConfig?.functionCallingConfig;
  refuseUnless(
    config?.allowedFunctionNames === undefined || config.mode === "ANY" || config.mode === "VALIDATED",
    "Function calling config: allowed_function_names should be set only when the mode is ANY or VALIDATED.",
  );
}

/** Checks the rules that the schema does not express. Throws `Refusal` (400) for the first violation. */
export function checkRules(body: GenerateBody, model: string): void {
  checkContents(body.contents);
  checkGeneration(body.generationConfig ?? {});
  checkThinking(body.generationConfig ?? {}, model);
  checkTools(body);
  checkCalls(body.contents);
  checkSignatures(body.contents, model);
}
