import { base64Encode } from "@bufbuild/protobuf/wire";
import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { type Tool, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { type Json, listed, orNothing, parsed, withoutGaps } from "./json.ts";

const MODES = { [ToolMode.AUTO]: "AUTO", [ToolMode.REQUIRED]: "ANY", [ToolMode.NONE]: "NONE" } as const;

/** Converts a playground request to Gemini's format, whose path names the model. Fields that it does not have are left out. */
export function toGeminiJson(request: CompletionRequest): Json {
  const { messages, toolChoice } = request;
  const system = messages.filter(({ role }) => role === Role.SYSTEM).flatMap(({ parts }) => parts.flatMap(toPlainPart));
  const mode = toolChoice?.choice.case === "mode" ? toolChoice.choice.value : ToolMode.UNSPECIFIED;
  const functions = request.tools.flatMap(toFunction);
  const names = namesOfCalls(messages);
  return withoutGaps({
    systemInstruction: system.length === 0 ? undefined : { parts: system },
    contents: messages
      .filter(({ role }) => role !== Role.SYSTEM)
      .map(({ role, parts }) => ({
        role: role === Role.ASSISTANT ? "model" : "user",
        parts: parts.flatMap((part) => toPart(part, names)),
      })),
    tools: functions.length === 0 ? undefined : [{ functionDeclarations: functions }],
    toolConfig: mode === ToolMode.UNSPECIFIED ? undefined : { functionCallingConfig: { mode: MODES[mode] } },
    generationConfig: toConfig(request),
    fallbackModels: listed(request.fallbackModels),
    parley: request.strict ? { strict: true } : undefined,
  });
}

function toConfig(request: CompletionRequest): Json | undefined {
  const { seed, modalities, imageOptions, reasoning, responseFormat } = request;
  const format = responseFormat?.format;
  const isJson = format?.case === "jsonObject" || format?.case === "jsonSchema";
  return orNothing({
    maxOutputTokens: request.maxOutputTokens,
    temperature: request.temperature,
    topP: request.topP,
    seed: seed === undefined ? undefined : Number(seed),
    presencePenalty: request.presencePenalty,
    frequencyPenalty: request.frequencyPenalty,
    stopSequences: listed(request.stopSequences),
    responseMimeType: isJson ? "application/json" : format?.case === "text" ? "text/plain" : undefined,
    responseJsonSchema: format?.case === "jsonSchema" ? parsed(format.value.schemaJson) : undefined,
    responseModalities: listed(modalities.map((each) => (each === Modality.IMAGE ? "IMAGE" : "TEXT"))),
    imageConfig:
      imageOptions &&
      orNothing({ aspectRatio: imageOptions.aspectRatio || undefined, imageSize: imageOptions.size || undefined }),
    thinkingConfig: reasoning && { thinkingLevel: ReasoningEffort[reasoning.effort] },
  });
}

/** Results repeat the name of their call, which the contract does not. */
function namesOfCalls(messages: readonly Message[]): ReadonlyMap<string, string> {
  const calls = messages.flatMap(({ parts }) =>
    parts.flatMap(({ kind }) => (kind.case === "toolCall" ? [kind.value] : [])),
  );
  return new Map(calls.map(({ id, name }) => [id, name]));
}

function toPart(part: Part, names: ReadonlyMap<string, string>): Json[] {
  const { kind, signature } = part;
  const state = signature === "" ? {} : { thoughtSignature: signature };
  if (kind.case === "toolCall") {
    const { id, name, input } = kind.value;
    return [{ functionCall: { id, name, args: parsed(input.value ?? "") ?? {} }, ...state }];
  }
  if (kind.case === "toolResult") {
    const { toolCallId: id, parts } = kind.value;
    const result = parts.map(({ kind: each }) => (each.case === "text" ? each.value : "")).join("");
    return [{ functionResponse: { id, name: names.get(id) ?? "", response: toObject(result) } }];
  }
  return toPlainPart(part).map((each) => ({ ...each, ...state }));
}

function toPlainPart({ kind }: Part): Json[] {
  if (kind.case === "text" || kind.case === "refusal") return kind.value === "" ? [] : [{ text: kind.value }];
  if (kind.case !== "image") return [];
  const { source, mediaType } = kind.value;
  if (source.case !== "data") return [{ fileData: { fileUri: source.value, mimeType: mediaType } }];
  return [{ inlineData: { mimeType: mediaType, data: base64Encode(source.value) } }];
}

/** Converts a result to an object, which the format requires. Any other value becomes the field `result`. */
function toObject(result: string): unknown {
  try {
    const json: unknown = JSON.parse(result);
    if (typeof json === "object" && json !== null && !Array.isArray(json)) return json;
  } catch {
    // Not JSON: the result is a text.
  }
  return { result };
}

function toFunction({ kind }: Tool): Json[] {
  if (kind.case !== "function") return [];
  const { name, description, parametersJson } = kind.value;
  return [withoutGaps({ name, description: description || undefined, parametersJsonSchema: parsed(parametersJson) })];
}
