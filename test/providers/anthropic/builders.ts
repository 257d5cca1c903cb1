import { create, type MessageInitShape } from "@bufbuild/protobuf";
import type { DurationSchema } from "@bufbuild/protobuf/wkt";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import {
  CacheMarkSchema,
  type FileSchema,
  ImageDetail,
  type MessageSchema,
  type PartSchema,
  type ReasoningSchema,
  Role,
  type ToolCallSchema,
} from "../../../gen/parley/v1/message_pb.js";
import type { ReasoningEffort, ReasoningOptionsSchema } from "../../../gen/parley/v1/reasoning_pb.js";
import type { ToolSchema } from "../../../gen/parley/v1/tool_pb.js";

export type MessageInit = MessageInitShape<typeof MessageSchema>;
export type ToolInit = MessageInitShape<typeof ToolSchema>;
export type PartInit = MessageInitShape<typeof PartSchema>;

/** A part of text. */
export const text = (value: string): PartInit => ({ kind: { case: "text", value } });

/** A part with a picture's bytes. */
export const image = (data: Uint8Array, detail = ImageDetail.UNSPECIFIED): PartInit => ({
  kind: { case: "image", value: { source: { case: "data", value: data }, detail } },
});

/** A part with a document. */
export const file = (value: MessageInitShape<typeof FileSchema>): PartInit => ({ kind: { case: "file", value } });

/** The same part or tool, marked as the end of a prefix worth caching, for the provider's default time without `ttl`. */
export const cached = <T extends PartInit | ToolInit>(marked: T, ttl?: MessageInitShape<typeof DurationSchema>): T => ({
  ...marked,
  cacheMark: create(CacheMarkSchema, ttl === undefined ? {} : { ttl }),
});

export const MINUTES = { seconds: 300n };
export const HOUR = { seconds: 3600n };

/** A part with a picture's address. */
export const imageUrl = (url: string): PartInit => ({
  kind: { case: "image", value: { source: { case: "url", value: url } } },
});

const said = (content: string | readonly PartInit[]): PartInit[] =>
  typeof content === "string" ? [text(content)] : [...content];

export const system = (content: string | readonly PartInit[]): MessageInit => ({
  role: Role.SYSTEM,
  parts: said(content),
});

export const user = (content: string | readonly PartInit[]): MessageInit => ({
  role: Role.USER,
  parts: said(content),
});

type Signed<T> = T & { readonly signature?: string };
export type ReasoningInit = Signed<Omit<MessageInitShape<typeof ReasoningSchema>, "$typeName">>;
export type CallInit = Signed<{ id: string; name: string; argumentsJson?: string; customInput?: string }>;

/** A part with reasoning. */
export const reasoning = ({ signature = "", ...value }: ReasoningInit): PartInit => ({
  kind: { case: "reasoning", value },
  signature,
});

/** A part with a tool call. */
export const call = ({ id, name, argumentsJson, customInput, signature = "" }: CallInit): PartInit => {
  const input: MessageInitShape<typeof ToolCallSchema>["input"] =
    customInput === undefined
      ? { case: "argumentsJson", value: argumentsJson ?? "" }
      : { case: "customInput", value: customInput };
  return { kind: { case: "toolCall", value: { id, name, input } }, signature };
};

/** An assistant message: its reasoning, then `content`, then its calls. Without `content` it only called tools. */
export const assistant = (
  content: string | readonly PartInit[] | undefined,
  more: { readonly calls?: readonly CallInit[]; readonly reasoning?: readonly ReasoningInit[] } = {},
): MessageInit => ({
  role: Role.ASSISTANT,
  parts: [
    ...(more.reasoning ?? []).map(reasoning),
    ...(content === undefined ? [] : said(content)),
    ...(more.calls ?? []).map(call),
  ],
});

/** A part with the result of a call. */
export const result = (toolCallId: string, content: string | readonly PartInit[], isError = false): PartInit => ({
  kind: { case: "toolResult", value: { toolCallId, parts: said(content), isError } },
});

/** A tool message with one result. */
export const toolResult = (toolCallId: string, content: string | readonly PartInit[]): MessageInit => ({
  role: Role.TOOL,
  parts: [result(toolCallId, content)],
});

/** A function tool; `parameters` is a JSON schema. */
export const tool = (
  name: string,
  parameters?: object,
  more: { description?: string; strict?: boolean } = {},
): ToolInit => ({
  kind: {
    case: "function",
    value: { name, parametersJson: parameters === undefined ? "" : JSON.stringify(parameters), ...more },
  },
});

export const WEATHER_SCHEMA = {
  type: "object",
  properties: { city: { type: "string" } },
  required: ["city"],
  additionalProperties: false,
};

export const WEATHER = tool("get_weather", WEATHER_SCHEMA, { description: "Current weather for a city" });
export const TIME = tool("get_time", { type: "object", properties: {} }, { description: "Current time, no arguments" });

/** A request; without messages it says hi. */
export function request(init: MessageInitShape<typeof CompletionRequestSchema>): CompletionRequest {
  return create(CompletionRequestSchema, { messages: [user("hi")], ...init });
}

/** Asks for an effort of reasoning. */
export const effort = (value: ReasoningEffort): MessageInitShape<typeof ReasoningOptionsSchema> => ({
  effort: value,
});

/** Asks for a number of tokens for reasoning. */
export const budget = (value: number): MessageInitShape<typeof ReasoningOptionsSchema> => ({
  maxTokens: value,
});

/** A picture of one pixel. */
export const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** Reasoning that can be sent back. */
export const SIGNED = { text: "Need the tool.", signature: "EqQBsigFixture==" };

/** A call of WEATHER. */
export const PARIS = { id: "toolu_01Paris", name: "get_weather", argumentsJson: '{"city":"Paris"}' };
