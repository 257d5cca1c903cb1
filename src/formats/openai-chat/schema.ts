import { z } from "zod";
import {
  MAX_FALLBACKS,
  MAX_MESSAGES,
  MAX_PARTS,
  MAX_SAFETY_IDENTIFIER_CHARS,
  MAX_STOPS,
  MAX_TOOLS,
  METADATA,
  RANGES,
} from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";
import { message, type part, textPart } from "./message-schema.ts";
import { responseFormat, tool, toolChoice } from "./tool-schema.ts";

/*
 * The shape of requests to `/v1/chat/completions`, and the meaning of each field. Only types are checked here, and the length of lists
 * that cost much to translate. Core checks ranges and everything that depends on a model; ranges are repeated here only for the
 * documentation. Unknown keys are kept; `request.ts` reports them. `../shape.ts` reads requests by these schemas, and `openapi/`
 * generates the OpenAPI document from them.
 */

/** The largest count that the contract holds. */
export const INT32_MAX = 0x7fffffff;

const range = ([minimum, maximum]: readonly [number, number]) => ({ minimum, maximum });
const tokens = range([1, INT32_MAX]);
const passedOn = field(z.unknown().optional(), "Passed on to providers of the OpenAI dialect.");

const voice = z.union([z.string(), z.looseObject({ id: field(z.string(), "The provider’s ID of a voice.") })]);

