import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import {
  CacheMarkSchema,
  type ContentPartSchema,
  type FileSchema,
  type MessageSchema,
  type ReasoningBlockSchema,
  Role,
  type ToolCallSchema,
  type ToolSchema,
} from "../../../gen/parley/v1/message_pb.js";

export type MessageInit = MessageInitShape<typeof MessageSchema>;
export type ToolInit = MessageInitShape<typeof ToolSchema>;
export type PartInit = MessageInitShape<typeof ContentPartSchema>;

/** A part of text. */
export const text = (value: string): PartInit => ({ content: { case: "text", value } });

/** A part with a picture's bytes. */
export const image = (data: Uint8Array, detail = ""): PartInit => ({
  content: { case: "image", value: { source: { case: "data", value: data }, detail } },
});

/** A part with a document. */
export const file = (value: MessageInitShape<typeof FileSchema>): PartInit => ({ content: { case: "file", value } });

/** The same part, message or tool, marked as the end of a prefix worth caching. */
export const cached = <T extends PartInit | MessageInit | ToolInit>(marked: T, ttl = ""): T => ({
  ...marked,
  cacheMark: create(CacheMarkSchema, { ttl }),
});

/** A part with a picture's address. */
export const imageUrl = (url: string): PartInit => ({
  content: { case: "image", value: { source: { case: "url", value: url } } },
});

const said = (content: string | readonly PartInit[]): PartInit[] =>
  typeof content === "string" ? [text(content)] : [...content];

export const system = (content: string | readonly PartInit[]): MessageInit => ({
  role: Role.SYSTEM,
  content: said(content),
});

export const user = (content: string | readonly PartInit[]): MessageInit => ({
  role: Role.USER,
  content: said(content),
});

/** An assistant message; without `content` it only called tools. */
export const assistant = (
  content: string | readonly PartInit[] | undefined,
  more: {
    toolCalls?: MessageInitShape<typeof ToolCallSchema>[];
    reasoning?: MessageInitShape<typeof ReasoningBlockSchema>[];
    refusal?: string;
    cacheMark?: MessageInitShape<typeof CacheMarkSchema>;
  } = {},
): MessageInit => ({ role: Role.ASSISTANT, content: content === undefined ? [] : said(content), ...more });

export const toolResult = (toolCallId: string, content: string | readonly PartInit[]): MessageInit => ({
  role: Role.TOOL,
  toolCallId,
  content: said(content),
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

/** A picture of one pixel. */
export const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);

/** Reasoning that can be sent back. */
export const SIGNED = { text: "Need the tool.", signature: "EqQBsigFixture==" };

/** A call of WEATHER. */
export const PARIS = { id: "toolu_01Paris", name: "get_weather", arguments: '{"city":"Paris"}' };
