import { create, type MessageInitShape } from "@bufbuild/protobuf";
import {
  type CompletionRequest,
  CompletionRequestSchema,
  type ResponseFormatSchema,
  Verbosity,
} from "../../gen/parley/v1/completion_pb.js";
import { type MessageSchema, type PartSchema, Role } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../gen/parley/v1/tool_pb.js";
import { failureOfField } from "../api/failure-of-field.ts";
import { partsToSend } from "./answer.ts";
import { type Draft, NUMBERS, type ParameterField } from "./draft.ts";
import { parseJson, readTools } from "./tools.ts";
import type { ResultTurn, Turn } from "./turns.ts";

type Part = MessageInitShape<typeof PartSchema>;

const EFFORTS: Readonly<Record<string, ReasoningEffort>> = {
  none: ReasoningEffort.NONE,
  minimal: ReasoningEffort.MINIMAL,
  low: ReasoningEffort.LOW,
  medium: ReasoningEffort.MEDIUM,
  high: ReasoningEffort.HIGH,
  xhigh: ReasoningEffort.XHIGH,
  max: ReasoningEffort.MAX,
};
const VERBOSITIES: Readonly<Record<string, Verbosity>> = {
  low: Verbosity.LOW,
  medium: Verbosity.MEDIUM,
  high: Verbosity.HIGH,
};
const MODES: Readonly<Record<string, ToolMode>> = {
  auto: ToolMode.AUTO,
  none: ToolMode.NONE,
  required: ToolMode.REQUIRED,
};

/** Builds the request. Throws a field error for values that cannot be encoded; the service validates the rest. */
export function toRequest(draft: Draft, turns: readonly Turn[]): CompletionRequest {
  const { parameters } = draft;
  const chosen = (field: ParameterField): string => parameters[field]?.trim() ?? "";
  const format = toFormat(chosen);
  const aspectRatio = chosen("image_options.aspect_ratio");
  const size = chosen("image_options.size");
  const wantsImages = chosen("modalities") === "image";
  const tools = readTools(draft.tools);
  const mode = MODES[chosen("tool_choice")];
  const effort = EFFORTS[chosen("reasoning.effort")];
  const verbosity = VERBOSITIES[chosen("verbosity")];
  return create(CompletionRequestSchema, {
    model: draft.model,
    messages: [
      ...(draft.system.trim() === "" ? [] : [{ role: Role.SYSTEM, parts: [textPart(draft.system)] }]),
      ...turns.map(toMessage),
    ],
    fallbackModels: [...draft.fallbacks],
    stopSequences: readStops(parameters.stop_sequences),
    tools,
    strict: chosen("strict") !== "",
    ...readNumbers(chosen),
    ...(wantsImages && { modalities: [Modality.TEXT, Modality.IMAGE] }),
    ...(wantsImages && (aspectRatio || size) !== "" && { imageOptions: { aspectRatio, size } }),
    ...(mode !== undefined && tools.length > 0 && { toolChoice: { choice: { case: "mode", value: mode } } }),
    ...(effort !== undefined && { reasoning: { effort } }),
    ...(verbosity !== undefined && { verbosity }),
    ...(format !== undefined && { responseFormat: format }),
  });
}

type Chosen = (field: ParameterField) => string;

function readNumbers(chosen: Chosen) {
  const [temperature, topP, maxOutputTokens, seed, frequencyPenalty, presencePenalty] = NUMBERS.map((parameter) => {
    const text = chosen(parameter.field);
    if (text === "") return undefined;
    const isWhole = "whole" in parameter;
    if (!(isWhole ? /^[+-]?\d{1,15}$/ : /^[+-]?(\d+\.?\d*|\.\d+)$/).test(text)) {
      throw failureOfField(parameter.field, `must be a ${isWhole ? "whole " : ""}number`);
    }
    return Number(text);
  });
  // The field is an int32. Larger values are far out of range anyway.
  if (maxOutputTokens !== undefined && Math.abs(maxOutputTokens) > 0x7fffffff)
    throw failureOfField("max_output_tokens", "is too large");
  return {
    ...(temperature !== undefined && { temperature }),
    ...(topP !== undefined && { topP }),
    ...(maxOutputTokens !== undefined && { maxOutputTokens }),
    ...(seed !== undefined && { seed: BigInt(seed) }),
    ...(frequencyPenalty !== undefined && { frequencyPenalty }),
    ...(presencePenalty !== undefined && { presencePenalty }),
  };
}

/** Reads stop sequences, one per line. */
function readStops(text = ""): string[] {
  return text.split("\n").filter((line) => line !== "");
}

function toFormat(chosen: Chosen): MessageInitShape<typeof ResponseFormatSchema> | undefined {
  switch (chosen("response_format")) {
    case "text":
      return { format: { case: "text", value: {} } };
    case "json_object":
      return { format: { case: "jsonObject", value: {} } };
    case "json_schema": {
      const field = "response_format.json_schema.schema_json";
      const schema = parseJson(field, chosen(field) || "null");
      if (typeof schema !== "object" || schema === null) throw failureOfField(field, "must be a JSON schema");
      return { format: { case: "jsonSchema", value: { name: "answer", schemaJson: JSON.stringify(schema) } } };
    }
    default:
      return undefined;
  }
}

function toMessage(turn: Turn): MessageInitShape<typeof MessageSchema> {
  switch (turn.role) {
    case "user": {
      const pictures = turn.pictures.map(({ mediaType, data }): Part => imagePart({ mediaType, data }));
      return { role: Role.USER, parts: [...pictures, ...(turn.text === "" ? [] : [textPart(turn.text)])] };
    }
    case "tool":
      return { role: Role.TOOL, parts: [resultPart(turn)] };
    case "assistant":
      return { role: Role.ASSISTANT, parts: [...partsToSend(turn.answer)] };
  }
}

function resultPart({ callId: toolCallId, text }: ResultTurn): Part {
  return { kind: { case: "toolResult", value: { toolCallId, parts: [textPart(text)] } } };
}

function textPart(text: string): Part {
  return { kind: { case: "text", value: text } };
}

function imagePart({ mediaType, data }: { readonly mediaType: string; readonly data: Uint8Array }): Part {
  return { kind: { case: "image", value: { mediaType, source: { case: "data", value: data } } } };
}
