import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { type Image, type Message, type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { dataUrl, type Json, listed, orNothing, parsed, withoutGaps } from "./json.ts";

/** Converts a playground request to OpenAI's Responses API. Sampling fields that it does not have are left out. */
export function toResponsesJson(request: CompletionRequest): Json {
  const { toolChoice, reasoning, imageOptions, verbosity } = request;
  const mode = toolChoice?.choice.case === "mode" ? toolChoice.choice.value : ToolMode.UNSPECIFIED;
  return withoutGaps({
    model: request.model,
    input: request.messages.flatMap(toItems),
    fallback_models: listed(request.fallbackModels),
    max_output_tokens: request.maxOutputTokens,
    temperature: request.temperature,
    top_p: request.topP,
    tools: listed(
      request.tools.flatMap(({ kind }) =>
        kind.case === "function"
          ? [
              withoutGaps({
                type: "function",
                name: kind.value.name,
                description: kind.value.description || undefined,
                parameters: parsed(kind.value.parametersJson),
                strict: kind.value.strict,
              }),
            ]
          : [],
      ),
    ),
    tool_choice: mode === ToolMode.UNSPECIFIED ? undefined : ToolMode[mode].toLowerCase(),
    reasoning: reasoning && { effort: ReasoningEffort[reasoning.effort].toLowerCase() },
    text: orNothing({
      format: toFormat(request),
      verbosity: verbosity === Verbosity.UNSPECIFIED ? undefined : Verbosity[verbosity].toLowerCase(),
    }),
    image_config:
      imageOptions &&
      orNothing({ aspect_ratio: imageOptions.aspectRatio || undefined, image_size: imageOptions.size || undefined }),
    parley: request.strict ? { strict: true } : undefined,
    stream: true,
  });
}

/** A message as its text and images, then its calls. Reasoning is left out: its state belongs to stored responses. */
function toItems({ role, parts }: Message): Json[] {
  const isModel = role === Role.ASSISTANT;
  const content = parts.flatMap((part) => toContent(part, isModel));
  const name = role === Role.SYSTEM ? "system" : isModel ? "assistant" : "user";
  const message = content.length === 0 ? [] : [{ type: "message", role: name, content }];
  return [...message, ...parts.flatMap(toCall)];
}

function toContent({ kind }: Part, isModel: boolean): Json[] {
  if (kind.case === "text" && kind.value !== "")
    return [{ type: isModel ? "output_text" : "input_text", text: kind.value }];
  if (kind.case === "refusal") return [{ type: "refusal", refusal: kind.value }];
  return kind.case === "image" && !isModel ? [{ type: "input_image", image_url: toUrl(kind.value) }] : [];
}

function toCall({ kind }: Part): Json[] {
  if (kind.case === "toolCall") {
    const { id, name, input } = kind.value;
    return [{ type: "function_call", call_id: id, name, arguments: input.value ?? "" }];
  }
  if (kind.case !== "toolResult") return [];
  const { toolCallId, parts } = kind.value;
  return [{ type: "function_call_output", call_id: toolCallId, output: parts.map(textOf).join("") }];
}

const textOf = ({ kind }: Part): string => (kind.case === "text" ? kind.value : "");

function toUrl({ source, mediaType }: Image): string {
  return source.case === "data" ? dataUrl(mediaType, source.value) : (source.value ?? "");
}

function toFormat({ responseFormat }: CompletionRequest): Json | undefined {
  const format = responseFormat?.format;
  if (format?.case === "text") return { type: "text" };
  if (format?.case === "jsonObject") return { type: "json_object" };
  if (format?.case !== "jsonSchema") return undefined;
  return { type: "json_schema", name: format.value.name, schema: parsed(format.value.schemaJson) };
}
