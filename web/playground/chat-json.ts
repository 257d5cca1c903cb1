import { base64Encode } from "@bufbuild/protobuf/wire";
import { type CompletionRequest, Modality, ReasoningEffort } from "../../gen/parley/v1/completion_pb.js";
import {
  type Image,
  type Message,
  type ReasoningBlock,
  Role,
  type Tool,
  type ToolCall,
  ToolMode,
} from "../../gen/parley/v1/message_pb.js";

/** A request in the OpenAI format, as `/v1/chat/completions` takes it. */
export type ChatJson = Readonly<Record<string, unknown>>;

const ROLES = {
  [Role.UNSPECIFIED]: "user",
  [Role.SYSTEM]: "system",
  [Role.USER]: "user",
  [Role.ASSISTANT]: "assistant",
  [Role.TOOL]: "tool",
} as const;

/** The same request in the OpenAI format: what the playground asked, to be asked by a program. */
export function toChatJson(request: CompletionRequest): ChatJson {
  const { seed, modalities, imageOptions, toolChoice, reasoningEffort } = request;
  const mode = toolChoice?.choice.case === "mode" ? toolChoice.choice.value : ToolMode.UNSPECIFIED;
  return withoutGaps({
    model: request.model,
    messages: request.messages.map(toMessage),
    fallback_models: listed(request.fallbackModels),
    modalities: listed(modalities.map((modality) => (modality === Modality.IMAGE ? "image" : "text"))),
    max_tokens: request.maxTokens,
    temperature: request.temperature,
    top_p: request.topP,
    stop: listed(request.stop),
    seed: seed === undefined ? undefined : Number(seed),
    frequency_penalty: request.frequencyPenalty,
    presence_penalty: request.presencePenalty,
    tools: listed(request.tools.flatMap(toTool)),
    tool_choice: mode === ToolMode.UNSPECIFIED ? undefined : ToolMode[mode].toLowerCase(),
    response_format: toFormat(request),
    reasoning_effort:
      reasoningEffort === ReasoningEffort.UNSPECIFIED ? undefined : ReasoningEffort[reasoningEffort].toLowerCase(),
    image_config:
      imageOptions &&
      withoutGaps({ aspect_ratio: imageOptions.aspectRatio || undefined, image_size: imageOptions.size || undefined }),
    verbosity: request.verbosity,
    parley: request.strict ? { strict: true } : undefined,
    stream: true,
    stream_options: { include_usage: true },
  });
}

function toMessage({ role, content, toolCalls, toolCallId, refusal, reasoning, signature }: Message): ChatJson {
  const parts = content.flatMap(({ content: part }) =>
    part.case === "text" ? [{ type: "text", text: part.value }] : part.case === "image" ? [toImage(part.value)] : [],
  );
  const [only, ...others] = content;
  const text = only?.content.case === "text" && others.length === 0 ? only.content.value : undefined;
  return withoutGaps({
    role: ROLES[role],
    content: text ?? (parts.length > 0 ? parts : null),
    refusal,
    thinking_blocks: listed(reasoning.map(toThinking)),
    tool_calls: listed(toolCalls.map(toCall)),
    tool_call_id: toolCallId,
    extra_content: toSignature(signature),
  });
}

function toImage({ source, mediaType, signature }: Image): ChatJson {
  const url = source.case === "data" ? dataUrl(mediaType, source.value) : (source.value ?? "");
  return withoutGaps({ type: "image_url", image_url: { url }, extra_content: toSignature(signature) });
}

function toThinking({ text, signature, redacted, textOffset, toolCallOffset }: ReasoningBlock): ChatJson {
  const at = textOffset + toolCallOffset > 0 ? { text: textOffset, tools: toolCallOffset } : undefined;
  return redacted === ""
    ? withoutGaps({ type: "thinking", thinking: text, signature, at })
    : withoutGaps({ type: "redacted_thinking", data: redacted, at });
}

function toCall({ id, name, arguments: given, signature }: ToolCall): ChatJson {
  return withoutGaps({
    id,
    type: "function",
    function: { name, arguments: given },
    extra_content: toSignature(signature),
  });
}

function toSignature(signature: string | undefined): ChatJson | undefined {
  return signature ? { google: { thought_signature: signature } } : undefined;
}

function toTool({ kind }: Tool): ChatJson[] {
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

function toFormat({ responseFormat }: CompletionRequest): ChatJson | undefined {
  const format = responseFormat?.format;
  if (format?.case === "text") return { type: "text" };
  if (format?.case === "jsonObject") return { type: "json_object" };
  if (format?.case !== "jsonSchema") return undefined;
  const { name, schemaJson } = format.value;
  return { type: "json_schema", json_schema: { name, schema: JSON.parse(schemaJson) as unknown } };
}

/** A picture as pages and the OpenAI format write it. */
export function dataUrl(mediaType: string, data: Uint8Array): string {
  return `data:${mediaType};base64,${base64Encode(data)}`;
}

function listed<T>(items: readonly T[]): readonly T[] | undefined {
  return items.length === 0 ? undefined : items;
}

function withoutGaps(object: Record<string, unknown>): ChatJson {
  return Object.fromEntries(Object.entries(object).filter(([, value]) => value !== undefined));
}
