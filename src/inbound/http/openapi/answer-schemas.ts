import { z } from "zod";

/*
 * Schemas of the responses that `formats/openai-chat` writes. Only tests use them to check real responses, which may have no
 * other fields.
 */

const integer = z.int();
const described = <T extends z.ZodType>(type: T, text: string): T => type.describe(text);
const text = (description: string) => z.string().describe(description);
const count = (description: string) => integer.min(0).describe(description);

const finishReason = z.enum(["stop", "length", "tool_calls", "content_filter"]);
const COMPLETION_ID = "The completion’s ID: `chatcmpl-` and 24 letters or digits.";
const NATIVE = "The provider’s own word for why it ended, such as `end_turn` or `STOP`.";
const STATE = "State of the provider; send it back unchanged, or not at all.";

export const answerExtra = z
  .object({ google: z.object({ thought_signature: z.string() }).describe("Of Google’s models.") })
  .describe("State of a provider where its own compatible endpoint puts it.");

export const answerImage = z
  .object({
    type: z.literal("image_url"),
    image_url: z
      .object({ url: text("A data URL, such as `data:image/png;base64,…`; or the address that the provider gave.") })
      .describe("Where the picture is."),
    extra_content: described(answerExtra.optional(), STATE),
  })
  .describe("A picture.");

export const answerText = z
  .object({ type: z.literal("text"), text: text("The text.") })
  .describe("Text beside a picture.");

const block = {
  index: count("Position among the blocks."),
  at: z.object({ text: integer, tools: integer }).optional(),
};
export const answerThinking = z
  .union([
    z.object({
      ...block,
      type: z.literal("thinking"),
      thinking: text("The reasoning."),
      signature: text("Its signature by the provider."),
    }),
    z.object({
      ...block,
      type: z.literal("redacted_thinking"),
      data: text("Reasoning that the provider does not show."),
    }),
  ])
  .describe("A piece of the model’s reasoning; send it back unchanged to let the model go on from it.");

export const answerCall = z
  .union([
    z.object({
      id: text("The call’s ID. The message with its result repeats it."),
      type: z.literal("function"),
      function: z.object({ name: text("The function’s name."), arguments: text("JSON text, never empty.") }),
      extra_content: described(answerExtra.optional(), STATE),
    }),
    z.object({
      id: text("The call’s ID."),
      type: z.literal("custom"),
      custom: z.object({ name: text("The tool’s name."), input: text("Its input.") }),
    }),
  ])
  .describe("A call of a tool.");

const annotation = z.object({
  type: z.literal("url_citation"),
  url_citation: z.object({ url: z.string(), title: z.string(), start_index: integer, end_index: integer }),
});
const annotations = z.array(annotation).optional().describe("Sources that the text cites.");
const audio = z
  .object({
    id: text("The provider’s ID of it, to refer back to."),
    data: text("The recording in base64."),
    transcript: text("Transcript of the recording."),
    expires_at: integer.optional().describe("Until when it can be referred to, in Unix seconds."),
  })
  .describe("Speech.");

export const answerMessage = z
  .object({
    role: z.literal("assistant"),
    content: z
      .union([z.string(), z.array(z.union([answerText, answerImage])), z.null()])
      .describe(
        "The text. With pictures it is a list of parts, in the provider’s order; beside nothing but tool calls or a refusal it is null.",
      ),
    refusal: z.string().nullable().describe("Why the model declined to answer."),
    reasoning_content: z.string().optional().describe("The model’s reasoning as text."),
    thinking_blocks: z.array(answerThinking).optional().describe("Reasoning with its signatures."),
    tool_calls: z.array(answerCall).optional().describe("The tools that the model wants to be called."),
    extra_content: described(answerExtra.optional(), STATE),
    annotations,
    audio: audio.optional(),
  })
  .describe("The model’s answer; it can be sent back as it is.");

