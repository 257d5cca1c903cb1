import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { Verbosity } from "../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../gen/parley/v1/message_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import { type Tool, ToolMode } from "../../gen/parley/v1/tool_pb.js";
import { addChunk, NOTHING } from "./answer.ts";
import { type Draft, EMPTY_DRAFT, type ParameterField } from "./draft.ts";
import type { Turn } from "./turns.ts";

/** A conversation and its settings, in the playground's types. */
interface Opened {
  readonly draft: Draft;
  readonly turns: readonly Turn[];
}

/**
 * Converts a stored request. Omits its answer, which can be requested again, and fields that the playground does not
 * have. `model`: the requested model.
 */
export function fromStored(request: CompletionRequest, model: string): Opened {
  const { messages, fallbackModels, tools } = request;
  const system = messages.filter(({ role }) => role === Role.SYSTEM);
  return {
    draft: {
      ...EMPTY_DRAFT,
      chosenModel: model,
      fallbacks: fallbackModels,
      system: system.map(({ parts }) => textOf(parts)).join("\n\n"),
      parameters: readParameters(request),
      tools: writeTools(tools),
    },
    turns: toTurns(messages.filter(({ role }) => role !== Role.SYSTEM)),
  };
}

function toTurns(messages: readonly Message[]): Turn[] {
  const turns: Turn[] = [];
  const names = new Map<string, string>();
  const add = (turn: Turn): void => void turns.push({ ...turn, id: turns.length + 1 });
  for (const { role, parts } of messages) {
    const results = parts.flatMap(({ kind }) => (kind.case === "toolResult" ? [kind.value] : []));
    for (const { toolCallId: callId, parts: given } of results)
      add({ id: 0, role: "tool", callId, name: names.get(callId) ?? "", text: textOf(given) });
    const others = parts.filter(({ kind }) => kind.case !== "toolResult" && kind.case !== "native");
    if (others.length === 0) continue;
    if (role === Role.ASSISTANT) {
      const answer = others.reduce(
        (before, part, partIndex) =>
          addChunk(before, {
            $typeName: "parley.v1.CompletionChunk",
            event: {
              case: "partStart",
              value: { $typeName: "parley.v1.PartStart", choiceIndex: 0, partIndex, part },
            },
          }),
        { ...NOTHING, text: textOf(others), reasoning: reasoningOf(others), refusal: refusalOf(others) },
      );
      for (const { id, name } of answer.calls) names.set(id, name);
      add({ id: 0, role: "assistant", answer });
    } else add({ id: 0, role: "user", text: textOf(others), pictures: [] });
  }
  return turns;
}

/** The texts of parts, one below the other. */
function textOf(parts: readonly Part[]): string {
  return parts.flatMap(({ kind }) => (kind.case === "text" ? [kind.value] : [])).join("\n");
}

function reasoningOf(parts: readonly Part[]): string {
  return parts.flatMap(({ kind }) => (kind.case === "reasoning" ? [kind.value.text] : [])).join("\n");
}

function refusalOf(parts: readonly Part[]): string {
  return parts.flatMap(({ kind }) => (kind.case === "refusal" ? [kind.value] : [])).join("\n");
}

/** The parameters of a request, as a person would enter them. */
function readParameters(request: CompletionRequest): Draft["parameters"] {
  const { temperature, topP, maxOutputTokens, seed, frequencyPenalty, presencePenalty, stopSequences } = request;
  const { reasoning, verbosity, tools, toolChoice, responseFormat, modalities, imageOptions, strict } = request;
  const mode = toolChoice?.choice.case === "mode" ? toolChoice.choice.value : ToolMode.UNSPECIFIED;
  const format = responseFormat?.format;
  const written: readonly (readonly [ParameterField, unknown])[] = [
    ["temperature", temperature],
    ["top_p", topP],
    ["max_output_tokens", maxOutputTokens],
    ["seed", seed],
    ["frequency_penalty", frequencyPenalty],
    ["presence_penalty", presencePenalty],
    ["stop_sequences", stopSequences.length > 0 ? stopSequences.join("\n") : undefined],
    ["reasoning.effort", reasoning?.effort ? ReasoningEffort[reasoning.effort].toLowerCase() : undefined],
    ["verbosity", verbosity ? Verbosity[verbosity].toLowerCase() : undefined],
    ["tool_choice", mode && tools.length > 0 ? ToolMode[mode].toLowerCase() : undefined],
    ["response_format", format?.case && FORMATS[format.case]],
    [
      "response_format.json_schema.schema_json",
      format?.case === "jsonSchema" ? indented(format.value.schemaJson) : undefined,
    ],
    ["modalities", modalities.includes(Modality.IMAGE) ? "image" : undefined],
    ["image_options.aspect_ratio", imageOptions?.aspectRatio || undefined],
    ["image_options.size", imageOptions?.size || undefined],
    ["strict", strict ? "yes" : undefined],
  ];
  const set = written.filter(([, value]) => value !== undefined && value !== "");
  return Object.fromEntries(set.map(([field, value]) => [field, String(value)]));
}

const FORMATS = { text: "text", jsonObject: "json_object", jsonSchema: "json_schema" } as const;

/** Functions in the OpenAI tools format; empty for none. A function whose schema was cut is left out. */
function writeTools(tools: readonly Tool[]): string {
  const functions = tools.flatMap(({ kind }) => {
    if (kind.case !== "function") return [];
    const { name, description, parametersJson, strict } = kind.value;
    const parameters = parametersJson === "" ? undefined : readJson(parametersJson);
    if (parametersJson !== "" && parameters === undefined) return [];
    return [{ type: "function", function: { name, description, parameters, strict } }];
  });
  return functions.length === 0 ? "" : JSON.stringify(functions, null, 2);
}

function readJson(text: string): unknown {
  try {
    return JSON.parse(text);
  } catch {
    return undefined;
  }
}

function indented(json: string): string {
  const value = readJson(json);
  return value === undefined ? json : JSON.stringify(value, null, 2);
}
