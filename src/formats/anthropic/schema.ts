import { z } from "zod";
import { MAX_FALLBACKS, MAX_INT32, MAX_MESSAGES, MAX_PARTS, MAX_TOOLS, RANGES } from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";
import { block, cacheControl, cacheMark, textBlock } from "./block-schema.ts";

/*
 * The shape of requests of the Messages API, and the meaning of each field. Only types are checked here, and the length of lists that
 * cost much to translate; core checks ranges and everything that depends on a model. Unknown keys are kept; `request.ts` reports them.
 */

const tokens = { minimum: 1, maximum: MAX_INT32 };

export const message = field(
  z.looseObject({
    role: field(
      z.enum(["user", "assistant", "system"]),
      "Who speaks. `system` may stand anywhere: an instruction from there on.",
    ),
    content: field(z.union([z.string(), z.array(block).max(MAX_PARTS)]), "What is said: a text, or blocks."),
  }),
  "One turn of a conversation. Turns of one role may follow each other.",
);

const schemaOf = (description: string) => field(z.record(z.string(), z.unknown()), description);

export const customTool = field(
  z.looseObject({
    type: optional(z.literal("custom"), "`custom`, the default."),
    name: field(z.string(), "1 to 64 letters, digits, `_` or `-`."),
    description: optional(z.string(), "What it does and when to call it, told to the model."),
    input_schema: schemaOf("The JSON schema of its input."),
    strict: optional(z.boolean(), "Whether the provider must enforce the schema exactly."),
    cache_control: cacheMark,
  }),
  "A tool of the caller’s own.",
);
export const serverTool = field(
  z.looseObject({
    type: field(z.string(), "Such as `web_search_20250305`."),
    cache_control: cacheMark,
  }),
  "A tool that the provider runs itself. Passed on to providers of this dialect where the key and the provider’s configuration allow it (`provider_tools`), and left out otherwise.",
);

const isParallelDisabled = optional(z.boolean(), "Allows at most one call at once.");
const toolChoices = {
  auto: z.looseObject({ type: z.literal("auto"), disable_parallel_tool_use: isParallelDisabled }),
  any: z.looseObject({ type: z.literal("any"), disable_parallel_tool_use: isParallelDisabled }),
  tool: z.looseObject({
    type: z.literal("tool"),
    name: field(z.string(), "Its name, one of `tools`."),
    disable_parallel_tool_use: isParallelDisabled,
  }),
  none: z.looseObject({ type: z.literal("none") }),
};
const toolChoice = z.discriminatedUnion("type", [
  toolChoices.auto,
  toolChoices.any,
  toolChoices.tool,
  toolChoices.none,
]);

const outputFormat = field(
  z.looseObject({ type: z.literal("json_schema"), schema: schemaOf("The JSON schema.") }),
  "JSON that satisfies a schema.",
);

const thinking = z.looseObject({
  type: field(
    z.enum(["enabled", "adaptive", "disabled", "between_tools"]),
    "`adaptive`: the model decides; see `output_config.effort`.",
  ),
  budget_tokens: optional(z.number(), "With `enabled`: tokens for reasoning, part of `max_tokens`."),
  display: optional(z.string(), "`omitted`: the answer has the signatures of the reasoning, and no text of it."),
});

const read = {
  model: field(z.string(), "The model’s ID, as `GET /v1/models` lists it."),
  messages: field(z.array(message), "The conversation so far, oldest first.", { minItems: 1, maxItems: MAX_MESSAGES }),
  max_tokens: optional(
    z.int(),
    "The most tokens to generate, reasoning included; at most the model’s own bound. Default: the model’s.",
    tokens,
  ),
  system: optional(z.union([z.string(), z.array(textBlock).max(MAX_PARTS)]), "Instructions from the application."),
  fallback_models: optional(
    z.array(z.string()),
    "Extension: models to try, in this order, when the first one’s provider is unavailable or fails before its first content.",
    { maxItems: MAX_FALLBACKS },
  ),
  stream: optional(z.boolean(), "Whether to answer with server-sent events while the answer is made.", {
    default: false,
  }),
  temperature: optional(z.number(), "Randomness.", { minimum: RANGES.temperature[0], maximum: RANGES.temperature[1] }),
  top_p: optional(z.number(), "Nucleus sampling.", { minimum: RANGES.top_p[0], maximum: RANGES.top_p[1] }),
  top_k: optional(z.int(), "Sample only from the K most likely tokens.", tokens),
  stop_sequences: optional(
    z.array(z.string()),
    "Texts that end the answer when they are generated. The first four count; further ones are listed in `parley.omitted`.",
  ),
  thinking: optional(thinking, "How much to reason before the answer. Default: the model’s own."),
  output_config: optional(
    z.looseObject({
      effort: optional(
        z.enum(["low", "medium", "high", "xhigh", "max"]),
        "How much to reason; wins over a budget. Mapped to the nearest level that the model has.",
      ),
      format: optional(outputFormat, "The form of the answer’s text. Default: free text."),
    }),
    "The form of the answer.",
  ),
  output_format: optional(outputFormat, "The older place of `output_config.format`."),
  tools: optional(
    z.array(z.union([z.discriminatedUnion("type", [customTool]), serverTool])).max(MAX_TOOLS),
    "Tools that the model may call. An empty list is the same as none.",
  ),
  tool_choice: optional(toolChoice, "Which tools the model should call. Default: it decides."),
  metadata: optional(
    z.looseObject({ user_id: optional(z.string(), "Your own ID of your end user, for providers that take one.") }),
    "About the request.",
  ),
  service_tier: optional(z.string(), "`auto` or `standard_only`."),
  cache_control: optional(cacheControl, "Marks the end of the conversation as that of a prefix worth caching."),
  thread: field(
    z.unknown().optional(),
    "Refused: the gateway keeps no conversations. The refusal makes official clients send the whole conversation.",
  ),
  parley: optional(
    z.looseObject({
      strict: optional(
        z.boolean(),
        "Refuse with a 400 that names the field what would otherwise be left out or clamped.",
        { default: false },
      ),
    }),
    "Extension: what no field of this format can say.",
  ),
};

/** The request body. */
export const messagesRequest = field(
  z.looseObject(read),
  "What to complete, with which model, and how. A field may be `null`, which is the same as leaving it out. A field that the model’s provider cannot honour, or that nobody knows, is left out and named in the answer’s `parley.omitted`; with `parley.strict` it is refused.",
);

export type MessagesRequest = z.output<typeof messagesRequest>;
export type MessageParam = z.output<typeof message>;
export type ToolParam = NonNullable<MessagesRequest["tools"]>[number];
export type CustomTool = z.output<typeof customTool>;

/** The keys that a request and parts of it may have. Other keys are reported as not honoured. */
export const KNOWN_KEYS = {
  request: keysOf(messagesRequest),
  message: keysOf(message),
  thinking: keysOf(thinking),
  outputConfig: new Set(["effort", "format"]),
  outputFormat: keysOf(outputFormat),
  tool: keysOf(customTool),
  metadata: new Set(["user_id"]),
  parley: new Set(["strict"]),
  toolChoice: {
    auto: keysOf(toolChoices.auto),
    any: keysOf(toolChoices.any),
    tool: keysOf(toolChoices.tool),
    none: keysOf(toolChoices.none),
  },
} as const satisfies Record<string, ReadonlySet<string> | Readonly<Record<string, ReadonlySet<string>>>>;

function keysOf({ shape }: { readonly shape: object }): ReadonlySet<string> {
  return new Set(Object.keys(shape));
}
