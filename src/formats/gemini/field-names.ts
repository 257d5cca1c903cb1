import type { NameOf } from "../format.ts";
import { fromPlace, type MessagePlaces } from "./messages.ts";
import type { GeminiRequest } from "./schema.ts";
import type { ToolPlace } from "./tools.ts";

const CONFIG = "generationConfig";

/** Contract names and their names in the format, most specific first. */
const NAMES: readonly (readonly [contract: RegExp, gemini: string])[] = [
  [/^max_output_tokens\b/, `${CONFIG}.maxOutputTokens`],
  [/^stop_sequences\b/, `${CONFIG}.stopSequences`],
  [/^choice_count\b/, `${CONFIG}.candidateCount`],
  [/^temperature\b/, `${CONFIG}.temperature`],
  [/^top_p\b/, `${CONFIG}.topP`],
  [/^top_k\b/, `${CONFIG}.topK`],
  [/^seed\b/, `${CONFIG}.seed`],
  [/^presence_penalty\b/, `${CONFIG}.presencePenalty`],
  [/^frequency_penalty\b/, `${CONFIG}.frequencyPenalty`],
  [/^logprobs\.top_count\b/, `${CONFIG}.logprobs`],
  [/^logprobs\b/, `${CONFIG}.responseLogprobs`],
  [/^modalities\b/, `${CONFIG}.responseModalities`],
  [/^image_options\.aspect_ratio\b/, `${CONFIG}.imageConfig.aspectRatio`],
  [/^image_options\.size\b/, `${CONFIG}.imageConfig.imageSize`],
  [/^image_options\b/, `${CONFIG}.imageConfig`],
  [/^reasoning\.max_tokens\b/, `${CONFIG}.thinkingConfig.thinkingBudget`],
  [/^reasoning\b/, `${CONFIG}.thinkingConfig`],
  [/^response_format\b/, `${CONFIG}.responseMimeType`],
  [/^provider_options_json\.gemini\.safety_settings\b/, "safetySettings"],
  [/^tool_choice\b/, "toolConfig.functionCallingConfig"],
  [/^fallback_models\b/, "fallbackModels"],
  [/^service_tier\b/, "serviceTier"],
  [/^metadata\b/, "labels"],
  [/^messages\b/, "contents"],
  [/^strict\b/, "parley.strict"],
];

/** As NAMES, for paths within a part. */
const OF_PARTS: readonly (readonly [contract: RegExp, gemini: string])[] = [
  [/^\.signature$/, ".thoughtSignature"],
  [/^\.tool_result\.tool_call_id\b/, ".functionResponse.id"],
  [/^\.tool_result\b/, ".functionResponse"],
  [/\.video\.frames_per_second$/, ".videoMetadata.fps"],
  [/\.(?:image|audio|video|file)\.media_type$/, ".inlineData.mimeType"],
  [/\.(?:image|video|file)\.url$/, ".fileData.fileUri"],
  [/\.native\b.*$/, ""],
];

const SCHEMA = /^response_format\.json_schema\.schema_json\b/;
const MESSAGE = /^messages\[(\d+)\]/;
const PART = /^\.parts\[(\d+)\]/;
const TOOL = /^tools\[(\d+)\]/;

/** Facts of a request on which its field names depend. */
export interface NamedRequest {
  readonly given: GeminiRequest;
  readonly places: readonly MessagePlaces[];
  readonly tools: readonly ToolPlace[];
  /** Names that are already the caller's. */
  readonly unrecognized: readonly string[];
}

/** Returns the names of a request's fields. Keeps only places: the conversation is released before the report is written. */
export function fieldNames({ given, places, tools, unrecognized }: NamedRequest): NameOf {
  const { responseJsonSchema, thinkingConfig } = given.generationConfig ?? {};
  const schemaName = `${CONFIG}.${responseJsonSchema == null ? "responseSchema" : "responseJsonSchema"}`;
  const effortName = thinkingConfig?.thinkingLevel ? "thinkingLevel" : "thinkingBudget";
  return (path) => {
    if (unrecognized.includes(path)) return path;
    const message = MESSAGE.exec(path);
    if (message !== null) return ofMessage(places[Number(message[1])], path.slice(message[0].length)) ?? path;
    const tool = TOOL.exec(path);
    if (tool !== null) return ofTool(tools[Number(tool[1])], path.slice(tool[0].length)) ?? path;
    if (SCHEMA.test(path)) return path.replace(SCHEMA, schemaName);
    if (path === "reasoning.effort") return `${CONFIG}.thinkingConfig.${effortName}`;
    return rename(path, NAMES);
  };
}

function ofMessage(places: MessagePlaces | undefined, rest: string): string | undefined {
  if (places === undefined) return undefined;
  const isSystem = places.content < 0;
  const part = PART.exec(rest);
  const place = part === null ? undefined : places.parts[Number(part[1])];
  if (part === null || place === undefined)
    return `${isSystem ? "systemInstruction" : `contents[${places.content}]`}${rest}`;
  const { content, part: index } = fromPlace(place);
  const before = isSystem ? `systemInstruction.parts[${place}]` : `contents[${content}].parts[${index}]`;
  return before + rename(ofResult(rest.slice(part[0].length)), OF_PARTS);
}

/** Names of fields within a tool result. Its first part is the response itself. */
function ofResult(rest: string): string {
  return rest.replace(/^\.tool_result\.parts\[(\d+)\]/, (_, index: string) =>
    index === "0" ? ".functionResponse.response" : `.functionResponse.parts[${Number(index) - 1}]`,
  );
}

function ofTool(place: ToolPlace | undefined, rest: string): string | undefined {
  if (place === undefined) return undefined;
  if (rest.startsWith(".function.strict")) return "toolConfig.functionCallingConfig.mode";
  const schema = /^\.function\.parameters_json/.exec(rest);
  if (schema !== null) return place.schema + rest.slice(schema[0].length);
  return place.tool + rest.replace(/^\.function\b/, "").replace(/^\.native\b.*$/, "");
}

function rename(path: string, names: readonly (readonly [contract: RegExp, gemini: string])[]): string {
  const found = names.find(([contract]) => contract.test(path));
  return found === undefined ? path : path.replace(...found);
}