/** The request body. */
export const chatRequest = field(
  z.looseObject({
    model: field(z.string(), "The model’s ID, as `GET /v1/models` lists it."),
    messages: field(z.array(message), "The conversation so far, oldest first.", {
      minItems: 1,
      maxItems: MAX_MESSAGES,
    }),
    fallback_models: optional(
      z.array(z.string()),
      "Models to try, in this order, when the first one’s provider is unavailable or fails before its first content. Duplicates and the model itself are ignored.",
      { maxItems: MAX_FALLBACKS },
    ),
    modalities: optional(
      z.array(z.enum(["text", "image", "audio"])),
      "What the answer may hold. `image` needs `text` beside it and a model that makes pictures; `audio` needs the field `audio`.",
      { default: ["text"] },
    ),
    max_tokens: optional(
      z.int(),
      "The most tokens to generate, reasoning included; at most the model’s `max_output_tokens`. For a fallback model with a smaller bound it is clamped, and listed in `parley.clamped`.",
      tokens,
    ),
    max_completion_tokens: optional(z.int(), "The same under OpenAI’s newer name. Wins over `max_tokens`.", tokens),
    temperature: optional(
      z.number(),
      "Randomness. Clamped, and listed in `parley.clamped`, for a provider with a smaller range.",
      { ...range(RANGES.temperature), default: 1 },
    ),
    top_p: optional(z.number(), "Nucleus sampling.", range(RANGES.top_p)),
    stream: optional(z.boolean(), "Whether to answer with server-sent events while the answer is made.", {
      default: false,
    }),
    stream_options: optional(
      z.looseObject({
        include_usage: optional(z.boolean(), "Whether one more chunk with `usage` ends the stream.", {
          default: false,
        }),
      }),
      "About streamed answers.",
    ),
    stop: optional(
      z.union([z.string(), z.array(z.string())]),
      `Texts that end the answer when they are generated: one, or up to ${MAX_STOPS}, none empty. The text itself is not returned.`,
    ),
    n: optional(z.int(), "How many choices to generate; more than 1 only where the provider can.", {
      ...range(RANGES.choice_count),
      default: 1,
    }),
    seed: optional(z.int(), "Asks for a repeatable answer, as far as the provider can give one."),
    frequency_penalty: optional(
      z.number(),
      "Lowers the chance of tokens by how often they were used.",
      range(RANGES.frequency_penalty),
    ),
    presence_penalty: optional(
      z.number(),
      "Lowers the chance of tokens that were used at all.",
      range(RANGES.presence_penalty),
    ),
    logit_bias: optional(
      z.record(z.string(), z.number()),
      "Added to a token’s logit, by the provider’s own token ID.",
      { additionalProperties: { type: "number", ...range(RANGES.logit_bias) } },
    ),
    logprobs: optional(z.boolean(), "Whether to return log probabilities of the generated tokens.", { default: false }),
    top_logprobs: optional(
      z.int(),
      "How many alternatives to return at each position. Needs `logprobs`.",
      range(RANGES["logprobs.top_count"]),
    ),
    tools: optional(z.array(tool).max(MAX_TOOLS), "Functions that the model may call."),
    tool_choice: optional(
      toolChoice,
      "Which tools the model should call: none, as it decides (`auto`), at least one (`required`), or those named.",
    ),
    parallel_tool_calls: optional(z.boolean(), "Whether the model may call several tools at once.", { default: true }),
    response_format: optional(responseFormat, "The form of the answer’s text. Default: free text."),
    reasoning_effort: optional(
      z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
      "How much the model should reason before it answers; mapped to the nearest level that it has. Default: the model’s own.",
    ),
    image_config: optional(
      z.looseObject({
        aspect_ratio: optional(z.string(), "Such as `1:1`, `16:9` or `9:16`."),
        image_size: optional(z.string(), "Such as `1K`, `2K` or `4K`."),
      }),
      "Wishes about generated pictures.",
    ),
    audio: optional(
      z.looseObject({
        format: field(z.string(), "`wav`, `aac`, `mp3`, `flac`, `opus` or `pcm16`."),
        voice: field(voice, "The provider’s name of a voice, or an object with its ID."),
      }),
      "The form of generated speech. Required with the modality `audio`.",
    ),
    user: optional(z.string(), "Your own ID of your end user, for providers that take one."),
    safety_identifier: optional(
      z.string(),
      "A stable, anonymous ID of the end user for the provider’s safety systems.",
      { maxLength: MAX_SAFETY_IDENTIFIER_CHARS },
    ),
    metadata: optional(
      z.record(z.string(), z.string()),
      `Your own labels. Keys have 1 to ${METADATA.maxKeyChars} characters.`,
      {
        maxProperties: METADATA.maxPairs,
        additionalProperties: { type: "string", maxLength: METADATA.maxValueChars },
        propertyNames: { minLength: 1, maxLength: METADATA.maxKeyChars },
      },
    ),
    service_tier: optional(
      z.string(),
      "The provider’s processing class, such as `auto`, `default`, `flex` or `priority`.",
    ),
    store: optional(z.boolean(), "Whether the provider may keep the completion."),
    verbosity: optional(z.enum(["low", "medium", "high"]), "How wordy the answer should be."),
    prediction: optional(
      z.looseObject({
        content: field(z.union([z.string(), z.array(textPart).max(MAX_PARTS)]), "The text, or parts of it."),
      }),
      "Text that much of the answer is expected to repeat.",
    ),
    prompt_cache_key: optional(
      z.string(),
      "Groups requests that share a long prefix, for the provider’s prompt cache.",
    ),
    prompt_cache_options: passedOn,
    prompt_cache_retention: passedOn,
    moderation: passedOn,
    web_search_options: passedOn,
    parley: optional(
      z.looseObject({
        strict: optional(
          z.boolean(),
          "Refuse with a 400 that names the field what would otherwise be left out or clamped. A fallback model that would have to do so is skipped.",
          { default: false },
        ),
      }),
      "What no field of the OpenAI format can say.",
    ),
  }),
  "What to complete, with which model, and how. A field may be `null`, which is the same as leaving it out. A field that the model’s provider cannot honour, or that nobody knows, is left out and named in the answer’s `parley.omitted`; with `parley.strict` it is refused.",
);

export type ChatRequest = z.output<typeof chatRequest>;
export type ChatMessage = z.output<typeof message>;
export type ChatPart = z.output<typeof part>;

/** The keys that the request, a message and a part may have. Other keys are reported as not honoured. */
export const KNOWN_REQUEST_KEYS: ReadonlySet<string> = new Set(Object.keys(chatRequest.shape));
export const KNOWN_MESSAGE_KEYS: ReadonlySet<string> = new Set(Object.keys(message.shape));
