import { z } from "zod";
import { MAX_PARTS, MAX_REASONING_BLOCKS, MAX_TOOL_CALLS, MAX_TOOLS } from "../../core/validate.ts";

/*
 * The shape of what OpenAI clients send to `/v1/chat/completions`. Only types are checked here, and the
 * length of lists that cost much to translate; ranges and everything that needs a model is core's. `null` means "not given"
 * wherever OpenAI's own clients may send it. Unknown keys are kept: `request.ts` reports them. `shape.ts` reads requests by
 * these schemas, and `openapi/` tells the world of them.
 */

const optional = <T extends z.ZodType>(type: T) => type.nullish();
const integer = z.int();

export const cacheControl = z.looseObject({ type: optional(z.string()), ttl: optional(z.string()) });

export const textPart = z.looseObject({
  type: z.literal("text"),
  text: z.string(),
  cache_control: optional(cacheControl),
});
export const refusalPart = z.looseObject({ type: z.literal("refusal"), refusal: z.string() });
export const thoughtSignature = z.looseObject({
  google: optional(z.looseObject({ thought_signature: optional(z.string()) })),
});
export const imagePart = z.looseObject({
  type: z.literal("image_url"),
  image_url: z.union([z.string(), z.looseObject({ url: z.string(), detail: optional(z.string()) })]),
  cache_control: optional(cacheControl),
  extra_content: optional(thoughtSignature),
});
export const audioPart = z.looseObject({
  type: z.literal("input_audio"),
  input_audio: z.looseObject({ data: z.string(), format: z.string() }),
  cache_control: optional(cacheControl),
});
export const filePart = z.looseObject({
  type: z.literal("file"),
  file: z.looseObject({
    filename: optional(z.string()),
    file_data: optional(z.string()),
    file_id: optional(z.string()),
  }),
  cache_control: optional(cacheControl),
});

export const part = z.discriminatedUnion("type", [textPart, imagePart, audioPart, filePart, refusalPart]);

export const functionCall = z.looseObject({
  id: z.string(),
  type: z.literal("function"),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
  extra_content: optional(thoughtSignature),
});
export const customCall = z.looseObject({
  id: z.string(),
  type: z.literal("custom"),
  custom: z.looseObject({ name: z.string(), input: z.string() }),
});
const toolCall = z.discriminatedUnion("type", [functionCall, customCall]);

export const thinkingBlock = z.looseObject({
  type: z.enum(["thinking", "redacted_thinking"]),
  thinking: optional(z.string()),
  signature: optional(z.string()),
  data: optional(z.string()),
  at: optional(z.looseObject({ text: optional(integer), tools: optional(integer) })),
});

export const message = z.looseObject({
  role: z.enum(["system", "developer", "user", "assistant", "tool"]),
  content: optional(z.union([z.string(), z.array(part).max(MAX_PARTS)])),
  name: optional(z.string()),
  refusal: optional(z.string()),
  tool_calls: optional(z.array(toolCall).max(MAX_TOOL_CALLS)),
  tool_call_id: optional(z.string()),
  audio: optional(z.looseObject({ id: z.string() })),
  reasoning_content: optional(z.string()),
  thinking_blocks: optional(z.array(thinkingBlock).max(MAX_REASONING_BLOCKS)),
  extra_content: optional(thoughtSignature),
  images: optional(z.array(imagePart).max(MAX_PARTS)),
  annotations: z.unknown().optional(),
  cache_control: optional(cacheControl),
});

export const functionTool = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({
    name: z.string(),
    description: optional(z.string()),
    parameters: optional(z.record(z.string(), z.unknown())),
    strict: optional(z.boolean()),
  }),
  cache_control: optional(cacheControl),
});
export const customTool = z.looseObject({
  type: z.literal("custom"),
  custom: z.looseObject({ name: z.string(), description: optional(z.string()), format: z.unknown().optional() }),
});
const tool = z.discriminatedUnion("type", [functionTool, customTool]);

export const namedFunction = z.looseObject({
  type: z.literal("function"),
  function: z.looseObject({ name: z.string() }),
});
export const namedCustom = z.looseObject({ type: z.literal("custom"), custom: z.looseObject({ name: z.string() }) });

export const allowedTools = z.looseObject({
  type: z.literal("allowed_tools"),
  allowed_tools: z.looseObject({
    mode: z.enum(["auto", "required"]),
    tools: z.array(z.union([namedFunction, namedCustom])).max(MAX_TOOLS),
  }),
});

const toolChoice = z.union([z.enum(["none", "auto", "required"]), namedFunction, namedCustom, allowedTools]);

export const textFormat = z.looseObject({ type: z.literal("text") });
export const jsonObjectFormat = z.looseObject({ type: z.literal("json_object") });
export const jsonSchemaFormat = z.looseObject({
  type: z.literal("json_schema"),
  json_schema: z.looseObject({
    name: z.string(),
    description: optional(z.string()),
    schema: optional(z.record(z.string(), z.unknown())),
    strict: optional(z.boolean()),
  }),
});
const responseFormat = z.discriminatedUnion("type", [textFormat, jsonObjectFormat, jsonSchemaFormat]);

/** The request body. */
export const chatRequest = z.looseObject({
  model: z.string(),
  messages: z.array(message),
  fallback_models: optional(z.array(z.string())),
  modalities: optional(z.array(z.enum(["text", "image", "audio"]))),
  max_tokens: optional(integer),
  max_completion_tokens: optional(integer),
  temperature: optional(z.number()),
  top_p: optional(z.number()),
  stream: optional(z.boolean()),
  stream_options: optional(z.looseObject({ include_usage: optional(z.boolean()) })),
  stop: optional(z.union([z.string(), z.array(z.string())])),
  n: optional(integer),
  seed: optional(integer),
  frequency_penalty: optional(z.number()),
  presence_penalty: optional(z.number()),
  logit_bias: optional(z.record(z.string(), z.number())),
  logprobs: optional(z.boolean()),
  top_logprobs: optional(integer),
  tools: optional(z.array(tool).max(MAX_TOOLS)),
  tool_choice: optional(toolChoice),
  parallel_tool_calls: optional(z.boolean()),
  response_format: optional(responseFormat),
  reasoning_effort: optional(z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"])),
  image_config: optional(z.looseObject({ aspect_ratio: optional(z.string()), image_size: optional(z.string()) })),
  audio: optional(
    z.looseObject({ format: z.string(), voice: z.union([z.string(), z.looseObject({ id: z.string() })]) }),
  ),
  user: optional(z.string()),
  safety_identifier: optional(z.string()),
  metadata: optional(z.record(z.string(), z.string())),
  service_tier: optional(z.string()),
  store: optional(z.boolean()),
  verbosity: optional(z.string()),
  prediction: optional(z.looseObject({ content: z.union([z.string(), z.array(textPart).max(MAX_PARTS)]) })),
  prompt_cache_key: optional(z.string()),
  prompt_cache_options: z.unknown().optional(),
  prompt_cache_retention: z.unknown().optional(),
  moderation: z.unknown().optional(),
  web_search_options: z.unknown().optional(),
  parley: optional(z.looseObject({ strict: optional(z.boolean()) })),
});

export type ChatRequest = z.output<typeof chatRequest>;
export type ChatMessage = z.output<typeof message>;
export type ChatPart = z.output<typeof part>;

/** The keys that the request, a message and a part may have: what else comes is reported as not honoured. */
export const KNOWN_REQUEST_KEYS: ReadonlySet<string> = new Set(Object.keys(chatRequest.shape));
export const KNOWN_MESSAGE_KEYS: ReadonlySet<string> = new Set(Object.keys(message.shape));
