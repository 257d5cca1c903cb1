import { z } from "zod";
import {
  MAX_FALLBACKS,
  MAX_INT32,
  MAX_MESSAGES,
  MAX_SAFETY_IDENTIFIER_CHARS,
  METADATA,
  RANGES,
} from "../../core/validate.ts";
import { field, optional } from "../schema-field.ts";
import { item } from "./item-schema.ts";
import { format, tool, toolChoice } from "./tool-schema.ts";

/*
 * The shape of requests of OpenAI's Responses API. Only types and the length of lists are checked here; core checks ranges and everything
 * that depends on a model. Unknown keys are kept; `request.ts` reports them.
 */

/** Limit of items: a message may consist of several, such as a call and the reasoning before it. */
const MAX_ITEMS = 4 * MAX_MESSAGES;
/** Limit of entries of `include`. */
const MAX_INCLUDED = 64;
/** Limit of tools and namespaces together. Core has the limit of tools. */
const MAX_GIVEN_TOOLS = 2000;

const range = ([minimum, maximum]: readonly [number, number]) => ({ minimum, maximum });
const passedOn = field(z.unknown().optional(), "Passed on to providers of the OpenAI dialect.");
const refused = (why: string) => field(z.unknown().optional(), `Refused: ${why}.`);
const omitted = field(z.unknown().optional(), "Left out, and listed in `parley.omitted`.");

/** The request body. */
export const responsesRequest = field(
  z.looseObject({
    model: field(z.string(), "The model’s ID, as `GET /v1/models` lists it."),
    input: field(
      z.union([z.string(), z.array(item).max(MAX_ITEMS)]),
      "The conversation so far: a text of the user, or items, oldest first; after those of `previous_response_id`, if there is one.",
    ),
    instructions: optional(z.string(), "Instructions from the application, before the conversation."),
    fallback_models: optional(
      z.array(z.string()),
      "Models to try, in this order, when the first one’s provider is unavailable or fails before its first content.",
      { maxItems: MAX_FALLBACKS },
    ),
    max_output_tokens: optional(
      z.int(),
      "The most tokens to generate, reasoning included; at most the model’s `max_output_tokens`.",
      range([1, MAX_INT32]),
    ),
    temperature: optional(z.number(), "Randomness.", { ...range(RANGES.temperature), default: 1 }),
    top_p: optional(z.number(), "Nucleus sampling.", range(RANGES.top_p)),
    top_logprobs: optional(
      z.int(),
      "How many alternatives to return at each position. Needs `message.output_text.logprobs` in `include`.",
      range(RANGES["logprobs.top_count"]),
    ),
    stream: optional(z.boolean(), "Whether to answer with server-sent events while the answer is made.", {
      default: false,
    }),
    stream_options: field(z.unknown().optional(), "Accepted and ignored."),
    include: optional(
      z.array(z.string()).max(MAX_INCLUDED),
      "`reasoning.encrypted_content`: state of the provider, to be sent back. `message.output_text.logprobs`: log probabilities. Others are ignored.",
    ),
    tools: optional(z.array(tool).max(MAX_GIVEN_TOOLS), "Tools that the model may call."),
    tool_choice: optional(
      toolChoice,
      "Which tools the model should call: none, as it decides (`auto`), at least one (`required`), or those named.",
    ),
    parallel_tool_calls: optional(z.boolean(), "Whether the model may call several tools at once.", { default: true }),
    max_tool_calls: optional(z.int(), "Left out, and listed: it counts calls of tools that the provider runs itself."),
    text: optional(
      z.looseObject({
        format: optional(format, "The form of the answer’s text. Default: free text."),
        verbosity: optional(z.enum(["low", "medium", "high"]), "How wordy the answer should be."),
      }),
      "About the answer’s text.",
    ),
    reasoning: optional(
      z.looseObject({
        effort: optional(
          z.enum(["none", "minimal", "low", "medium", "high", "xhigh", "max"]),
          "How much the model should reason; mapped to the nearest level that it has.",
        ),
        summary: optional(z.enum(["auto", "concise", "detailed"]), "Ignored: what the provider shows is returned."),
        generate_summary: optional(z.enum(["auto", "concise", "detailed"]), "The older name of `summary`."),
      }),
      "About reasoning.",
    ),
    image_config: optional(
      z.looseObject({
        aspect_ratio: optional(z.string(), "Such as `1:1`, `16:9` or `9:16`."),
        image_size: optional(z.string(), "Such as `1K`, `2K` or `4K`."),
      }),
      "Wishes about generated pictures. Wins over the `size` of an `image_generation` tool.",
    ),
    user: optional(z.string(), "Your own ID of your end user, for providers that take one."),
    safety_identifier: optional(z.string(), "A stable, anonymous ID of the end user.", {
      maxLength: MAX_SAFETY_IDENTIFIER_CHARS,
    }),
    metadata: optional(z.record(z.string(), z.string()), "Your own labels.", { maxProperties: METADATA.maxPairs }),
    service_tier: optional(z.string(), "The provider’s processing class."),
    store: optional(
      z.boolean(),
      "Whether to store the response, where the gateway does so; the default is true there. Elsewhere `true` is listed in `parley.omitted`.",
    ),
    prompt_cache_key: optional(z.string(), "Groups requests that share a long prefix."),
    prompt_cache_options: passedOn,
    prompt_cache_retention: passedOn,
    moderation: passedOn,
    truncation: optional(z.string(), "`auto` is left out, and listed: no conversation is cut."),
    context_management: omitted,
    background: optional(z.boolean(), "True is refused."),
    previous_response_id: optional(
      z.string(),
      "The stored response that this request continues: its conversation and its output come first. Refused where the gateway stores none.",
    ),
    conversation: refused("the gateway keeps no conversations"),
    prompt: refused("the gateway keeps no prompts"),
    parley: optional(
      z.looseObject({
        strict: optional(z.boolean(), "Refuse with a 400 what would otherwise be left out or clamped.", {
          default: false,
        }),
      }),
      "What no field of the format can say.",
    ),
  }),
  "What to answer, with which model, and how. A field may be `null`, which is the same as leaving it out. A field that the model’s provider cannot honour, or that nobody knows, is left out and named in the answer’s `parley.omitted`.",
);

export type ResponsesRequest = z.output<typeof responsesRequest>;

/** The keys that the request may have. Other keys are reported as not honoured. */
export const KNOWN_REQUEST_KEYS: ReadonlySet<string> = new Set(Object.keys(responsesRequest.shape));
