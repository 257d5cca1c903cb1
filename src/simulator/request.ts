import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { type Image, type Message, type Part, Role, type ToolResult } from "../../gen/parley/v1/message_pb.js";
import { ToolMode } from "../../gen/parley/v1/tool_pb.js";
import { type ImageInput, readImage, referToImage } from "./image-input.ts";
import type { Prompt, Tool, ToolChoice, Turn } from "./prompt.ts";

/** The caller's name of a function, by that of the contract. */
type FunctionName = (name: string) => string;

/** Converts a request that a format has read to a prompt, without what only some dialects have: pictures and reasoning. */
export function toPrompt(request: CompletionRequest, toGiven: FunctionName = (name) => name): Prompt {
  return {
    model: request.model,
    turns: request.messages.flatMap(toTurns),
    tools: request.tools.flatMap(({ kind }): Tool[] =>
      kind.case === "function"
        ? [{ name: toGiven(kind.value.name), parameters: parsed(kind.value.parametersJson) }]
        : [],
    ),
    toolChoice: toToolChoice(request, toGiven),
    json: toJson(request),
    maxTokens: request.maxOutputTokens,
    stop: request.stopSequences,
    seed: request.seed === undefined ? undefined : Number(request.seed),
  };
}

const ROLES = { [Role.SYSTEM]: "system", [Role.USER]: "user", [Role.ASSISTANT]: "assistant" } as const;

function toTurns({ role, parts }: Message): Turn[] {
  if (role === Role.TOOL)
    return parts.flatMap(({ kind }) => (kind.case === "toolResult" ? [toResultTurn(kind.value)] : []));
  if (role === Role.UNSPECIFIED) return [];
  return [{ role: ROLES[role], text: toText(parts), images: toImages(parts) }];
}

function toResultTurn({ parts }: ToolResult): Turn {
  return { role: "tool", text: toText(parts), images: toImages(parts) };
}

function toText(parts: readonly Part[]): string {
  const texts = parts.map(({ kind }) => {
    if (kind.case === "text") return kind.value;
    if (kind.case === "reasoning") return kind.value.text;
    return kind.case === "toolCall" ? `${kind.value.name} ${kind.value.input.value ?? ""}` : "";
  });
  return texts.filter(Boolean).join("\n");
}

function toImages(parts: readonly Part[]): ImageInput[] {
  return parts.flatMap(({ kind }) => (kind.case === "image" ? [toImage(kind.value)] : []));
}

function toImage({ source, mediaType }: Image): ImageInput {
  return source.case === "data"
    ? readImage(Buffer.from(source.value), mediaType)
    : referToImage(mediaType || undefined);
}

const MODES = {
  [ToolMode.UNSPECIFIED]: "auto",
  [ToolMode.AUTO]: "auto",
  [ToolMode.REQUIRED]: "required",
  [ToolMode.NONE]: "none",
} as const;

function toToolChoice({ toolChoice, parallelToolCalls }: CompletionRequest, toGiven: FunctionName): ToolChoice {
  const parallel = parallelToolCalls !== false;
  const { choice } = toolChoice ?? {};
  switch (choice?.case) {
    case "mode":
      return { mode: MODES[choice.value], parallel };
    case "allowed":
      return { mode: MODES[choice.value.mode], names: choice.value.names.map(toGiven), parallel };
    case "function":
    case "custom":
      return { mode: "required", names: [toGiven(choice.value)], parallel: false };
    default:
      return { mode: "auto", parallel };
  }
}

function toJson({ responseFormat }: CompletionRequest): Prompt["json"] {
  const format = responseFormat?.format;
  if (format?.case === "jsonSchema") return { schema: parsed(format.value.schemaJson) };
  return format?.case === "jsonObject" ? {} : undefined;
}

function parsed(json: string): unknown {
  return json === "" ? undefined : JSON.parse(json);
}
