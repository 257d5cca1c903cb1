/*
 * Types of the sent requests: the used parts of OpenAI's chat completion request. Undefined fields are omitted in JSON.
 * Responses have no types: they are read field by field with `../wire/json.ts`.
 */

/** The body of `POST /chat/completions`. */
export interface OpenAiRequest {
  model: string;
  messages: OpenAiMessage[];
  stream?: true | undefined;
  stream_options?: { include_usage: true } | undefined;
  max_tokens?: number | undefined;
  max_completion_tokens?: number | undefined;
  temperature?: number | undefined;
  top_p?: number | undefined;
  n?: number | undefined;
  stop?: string[] | undefined;
  seed?: number | undefined;
  frequency_penalty?: number | undefined;
  presence_penalty?: number | undefined;
  logit_bias?: Record<string, number> | undefined;
  logprobs?: true | undefined;
  top_logprobs?: number | undefined;
  tools?: OpenAiTool[] | undefined;
  tool_choice?: OpenAiToolChoice | undefined;
  parallel_tool_calls?: false | undefined;
  response_format?: OpenAiResponseFormat | undefined;
  reasoning_effort?: string | undefined;
  verbosity?: string | undefined;
  modalities?: string[] | undefined;
  audio?: { format: string; voice: string } | undefined;
  image_config?: { aspect_ratio?: string | undefined; image_size?: string | undefined } | undefined;
  prediction?: { type: "content"; content: string } | undefined;
  user?: string | undefined;
  safety_identifier?: string | undefined;
  metadata?: Record<string, string> | undefined;
  service_tier?: string | undefined;
  store?: boolean | undefined;
  prompt_cache_key?: string | undefined;
  moderation?: unknown;
  prompt_cache_options?: unknown;
  prompt_cache_retention?: unknown;
  web_search_options?: unknown;
}

/** The body of `POST /embeddings`. */
export interface OpenAiEmbeddingRequest {
  model: string;
  input: readonly string[];
  encoding_format: "base64";
  dimensions?: number | undefined;
  user?: string | undefined;
}

/** A message. */
export type OpenAiMessage = OpenAiSystemMessage | OpenAiUserMessage | OpenAiAssistantMessage | OpenAiToolMessage;

interface OpenAiSystemMessage {
  role: "system";
  content: OpenAiContent;
  name?: string | undefined;
}

interface OpenAiUserMessage {
  role: "user";
  content: OpenAiContent;
  name?: string | undefined;
}

export interface OpenAiAssistantMessage {
  role: "assistant";
  content: OpenAiContent | null;
  name?: string | undefined;
  refusal?: string | undefined;
  audio?: { id: string } | undefined;
  tool_calls?: OpenAiToolCall[] | undefined;
  reasoning_content?: string | undefined;
  extra_content?: OpenAiExtraContent | undefined;
}

interface OpenAiToolMessage {
  role: "tool";
  tool_call_id: string;
  content: OpenAiContent;
}

/** Text or parts. */
export type OpenAiContent = string | OpenAiPart[];

export type OpenAiPart =
  | { type: "text"; text: string }
  | { type: "image_url"; image_url: { url: string; detail?: string | undefined } }
  | { type: "input_audio"; input_audio: { data: string; format: string } }
  | {
      type: "file";
      file: { filename?: string | undefined; file_data?: string | undefined; file_id?: string | undefined };
    };

/** State of some servers that must be sent back with a call or text. */
export interface OpenAiExtraContent {
  google: { thought_signature: string };
}

export type OpenAiToolCall = { id: string; extra_content?: OpenAiExtraContent | undefined } & (
  | { type: "function"; function: { name: string; arguments: string } }
  | { type: "custom"; custom: { name: string; input: string } }
);

export type OpenAiTool =
  | {
      type: "function";
      function: { name: string; description?: string | undefined; parameters?: unknown; strict?: boolean | undefined };
    }
  | { type: "custom"; custom: { name: string; description?: string | undefined; format?: unknown } };

/** A reference to a tool by name. */
export type OpenAiToolName =
  | { type: "function"; function: { name: string } }
  | { type: "custom"; custom: { name: string } };

export type OpenAiToolChoice =
  | "auto"
  | "none"
  | "required"
  | OpenAiToolName
  | { type: "allowed_tools"; allowed_tools: { mode: "auto" | "required"; tools: OpenAiToolName[] } };

export type OpenAiResponseFormat =
  | { type: "json_object" }
  | {
      type: "json_schema";
      json_schema: { name: string; description?: string | undefined; schema?: unknown; strict?: boolean | undefined };
    };