const alternative = { token: z.string(), logprob: z.number(), bytes: z.array(integer).nullable() };
const tokens = z.array(z.object({ ...alternative, top_logprobs: z.array(z.object(alternative)) })).nullable();
export const logprobs = z
  .object({ content: tokens.describe("Of the answer’s text."), refusal: tokens.describe("Of its refusal.") })
  .describe("Log probabilities of generated tokens.");
const maybeLogprobs = z.union([logprobs, z.null()]).describe("Log probabilities, when asked for and given.");

export const usage = z
  .object({
    prompt_tokens: count("Tokens of the request, cached ones included."),
    completion_tokens: count("Tokens of the answer, reasoning included."),
    total_tokens: count("Both together."),
    prompt_tokens_details: z
      .object({
        cached_tokens: count("Read from the provider’s cache."),
        cache_write_tokens: count("Written to the provider’s cache.").optional(),
        audio_tokens: count("Of recordings.").optional(),
        image_tokens: count("Of pictures.").optional(),
      })
      .describe("What the prompt’s tokens were."),
    completion_tokens_details: z
      .object({
        reasoning_tokens: count("Of reasoning."),
        audio_tokens: count("Of speech.").optional(),
        image_tokens: count("Of pictures.").optional(),
        accepted_prediction_tokens: count("Of `prediction`: tokens that the answer did repeat.").optional(),
        rejected_prediction_tokens: count("Of `prediction`: tokens that it did not, billed all the same.").optional(),
      })
      .describe("What the answer’s tokens were."),
  })
  .describe("Usage by the provider.");

export const attempt = z
  .object({
    model: text("The model’s ID, as in the request."),
    outcome: text("`served`, `skipped`, or a failure’s code."),
    upstream_status: integer.nullable().describe("The HTTP status that the provider answered, if it answered."),
    reason: text("Why it failed or was skipped, in words."),
    start_ms: count("When it began, in milliseconds since the request arrived."),
    duration_ms: count("How long it took, in milliseconds."),
    own_credential: z
      .literal(true)
      .optional()
      .describe("The account’s own credential was used, in place of the gateway’s. Otherwise absent."),
  })
  .describe("One call of an upstream model, or the decision not to make it.");

const clampedValue = z.union([z.number(), z.string()]);

const losses = {
  omitted: z
    .array(z.string())
    .describe("Names of request fields that were left out, such as `seed` or `tools[0].strict`."),
  clamped: z
    .array(
      z.object({
        field: text("The field."),
        requested: clampedValue.describe("The value of the request."),
        sent: clampedValue.describe("The value that was sent."),
      }),
    )
    .describe("Request fields whose value was changed into one that the provider has."),
};

export const parley = z
  .object({
    attempts: z
      .array(attempt)
      .describe("Every upstream model that was tried or skipped, in order; the last one served."),
    ...losses,
    left_out: z
      .array(z.string())
      .optional()
      .describe(
        "Parts of the answer in another dialect, for which the format has no place: its dialect with a type of block or the name of a field.",
      ),
    targets: z
      .array(z.string())
      .optional()
      .describe(
        "The models behind the requested name, in the order in which they would serve this request. Absent when it names one model.",
      ),
    cost_usd: z.number().min(0).optional().describe("What it cost, in US dollars. Absent without prices or usage."),
  })
  .describe("Attempts, omitted fields and cost, for which the OpenAI format has no fields.");

const head = {
  id: text(COMPLETION_ID),
  created: integer.describe("When it was begun, in Unix seconds."),
  model: text("The model that answered; after a fallback not the one that was asked for."),
};

export const chatCompletion = z
  .object({
    ...head,
    object: z.literal("chat.completion"),
    choices: z
      .array(
        z.object({
          index: count("Position among the choices."),
          message: answerMessage,
          logprobs: maybeLogprobs,
          finish_reason: finishReason.describe("Why it ended."),
          native_finish_reason: text(NATIVE),
        }),
      )
      .describe("The answers; exactly one unless the request asked for more."),
    usage: usage.optional(),
    parley: parley.optional(),
  })
  .describe("A whole completion.");

