import {
  MAX_FALLBACKS,
  MAX_MESSAGES,
  MAX_SAFETY_IDENTIFIER_CHARS,
  MAX_STOPS,
  METADATA,
  NAME,
  RANGES,
} from "../../../core/validate.ts";
import { INT32_MAX } from "../../../formats/openai-chat/request.ts";

/** What a JSON schema says beside the shape of a value. */
export interface Detail {
  readonly description: string;
  readonly [keyword: string]: unknown;
}

/** About one schema, under an empty name, and about each of its fields, those of inner objects behind dots. */
export type SchemaTexts = Readonly<Record<string, string | Detail>>;

const range = ([minimum, maximum]: readonly [number, number]) => ({ minimum, maximum });
const CACHE_MARK = "Marks this as the end of a prefix worth caching, for providers that are told so.";
const STATE = "State of the provider; send it back unchanged, or not at all.";

/** What the fields of a request mean, and what core accepts in them: the shapes themselves are `openai/schema.ts`. */
export const REQUEST_TEXTS: Readonly<Record<string, SchemaTexts>> = {
  ChatCompletionRequest: {
    "": "What to complete, with which model, and how. A field may be `null`, which is the same as leaving it out. A field that the model’s provider cannot honour, or that nobody knows, is left out and named in the answer’s `parley.omitted`; with `parley.strict` it is refused.",
    model: "The model’s ID, as `GET /v1/models` lists it.",
    messages: { description: "The conversation so far, oldest first.", minItems: 1, maxItems: MAX_MESSAGES },
    fallback_models: {
      description:
        "Models to try, in this order, when the first one’s provider is unavailable or fails before its first content. Duplicates and the model itself are ignored.",
      maxItems: MAX_FALLBACKS,
    },
    modalities: {
      description:
        "What the answer may hold. `image` needs `text` beside it and a model that makes pictures; `audio` needs the field `audio`.",
      default: ["text"],
    },
    max_tokens: {
      description:
        "The most tokens to generate, reasoning included; at most the model’s `max_output_tokens`. For a fallback model with a smaller bound it is clamped, and listed in `parley.clamped`.",
      minimum: 1,
      maximum: INT32_MAX,
    },
    max_completion_tokens: {
      description: "The same under OpenAI’s newer name. Wins over `max_tokens`.",
      minimum: 1,
      maximum: INT32_MAX,
    },
    temperature: {
      description: "Randomness. Clamped, and listed in `parley.clamped`, for a provider with a smaller range.",
      ...range(RANGES.temperature),
      default: 1,
    },
    top_p: { description: "Nucleus sampling.", ...range(RANGES.top_p) },
    stream: { description: "Whether to answer with server-sent events while the answer is made.", default: false },
    stream_options: "About streamed answers.",
    "stream_options.include_usage": {
      description: "Whether one more chunk with `usage` ends the stream.",
      default: false,
    },
    stop: {
      description: `Texts that end the answer when they are generated: one, or up to ${MAX_STOPS}, none empty. The text itself is not returned.`,
    },
    n: {
      description: "How many choices to generate; more than 1 only where the provider can.",
      ...range(RANGES.n),
      default: 1,
    },
    seed: "Asks for a repeatable answer, as far as the provider can give one.",
    frequency_penalty: {
      description: "Lowers the chance of tokens by how often they were used.",
      ...range(RANGES.frequency_penalty),
    },
    presence_penalty: {
      description: "Lowers the chance of tokens that were used at all.",
      ...range(RANGES.presence_penalty),
    },
    logit_bias: {
      description: "Added to a token’s logit, by the provider’s own token ID.",
      additionalProperties: { type: "number", ...range(RANGES.logit_bias) },
    },
    logprobs: { description: "Whether to return log probabilities of the generated tokens.", default: false },
    top_logprobs: {
      description: "How many alternatives to return at each position. Needs `logprobs`.",
      ...range(RANGES.top_logprobs),
    },
    tools: "Functions that the model may call.",
    tool_choice:
      "Which tools the model should call: none, as it decides (`auto`), at least one (`required`), or those named.",
    parallel_tool_calls: { description: "Whether the model may call several tools at once.", default: true },
    response_format: "The form of the answer’s text. Default: free text.",
    reasoning_effort:
      "How much the model should reason before it answers; mapped to the nearest level that it has. Default: the model’s own.",
    image_config: "Wishes about generated pictures.",
    "image_config.aspect_ratio": "Such as `1:1`, `16:9` or `9:16`.",
    "image_config.image_size": "Such as `1K`, `2K` or `4K`.",
    audio: "The form of generated speech. Required with the modality `audio`.",
    "audio.format": "`wav`, `aac`, `mp3`, `flac`, `opus` or `pcm16`.",
    "audio.voice": "The provider’s name of a voice, or an object with its ID.",
    "audio.voice.id": "The provider’s ID of a voice.",
    user: "Your own ID of your end user, for providers that take one.",
    safety_identifier: {
      description: "A stable, anonymous ID of the end user for the provider’s safety systems.",
      maxLength: MAX_SAFETY_IDENTIFIER_CHARS,
    },
    metadata: {
      description: `Your own labels. Keys have 1 to ${METADATA.maxKeyChars} characters.`,
      maxProperties: METADATA.maxPairs,
      additionalProperties: { type: "string", maxLength: METADATA.maxValueChars },
      propertyNames: { minLength: 1, maxLength: METADATA.maxKeyChars },
    },
    service_tier: "The provider’s processing class, such as `auto`, `default`, `flex` or `priority`.",
    store: "Whether the provider may keep the completion.",
    verbosity: "How wordy the answer should be: `low`, `medium` or `high`.",
    prediction: "Text that much of the answer is expected to repeat.",
    "prediction.content": "The text, or parts of it.",
    prompt_cache_key: "Groups requests that share a long prefix, for the provider’s prompt cache.",
    prompt_cache_options: "Passed on to providers of the OpenAI dialect.",
    prompt_cache_retention: "Passed on to providers of the OpenAI dialect.",
    moderation: "Passed on to providers of the OpenAI dialect.",
    web_search_options: "Passed on to providers of the OpenAI dialect.",
    parley: "What no field of the OpenAI format can say.",
    "parley.strict": {
      description:
        "Refuse with a 400 that names the field what would otherwise be left out or clamped. A fallback model that would have to do so is skipped.",
      default: false,
    },
  },
  RequestMessage: {
    "": "One turn of a conversation. The message of an answer can be sent back as it came.",
    role: "Who speaks. `developer` is the same as `system`.",
    content:
      "What is said: a text, or parts. System messages hold text; assistant messages may have none when they call tools.",
    name: "A name for the speaker. Providers without one ignore it.",
    refusal: "Assistant messages: why the model declined to answer.",
    tool_calls: "Assistant messages: the tools that were called. A tool message must follow for each.",
    tool_call_id: "Tool messages, required there: the ID of the call that this answers.",
    audio: "Assistant messages: speech of an earlier answer.",
    "audio.id": "The provider’s ID of it.",
    reasoning_content: "Assistant messages: the model’s reasoning as text.",
    thinking_blocks: "Assistant messages: reasoning with what proves it. Send it back to let the model go on from it.",
    extra_content: STATE,
    images: "Assistant messages: pictures of an earlier streamed answer.",
    annotations: "About an earlier answer; accepted and ignored.",
    cache_control: CACHE_MARK,
  },
  ContentPart: { "": "A piece of a message." },
  TextPart: { "": "Text.", type: "", text: "The text.", cache_control: CACHE_MARK },
  RefusalPart: { "": "Text with which a model declined to answer.", type: "", refusal: "The text." },
  ImagePart: {
    "": "A picture.",
    type: "",
    image_url: "Where the picture is; its address alone, or an object.",
    "image_url.url":
      "A data URL (`data:image/png;base64,…`), or an https address that the provider reads itself; the gateway fetches nothing.",
    "image_url.detail": "How closely the model should look: `auto`, `low`, `high` or `original`.",
    cache_control: CACHE_MARK,
    extra_content: STATE,
  },
  AudioPart: {
    "": "A recording.",
    type: "",
    input_audio: "The recording.",
    "input_audio.data": { description: "In base64.", contentEncoding: "base64" },
    "input_audio.format": "Such as `wav` or `mp3`.",
    cache_control: CACHE_MARK,
  },
  FilePart: {
    "": "A document.",
    type: "",
    file: "The document, by its content or its ID.",
    "file.filename": "Its name.",
    "file.file_data": "Its content: a data URL, or base64.",
    "file.file_id": "The ID of an uploaded file, for providers of the OpenAI dialect.",
    cache_control: CACHE_MARK,
  },
  FunctionCall: {
    "": "A call of a function by the model.",
    id: "The call’s ID. The message with its result repeats it.",
    type: "",
    function: "What is called.",
    "function.name": "The function’s name.",
    "function.arguments": "Its arguments as JSON text.",
    extra_content: STATE,
  },
  CustomCall: {
    "": "A call of a tool with free-form input.",
    id: "The call’s ID.",
    type: "",
    custom: "What is called.",
    "custom.name": "The tool’s name.",
    "custom.input": "Its input.",
  },
  ThinkingBlock: {
    "": "A piece of a model’s reasoning. Send it back unchanged, or not at all.",
    type: "`redacted_thinking`: the provider shows it to nobody.",
    thinking: "The reasoning as text.",
    signature: "What proves that it is the model’s own.",
    data: "Of redacted reasoning: all there is.",
    at: "Where it stood in the answer; at its beginning without it.",
    "at.text": "How many UTF-16 units of text came before it.",
    "at.tools": "How many tool calls came before it.",
  },
  ExtraContent: {
    "": "State of a provider where its own compatible endpoint puts it.",
    google: "Of Google’s models.",
    "google.thought_signature": STATE,
  },
  CacheControl: {
    "": "The end of a prefix worth caching.",
    type: "`ephemeral`.",
    ttl: "How long to keep it, such as `5m` or `1h`; the provider’s default without it.",
  },
  FunctionTool: {
    "": "A function that the model may call.",
    type: "",
    function: "The function.",
    "function.name": { description: "1 to 64 letters, digits, `_` or `-`.", pattern: NAME.source },
    "function.description": "What it does and when to call it, told to the model.",
    "function.parameters": "The JSON schema of its arguments. Without it, it takes none.",
    "function.strict": "Whether the provider must enforce the schema exactly.",
    cache_control: CACHE_MARK,
  },
  CustomTool: {
    "": "A tool with free-form input, for providers of the OpenAI dialect.",
    type: "",
    custom: "The tool.",
    "custom.name": { description: "1 to 64 letters, digits, `_` or `-`.", pattern: NAME.source },
    "custom.description": "What it does, told to the model.",
    "custom.format": "The input’s format in the OpenAI dialect. Without it, any text.",
  },
  NamedFunction: {
    "": "Exactly this function.",
    type: "",
    function: "The function.",
    "function.name": "Its name, one of `tools`.",
  },
  NamedCustomTool: {
    "": "Exactly this custom tool.",
    type: "",
    custom: "The tool.",
    "custom.name": "Its name, one of `tools`.",
  },
  AllowedTools: {
    "": "Some of the tools.",
    type: "",
    allowed_tools: "Which, and whether one must be called.",
    "allowed_tools.mode": "`required`: at least one of them is called.",
    "allowed_tools.tools": "The tools that may be called.",
  },
  TextFormat: { "": "Free text.", type: "" },
  JsonObjectFormat: { "": "Any JSON object.", type: "" },
  JsonSchemaFormat: {
    "": "JSON that satisfies a schema.",
    type: "",
    json_schema: "The schema.",
    "json_schema.name": { description: "1 to 64 letters, digits, `_` or `-`.", pattern: NAME.source },
    "json_schema.description": "What the object is for, told to the model.",
    "json_schema.schema": "The JSON schema, which is an object.",
    "json_schema.strict": "Whether the provider must enforce the schema exactly.",
  },
};
