import * as z from "zod";

const text = z.looseObject({ type: z.literal("text"), text: z.string() });
const refusal = z.looseObject({ type: z.literal("refusal"), refusal: z.string() });
const image = z.looseObject({
  type: z.literal("image_url"),
  image_url: z.looseObject({ url: z.string(), detail: z.enum(["auto", "low", "high", "original"]).nullish() }),
});
const audio = z.looseObject({ type: z.literal("input_audio"), input_audio: z.looseObject({ data: z.string() }) });
const file = z.looseObject({ type: z.literal("file"), file: z.looseObject({}) });

const instruction = z.union([z.string(), z.array(text)]);

const toolCall = z.looseObject({
  id: z.string().max(40),
  type: z.literal("function"),
  function: z.looseObject({ name: z.string(), arguments: z.string() }),
});

const message = z.discriminatedUnion("role", [
  z.looseObject({ role: z.literal("developer"), content: instruction }),
  z.looseObject({ role: z.literal("system"), content: instruction }),
  z.looseObject({
    role: z.literal("user"),
    content: z.union([z.string(), z.array(z.discriminatedUnion("type", [text, image, audio, file]))]),
  }),
  z.looseObject({
    role: z.literal("assistant"),
    content: z.union([z.string(), z.array(z.discriminatedUnion("type", [text, refusal]))]).nullish(),
    tool_calls: z.array(toolCall).nullish(),
  }),
  z.looseObject({ role: z.literal("tool"), content: instruction, tool_call_id: z.string() }),
]);

const functionName = z.looseObject({ name: z.string() });

const tool = z.strictObject({
  type: z.literal("function"),
  function: z.strictObject({
    name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/u, "Expected a string that matches the pattern '^[a-zA-Z0-9_-]+$'."),
    description: z.string().nullish(),
    parameters: z.record(z.string(), z.unknown()).nullish(),
    strict: z.boolean().nullish(),
  }),
});

const toolChoice = z.union([
  z.enum(["none", "auto", "required"]),
  z.looseObject({ type: z.literal("function"), function: functionName }),
  z.looseObject({
    type: z.literal("allowed_tools"),
    allowed_tools: z.looseObject({
      mode: z.enum(["auto", "required"]),
      tools: z.array(z.looseObject({ function: functionName })),
    }),
  }),
]);

const responseFormat = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("text") }),
  z.strictObject({ type: z.literal("json_object") }),
  z.strictObject({
    type: z.literal("json_schema"),
    json_schema: z.strictObject({
      name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/u),
      description: z.string().nullish(),
      schema: z.looseObject({}).nullish(),
      strict: z.boolean().nullish(),
    }),
  }),
]);

/** Body of `POST /v1/chat/completions`. Unknown fields are rejected at the top level and ignored inside messages. */
export const chatSchema = z.strictObject({
  model: z.string().min(1),
  messages: z.array(message),
  max_completion_tokens: z.int().min(1).nullish(),
  max_tokens: z.int().min(1).nullish(),
  temperature: z.number().min(0).max(2).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  n: z.int().min(1).max(128).nullish(),
  stop: z.union([z.string(), z.array(z.string())]).nullish(),
  stream: z.boolean().nullish(),
  stream_options: z
    .strictObject({ include_usage: z.boolean().nullish(), include_obfuscation: z.boolean().nullish() })
    .nullish(),
  presence_penalty: z.number().min(-2).max(2).nullish(),
  frequency_penalty: z.number().min(-2).max(2).nullish(),
  logit_bias: z.record(z.string(), z.number().min(-100).max(100)).nullish(),
  logprobs: z.boolean().nullish(),
  top_logprobs: z.int().min(0).max(20).nullish(),
  seed: z.int().nullish(),
  tools: z.array(tool).nullish(),
  tool_choice: toolChoice.nullish(),
  parallel_tool_calls: z.boolean().nullish(),
  response_format: responseFormat.nullish(),
  reasoning_effort: z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]).nullish(),
  verbosity: z.enum(["low", "medium", "high"]).nullish(),
  modalities: z.array(z.enum(["text", "audio"])).nullish(),
  audio: z.unknown().optional(),
  prediction: z.unknown().optional(),
  metadata: z.record(z.string(), z.string()).nullish(),
  store: z.boolean().nullish(),
  service_tier: z.string().nullish(),
  prompt_cache_key: z.string().nullish(),
  prompt_cache_options: z.unknown().optional(),
  prompt_cache_retention: z.string().nullish(),
  safety_identifier: z.string().max(128).nullish(),
  user: z.string().nullish(),
  moderation: z.unknown().optional(),
  web_search_options: z.unknown().optional(),
  functions: z.unknown().optional(),
  function_call: z.unknown().optional(),
});

export type ChatBody = z.infer<typeof chatSchema>;
export type ChatMessage = z.infer<typeof message>;