const callDelta = z
  .object({
    index: count("Which call of the choice."),
    id: z.string().optional().describe("On the first piece of a call only."),
    type: z.enum(["function", "custom"]).optional().describe("On the first piece only."),
    function: z
      .object({
        name: z.string().optional().describe("On the first piece only."),
        arguments: text("More of the JSON text."),
      })
      .optional(),
    custom: z
      .object({ name: z.string().optional().describe("On the first piece only."), input: text("More of the input.") })
      .optional(),
    extra_content: described(answerExtra.optional(), STATE),
  })
  .describe("A piece of a tool call. All pieces joined are the whole.");

export const delta = z
  .object({
    role: z.literal("assistant").optional().describe("Once per choice, first, with an empty `content`."),
    content: z.string().optional().describe("More text. All pieces joined are the whole."),
    reasoning_content: z.string().optional().describe("More of the model’s reasoning."),
    thinking_blocks: z.array(answerThinking).optional().describe("Reasoning with its signatures, before the finish."),
    refusal: z.string().optional().describe("More of why the model declines to answer."),
    tool_calls: z.array(callDelta).optional().describe("A tool call’s beginning, or more of it."),
    images: z
      .array(z.object({ index: count("Running number of the picture."), ...answerImage.shape }))
      .optional()
      .describe("Whole pictures."),
    audio: audio.optional().describe("More speech."),
    extra_content: described(answerExtra.optional(), STATE),
    annotations,
  })
  .describe("What a chunk adds to a choice. Empty on the chunk with the finish.");

export const chatCompletionChunk = z
  .object({
    ...head,
    object: z.literal("chat.completion.chunk"),
    choices: z
      .array(
        z.object({
          index: count("Which choice it is about."),
          delta,
          logprobs: maybeLogprobs,
          finish_reason: finishReason.nullable().describe("Null until the choice has ended."),
          native_finish_reason: z.string().optional().describe(NATIVE),
        }),
      )
      .describe("One choice; none in the chunk with the usage."),
    usage: z
      .union([usage, z.null()])
      .optional()
      .describe(
        "With `stream_options.include_usage`: null, and in one more chunk at the end the usage by the provider.",
      ),
    parley: parley.optional().describe("On the chunk with the finish."),
  })
  .describe("One event of a streamed completion.");

export const model = z
  .object({
    id: text("The ID for `model`."),
    object: z.literal("model"),
    created: integer.describe("When it became available, in Unix seconds."),
    owned_by: text("The configured provider that serves it. Empty for a name that models of several providers serve."),
    description: text("Its description, in one line."),
    context_window: count("The most tokens that request and answer may have together."),
    max_output_tokens: count("The upper bound of `max_tokens`."),
    modalities: z
      .object({
        input: z.array(z.enum(["text", "image", "audio"])).describe("Modalities of messages to it."),
        output: z.array(z.enum(["text", "image", "audio"])).describe("Modalities of its answers."),
      })
      .describe("Its modalities."),
    preview: z.boolean().describe("Whether it is a preview, which may change or go away."),
  })
  .describe("A model that can be asked for completions.");

export const modelList = z
  .object({ object: z.literal("list"), data: z.array(model).describe("In the order of the registry.") })
  .describe("The models that the key may use.");

export const embeddingList = z
  .object({
    object: z.literal("list"),
    data: z
      .array(
        z.object({
          object: z.literal("embedding"),
          index: count("The place of its text in the request."),
          embedding: z
            .union([z.array(z.number()), z.string()])
            .describe("The vector: numbers, or base64 of 32-bit little-endian floats if the request asks for it."),
        }),
      )
      .describe("One for each text, in the order of the request."),
    model: text("The ID of the model."),
    usage: z
      .object({
        prompt_tokens: count("Tokens of the texts; 0 when the provider does not count them."),
        total_tokens: count("The same."),
      })
      .describe("Usage by the provider."),
    parley,
  })
  .describe("Embeddings.");

