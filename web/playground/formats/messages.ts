import { base64Encode } from "@bufbuild/protobuf/wire";
import type { CompletionRequest } from "../../../gen/parley/v1/completion_pb.js";
import { type Message, type Part, Role } from "../../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { type Tool, ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { type Json, listed, orNothing, parsed, withoutGaps } from "./json.ts";

const MODES = { [ToolMode.AUTO]: "auto", [ToolMode.REQUIRED]: "any", [ToolMode.NONE]: "none" } as const;

/** Default of `max_tokens`, which Anthropic's clients require. */
const DEFAULT_MAX_TOKENS = 4096;

/** Converts a playground request to Anthropic's Messages API. Fields that it does not have are left out. */
export function toMessagesJson(request: CompletionRequest): Json {
  const { messages, toolChoice, reasoning, responseFormat } = request;
  const system = messages.filter(({ role }) => role === Role.SYSTEM).flatMap(({ parts }) => parts.map(textOf));
  const mode = toolChoice?.choice.case === "mode" ? toolChoice.choice.value : ToolMode.UNSPECIFIED;
  const schema = responseFormat?.format.case === "jsonSchema" ? responseFormat.format.value.schemaJson : undefined;
  return withoutGaps({
    model: request.model,
    max_tokens: request.maxOutputTokens ?? DEFAULT_MAX_TOKENS,
    system: system.join("\n\n") || undefined,
    messages: messages.filter(({ role }) => role !== Role.SYSTEM).map(toMessage),
    fallback_models: listed(request.fallbackModels),
    temperature: request.temperature,
    top_p: request.topP,
    stop_sequences: listed(request.stopSequences),
    tools: listed(request.tools.flatMap(toTool)),
    tool_choice: mode === ToolMode.UNSPECIFIED ? undefined : { type: MODES[mode] },
    thinking: reasoning?.effort === ReasoningEffort.NONE ? { type: "disabled" } : undefined,
    output_config: orNothing({
      effort: reasoning && EFFORTS[reasoning.effort],
      format: schema === undefined ? undefined : { type: "json_schema", schema: parsed(schema) },
    }),
    parley: request.strict ? { strict: true } : undefined,
    stream: true,
  });
}

const EFFORTS: Readonly<Partial<Record<ReasoningEffort, string>>> = {
  [ReasoningEffort.MINIMAL]: "low",
  [ReasoningEffort.LOW]: "low",
  [ReasoningEffort.MEDIUM]: "medium",
  [ReasoningEffort.HIGH]: "high",
  [ReasoningEffort.XHIGH]: "xhigh",
  [ReasoningEffort.MAX]: "max",
};

function toMessage({ role, parts }: Message): Json {
  return { role: role === Role.ASSISTANT ? "assistant" : "user", content: parts.flatMap(toBlock) };
}

function toBlock({ kind, signature }: Part): Json[] {
  switch (kind.case) {
    case "text":
    case "refusal":
      return kind.value === "" ? [] : [{ type: "text", text: kind.value }];
    case "image": {
      const { source, mediaType } = kind.value;
      const given =
        source.case === "data"
          ? { type: "base64", media_type: mediaType, data: base64Encode(source.value) }
          : { type: "url", url: source.value };
      return [{ type: "image", source: given }];
    }
    case "reasoning": {
      const { text, redacted } = kind.value;
      return [
        redacted === ""
          ? { type: "thinking", thinking: text, signature }
          : { type: "redacted_thinking", data: redacted },
      ];
    }
    case "toolCall": {
      const { id, name, input } = kind.value;
      return [{ type: "tool_use", id, name, input: parsed(input.value ?? "") ?? {} }];
    }
    case "toolResult":
      return [
        { type: "tool_result", tool_use_id: kind.value.toolCallId, content: kind.value.parts.map(textOf).join("") },
      ];
    default:
      return [];
  }
}

const textOf = ({ kind }: Part): string => (kind.case === "text" ? kind.value : "");

function toTool({ kind }: Tool): Json[] {
  if (kind.case !== "function") return [];
  const { name, description, parametersJson, strict } = kind.value;
  const schema = parsed(parametersJson) ?? { type: "object" };
  return [withoutGaps({ name, description: description || undefined, input_schema: schema, strict })];
}
