import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { type Image, type Message, type Part, Role, type ToolCall } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { type Tool, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { dataUrl, type Json, listed, withoutGaps } from "./json.ts";

const ROLES = {
  [Role.UNSPECIFIED]: "user",
  [Role.SYSTEM]: "system",
  [Role.USER]: "user",
  [Role.ASSISTANT]: "assistant",
  [Role.TOOL]: "tool",
} as const;

/** Converts a playground request to OpenAI’s Chat Completions. */
export function toChatJson(request: CompletionRequest): Json {
  const { seed, modalities, imageOptions, toolChoice, reasoning } = request;
  const mode = toolChoice?.choice.case === "mode" ? toolChoice.choice.value : ToolMode.UNSPECIFIED;
  return withoutGaps({
    model: request.model,
    messages: request.messages.map(toMessage),
    fallback_models: listed(request.fallbackModels),
    modalities: listed(modalities.map((modality) => (modality === Modality.IMAGE ? "image" : "text"))),
    max_tokens: request.maxOutputTokens,
    temperature: request.temperature,
    top_p: request.topP,
    stop: listed(request.stopSequences),
    seed: seed === undefined ? undefined : Number(seed),
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    tools: listed(request.tools.flatMap(toTool)),
    tool_choice: mode === ToolMode.UNSPECIFIED ? undefined : ToolMode[mode].toLowerCase(),
    response_format: toFormat(request),
    reasoning_effort: reasoning === undefined ? undefined : ReasoningEffort[reasoning.effort].toLowerCase(),
    image_config:
      imageOptions &&
      withoutGaps({ aspect_ratio: imageOptions.aspectRatio || undefined, image_size: imageOptions.size || undefined }),
    verbosity: request.verbosity === Verbosity.UNSPECIFIED ? undefined : Verbosity[request.verbosity].toLowerCase(),
    parley: request.strict ? { strict: true } : undefined,
    stream: true,
    stream_options: { include_usage: true },
  });
}

function toMessage({ role, parts }: Message): Json {
  const [first] = parts;
  if (first?.kind.case === "toolResult") {
    const { toolCallId, parts: result } = first.kind.value;
    return { role: "tool", tool_call_id: toolCallId, content: toContent(result) };
  }
  const calls = parts.flatMap(({ kind, signature }) =>
    kind.case === "toolCall" ? [toCall(kind.value, signature)] : [],
  );
  const refusal = parts.map(({ kind }) => (kind.case === "refusal" ? kind.value : "")).join("");
  const texts = parts.filter(({ kind, signature }) => kind.case === "text" && signature !== "");
  const hasImage = parts.some(({ kind }) => kind.case === "image");
  return withoutGaps({
    role: ROLES[role],
    content: toContent(parts),
    refusal: refusal || undefined,
    thinking_blocks: listed(toThinking(parts)),
    tool_calls: listed(calls),
    extra_content: toSignature((hasImage ? texts[0] : texts.at(-1))?.signature),
  });
}

/** Converts content parts. A single text becomes a string. */
function toContent(parts: readonly Part[]): unknown {
  const content = parts.flatMap(({ kind, signature }) => {
    if (kind.case === "text") return kind.value === "" ? [] : [{ type: "text", text: kind.value }];
    return kind.case === "image" ? [toImage(kind.value, signature)] : [];
  });
  const [only, ...others] = content;
  if (only !== undefined && others.length === 0 && "text" in only) return only.text;
  return content.length > 0 ? content : null;
}

function toImage({ source, mediaType }: Image, signature: string): Json {
  const url = source.case === "data" ? dataUrl(mediaType, source.value) : (source.value ?? "");
  return withoutGaps({ type: "image_url", image_url: { url }, extra_content: toSignature(signature) });
}

/** Converts reasoning parts. `at` is the position: number of text characters and tool calls before the block. */
function toThinking(parts: readonly Part[]): Json[] {
  const blocks: Json[] = [];
  let text = 0;
  let tools = 0;
  for (const { kind, signature } of parts) {
    if (kind.case === "text") text += kind.value.length;
    else if (kind.case === "toolCall") tools += 1;
    else if (kind.case === "reasoning") {
      const { text: thinking, redacted } = kind.value;
      const at = text + tools > 0 ? { text, tools } : undefined;
      blocks.push(
        redacted === ""
          ? withoutGaps({ type: "thinking", thinking, signature, at })
          : withoutGaps({ type: "redacted_thinking", data: redacted, at }),
      );
    }
  }
  return blocks;
}

function toCall({ id, name, input }: ToolCall, signature: string): Json {
  return withoutGaps({
    id,
    type: "function",
    function: { name, arguments: input.value ?? "" },
    extra_content: toSignature(signature),
  });
}

function toSignature(signature: string | undefined): Json | undefined {
  return signature ? { google: { thought_signature: signature } } : undefined;
}

function toTool({ kind }: Tool): Json[] {
  if (kind.case !== "function") return [];
  const { name, description, parametersJson, strict } = kind.value;
  const parameters: unknown = parametersJson === "" ? undefined : JSON.parse(parametersJson);
  return [
    {
      type: "function",
      function: withoutGaps({ name, description: description || undefined, parameters, strict }),
    },
  ];
}

function toFormat({ responseFormat }: CompletionRequest): Json | undefined {
  const format = responseFormat?.format;
  if (format?.case === "text") return { type: "text" };
  if (format?.case === "jsonObject") return { type: "json_object" };
  if (format?.case !== "jsonSchema") return undefined;
  const { name, schemaJson } = format.value;
  return { type: "json_schema", json_schema: { name, schema: JSON.parse(schemaJson) as unknown } };
}