const imageUsage = z
  .object({
    input_tokens: count("Tokens of the request."),
    input_tokens_details: z
      .object({ text_tokens: count("Of text."), image_tokens: count("Of pictures.") })
      .describe("What the request’s tokens were."),
    output_tokens: count("Tokens of the answer."),
    total_tokens: count("Both together."),
  })
  .describe("Usage by the provider.");
const outputFormat = text("`png`, `jpeg` or `webp`, as the provider made it.");

export const imageList = z
  .object({
    created: count("When it was made, in seconds since 1970."),
    data: z.array(z.object({ b64_json: text("The picture in base64.") })).describe("The pictures."),
    output_format: outputFormat,
    usage: imageUsage.optional(),
    parley,
  })
  .describe("Pictures.");

const pictureEvent = {
  b64_json: text("The picture in base64."),
  created_at: count("When it was made, in seconds since 1970."),
  output_format: outputFormat,
  usage: imageUsage.optional(),
  parley: parley.optional(),
};
const PICTURE_EVENT = "One picture of a stream; the last one has the usage and `parley`.";

export const imageCompleted = z
  .object({ type: z.literal("image_generation.completed"), ...pictureEvent })
  .describe(PICTURE_EVENT);

export const imageEditCompleted = z
  .object({ type: z.literal("image_edit.completed"), ...pictureEvent })
  .describe(PICTURE_EVENT);

const usd = (description: string) => z.number().min(0).nullable().describe(description);

const leftOut = {
  model: text("The model’s ID."),
  reason: text(
    "Why it has this place, or none: `requested`, `policy`, `loses_least`, `passed_over`, `held_back`, `breaker_open`, `fallback`; `condition`, `label`, `surplus`.",
  ),
  message: text("The same in words."),
  provider: text("The configured provider that serves it."),
  region: z.string().nullable().describe("Its label `region`."),
  retention: z.string().nullable().describe("Its label `retention`."),
  weight: z.number().optional().describe("Its configured share. This and the next three: of models of a name."),
  in_flight: count("Calls of it by the account in flight in the process that answers.").optional(),
  expected_ms: z
    .number()
    .nullable()
    .optional()
    .describe("Time to the first content of a stream, or to the end of a whole answer. Null when nothing is known."),
  usual_cost_usd: usd("The price of this request with a usual answer.").optional(),
  input_usd_per_mtok: usd("Price of a million tokens of the prompt. Absent without a price.").optional(),
  output_usd_per_mtok: usd("Price of a million tokens of the answer. Absent without a price.").optional(),
};

export const routePlan = z
  .object({
    object: z.literal("route_plan"),
    model: text("The model, or the name with several models, that is asked for."),
    aliases: z
      .array(z.object({ name: text("The name in the request."), model: text("The model that it stands for.") }))
      .describe("The aliases that were followed."),
    policy: z.string().nullable().describe("How the name chooses among its models. Null for a model."),
    affinity: z.boolean().describe("Whether the name keeps a conversation at one model."),
    steps: z
      .array(
        z.object({
          ...leftOut,
          ...losses,
          refusal: z.string().nullable().describe("Why it cannot take the request, so that it would be skipped."),
          worst_case_usd: usd("The most that one attempt can cost. Null without a price."),
        }),
      )
      .describe("The models in the order in which they would be tried. What is lost is known for the first 16."),
    left_out: z.array(z.object(leftOut)).describe("The models of the names that would not be tried."),
    prompt_tokens: count("Tokens of the prompt, estimated."),
    reserved_tokens: count("Tokens that rate limits would reserve."),
    reserved_usd: usd(
      "Money that budgets would reserve: the worst case of the most expensive model. Null when a model has no price.",
    ),
    refusals: z
      .array(
        z.object({
          reason: text("Such as `rate_limited` or `budget_spent`."),
          message: text("In words, with the limit and its owner."),
          retry_after_ms: z.number().nullable().describe("When it could be admitted."),
        }),
      )
      .describe("The limits that would refuse the request now. Concurrency is not among them."),
  })
  .describe("Plan for a request if it were sent now.");
