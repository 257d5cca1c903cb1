import * as z from "zod";

const cacheControl = z.strictObject({ type: z.literal("ephemeral"), ttl: z.enum(["5m", "1h"]).optional() }).nullish();

const text = z.strictObject({
  type: z.literal("text"),
  text: z.string(),
  cache_control: cacheControl,
  citations: z.array(z.unknown()).nullish(),
});

const base64Source = z.strictObject({ type: z.literal("base64"), media_type: z.string(), data: z.string() });
const urlSource = z.strictObject({ type: z.literal("url"), url: z.string() });
const fileSource = z.strictObject({ type: z.literal("file"), file_id: z.string() });

const image = z.strictObject({
  type: z.literal("image"),
  source: z.discriminatedUnion("type", [
    base64Source.extend({ media_type: z.enum(["image/jpeg", "image/png", "image/gif", "image/webp"]) }),
    urlSource,
    fileSource,
  ]),
  cache_control: cacheControl,
});

const document = z.strictObject({
  type: z.literal("document"),
  source: z.discriminatedUnion("type", [
    base64Source,
    urlSource,
    fileSource,
    z.strictObject({ type: z.literal("text"), media_type: z.literal("text/plain"), data: z.string() }),
    z.strictObject({ type: z.literal("content"), content: z.unknown() }),
  ]),
  title: z.string().nullish(),
  context: z.string().nullish(),
  citations: z.unknown().optional(),
  cache_control: cacheControl,
});

const toolUse = z.strictObject({
  type: z.literal("tool_use"),
  id: z.string().regex(/^[a-zA-Z0-9_-]+$/u, "String should match pattern '^[a-zA-Z0-9_-]+$'"),
  name: z.string(),
  input: z.record(z.string(), z.unknown()),
  cache_control: cacheControl,
  caller: z.unknown().optional(),
});

const toolResult = z.strictObject({
  type: z.literal("tool_result"),
  tool_use_id: z.string(),
  content: z.union([z.string(), z.array(z.discriminatedUnion("type", [text, image, document]))]).optional(),
  is_error: z.boolean().nullish(),
  cache_control: cacheControl,
});

const thinking = z.strictObject({ type: z.literal("thinking"), thinking: z.string(), signature: z.string() });
const redactedThinking = z.strictObject({ type: z.literal("redacted_thinking"), data: z.string() });

const block = z.discriminatedUnion("type", [text, image, document, toolUse, toolResult, thinking, redactedThinking]);

const message = z.strictObject({
  role: z.enum(["user", "assistant", "system"]),
  content: z.union([z.string(), z.array(block)]),
});

const tool = z.strictObject({
  type: z.literal("custom").nullish(),
  name: z.string().regex(/^[a-zA-Z0-9_-]{1,64}$/u, "String should match pattern '^[a-zA-Z0-9_-]{1,64}$'"),
  description: z.string().optional(),
  input_schema: z.looseObject({ type: z.literal("object") }),
  strict: z.boolean().nullish(),
  cache_control: cacheControl,
  defer_loading: z.boolean().optional(),
  eager_input_streaming: z.boolean().nullish(),
  input_examples: z.array(z.unknown()).optional(),
});

const parallel = { disable_parallel_tool_use: z.boolean().optional() };

const toolChoice = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("auto"), ...parallel }),
  z.strictObject({ type: z.literal("any"), ...parallel }),
  z.strictObject({ type: z.literal("tool"), name: z.string(), ...parallel }),
  z.strictObject({ type: z.literal("none") }),
]);

const display = z.enum(["summarized", "omitted"]).nullish();

/** Accepted only with a beta header, which `checkThinking` verifies. */
const bindingControls = {
  block_binding: z.strictObject({ prefix_mismatch_behavior: z.enum(["error", "drop_block"]).optional() }).optional(),
};

const thinkingMode = z.discriminatedUnion("type", [
  z.strictObject({ type: z.literal("enabled"), budget_tokens: z.int().min(1024), display, ...bindingControls }),
  z.strictObject({ type: z.literal("adaptive"), display, ...bindingControls }),
  z.strictObject({ type: z.literal("between_tools") }),
  z.strictObject({ type: z.literal("disabled") }),
]);

/** Body of `POST /v1/messages` in API version 2023-06-01. Unknown fields are rejected. */
export const messagesSchema = z.strictObject({
  model: z.string().min(1),
  messages: z.array(message).max(100_000),
  max_tokens: z.int().min(0),
  system: z.union([z.string(), z.array(text)]).optional(),
  stop_sequences: z.array(z.string()).nullish(),
  stream: z.boolean().nullish(),
  temperature: z.number().min(0).max(1).nullish(),
  top_p: z.number().min(0).max(1).nullish(),
  top_k: z.int().min(0).nullish(),
  thinking: thinkingMode.nullish(),
  output_config: z
    .strictObject({
      effort: z.enum(["low", "medium", "high", "xhigh", "max"]).nullish(),
      format: z.strictObject({ type: z.literal("json_schema"), schema: z.looseObject({}) }).nullish(),
    })
    .optional(),
  tools: z.array(tool).optional(),
  tool_choice: toolChoice.optional(),
  metadata: z.strictObject({ user_id: z.string().nullish() }).optional(),
  service_tier: z.enum(["auto", "standard_only"]).optional(),
  cache_control: cacheControl,
  speed: z.enum(["standard", "fast"]).nullish(),
  inference_geo: z.string().nullish(),
  container: z.unknown().optional(),
  diagnostics: z.unknown().optional(),
  context_management: z.unknown().optional(),
});

export type MessagesBody = z.infer<typeof messagesSchema>;
export type MessageBody = z.infer<typeof message>;
export type Block = z.infer<typeof block>;
