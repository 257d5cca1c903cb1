/** A request's fields as a client writes them. */
export type Fields = Readonly<Record<string, unknown>>;

/** Two requests that differ in one field: `without` it, and with what it `given` adds or replaces. */
export interface RequestSample {
  readonly given: Fields;
  readonly without?: Fields;
}

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const PDF = Buffer.from("%PDF-1.4").toString("base64");
const THOUGHT = [{ type: "thinking", thinking: "Hm.", signature: "c2ln" }];
const SIGNATURE = { google: { thought_signature: "c2lnbmVk" } };
const CLOSED = { type: "object", properties: { a: { type: "string" } }, required: ["a"], additionalProperties: false };
const PATTERN = { ...CLOSED, properties: { a: { type: "string", pattern: "x" } } };

const user = { role: "user", content: "Hi" };
const assistant = { role: "assistant", content: "Yes?" };
const picture = { type: "image_url", image_url: { url: `data:image/png;base64,${PNG}` } };
const linked = { type: "image_url", image_url: { url: "https://example.com/a.png" } };
const pdf = { type: "file", file: { file_data: `data:application/pdf;base64,${PDF}` } };

const tool = (fields: Fields = {}, name = "f"): Fields => ({ type: "function", function: { name, ...fields } });
const custom = { type: "custom", custom: { name: "c" } };
const TOOLS = { tools: [tool({ parameters: CLOSED }), tool({}, "g")] };
const format = (fields: Fields): Fields => ({
  response_format: { type: "json_schema", json_schema: { name: "a", schema: CLOSED, ...fields } },
});
const jsonObject = { response_format: { type: "json_object" } };

const said = (part: Fields): Fields => ({ messages: [{ role: "user", content: [part] }] });
/** The part with a field against the same part without it. */
const inPart = (part: Fields, fields: Fields): RequestSample => ({
  given: said({ ...part, ...fields }),
  without: said(part),
});

const ofUser = (fields: Fields): RequestSample => ({ given: { messages: [{ ...user, ...fields }] } });
const answered = (fields: Fields): Fields => ({ messages: [user, { ...assistant, ...fields }, user] });
const ofAssistant = (fields: Fields): RequestSample => ({ given: answered(fields), without: answered({}) });

const called = (call: Fields = {}, result: Fields = {}): Fields => ({
  messages: [
    user,
    {
      role: "assistant",
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: "{}" }, ...call }],
    },
    { role: "tool", tool_call_id: "call_1", content: "ok", ...result },
  ],
});
const ofCall = (call: Fields, result: Fields = {}): RequestSample => ({
  given: called(call, result),
  without: called(),
});

/** A sample of every row's field, by the row's name. */
export const REQUEST_SAMPLES: Readonly<Record<string, RequestSample>> = {
  model: { given: { model: "other" } },
  fallback_models: { given: { fallback_models: ["b"] } },
  stream: { given: { stream: true } },
  "stream_options.include_usage": {
    given: { stream: true, stream_options: { include_usage: true } },
    without: { stream: true },
  },
  "parley.strict": { given: { parley: { strict: true } } },
  max_tokens: { given: { max_tokens: 4000 } },
  "max_tokens above the model's": { given: { max_tokens: 100_000 } },
  max_completion_tokens: { given: { max_completion_tokens: 4000 }, without: { max_tokens: 3000 } },
  temperature: { given: { temperature: 0.5 } },
  "temperature of 1.4": { given: { temperature: 1.4 } },
  "temperature beside reasoning_effort": { given: { temperature: 0.5 }, without: { reasoning_effort: "low" } },
  top_p: { given: { top_p: 0.5 } },
  "top_p beside temperature": { given: { top_p: 0.5 }, without: { temperature: 0.5 } },
  stop: { given: { stop: ["END"] } },
  "stop of white space": { given: { stop: [" "] } },
  n: { given: { n: 2 } },
  seed: { given: { seed: 7 } },
  frequency_penalty: { given: { frequency_penalty: 1 } },
  presence_penalty: { given: { presence_penalty: 1 } },
  logit_bias: { given: { logit_bias: { "5": 1 } } },
  logprobs: { given: { logprobs: true } },
  top_logprobs: { given: { top_logprobs: 3 }, without: { logprobs: true } },
  "modalities of text": { given: { modalities: ["text"] } },
  "modalities with image": { given: { modalities: ["text", "image"] } },
  "modalities with audio": { given: { modalities: ["text", "audio"] } },
  "image_config.aspect_ratio": { given: { image_config: { aspect_ratio: "1:1" } } },
  "image_config.aspect_ratio of a picture": {
    given: { image_config: { aspect_ratio: "1:1" } },
    without: { modalities: ["text", "image"] },
  },
  "image_config.image_size": { given: { image_config: { image_size: "1K" } } },
  "image_config.image_size of a picture": {
    given: { image_config: { image_size: "1K" } },
    without: { modalities: ["text", "image"] },
  },
  audio: { given: { audio: { format: "mp3", voice: "a" } } },
  "audio of speech": {
    given: { audio: { format: "mp3", voice: "a" } },
    without: { modalities: ["text", "audio"] },
  },
  tools: { given: TOOLS },
  "tools[].function.name": { given: { tools: [tool({}, "g")] }, without: { tools: [tool()] } },
  "tools[].function.description": { given: { tools: [tool({ description: "a" })] }, without: { tools: [tool()] } },
  "tools[].function.parameters": { given: { tools: [tool({ parameters: CLOSED })] }, without: { tools: [tool()] } },
  "tools[].function.strict": {
    given: { tools: [tool({ parameters: CLOSED, strict: true })] },
    without: { tools: [tool({ parameters: CLOSED })] },
  },
  "tools[].function.strict with an open schema": {
    given: { tools: [tool({ parameters: { type: "object" }, strict: true })] },
    without: { tools: [tool({ parameters: { type: "object" } })] },
  },
  "tools[].cache_control": {
    given: { tools: [{ ...tool(), cache_control: { type: "ephemeral" } }] },
    without: { tools: [tool()] },
  },
  "tools[].custom": { given: { tools: [custom] } },
  "tool_choice of auto": { given: { tool_choice: "auto" }, without: TOOLS },
  "tool_choice of none": { given: { tool_choice: "none" }, without: TOOLS },
  "tool_choice of required": { given: { tool_choice: "required" }, without: TOOLS },
  "tool_choice of a function": { given: { tool_choice: tool() }, without: TOOLS },
  "tool_choice of allowed_tools": {
    given: { tool_choice: { type: "allowed_tools", allowed_tools: { mode: "auto", tools: [tool()] } } },
    without: TOOLS,
  },
  "tool_choice of a custom tool": { given: { tool_choice: custom }, without: TOOLS },
  "tool_choice without tools": { given: { tool_choice: "required" } },
  parallel_tool_calls: { given: { parallel_tool_calls: false }, without: TOOLS },
  "response_format of text": { given: { response_format: { type: "text" } } },
  "response_format of json_object": { given: jsonObject },
  "response_format of json_object beside tools": { given: jsonObject, without: TOOLS },
  "response_format.json_schema.schema": { given: format({}) },
  "response_format.json_schema.schema with a pattern": { given: format({ schema: PATTERN }) },
  "response_format.json_schema.name": { given: format({ name: "b" }), without: format({}) },
  "response_format.json_schema.description": { given: format({ description: "b" }), without: format({}) },
  "response_format.json_schema.strict": { given: format({ strict: true }), without: format({}) },
  reasoning_effort: { given: { reasoning_effort: "low" } },
  "reasoning_effort of none": { given: { reasoning_effort: "none" } },
  "reasoning_effort of max": { given: { reasoning_effort: "max" } },
  user: { given: { user: "ann" } },
  safety_identifier: { given: { safety_identifier: "ann" } },
  "safety_identifier beside user": { given: { safety_identifier: "ann" }, without: { user: "bob" } },
  metadata: { given: { metadata: { a: "b" } } },
  "service_tier of auto": { given: { service_tier: "auto" } },
  "service_tier of default": { given: { service_tier: "default" } },
  "service_tier of flex": { given: { service_tier: "flex" } },
  "service_tier of scale": { given: { service_tier: "scale" } },
  store: { given: { store: true } },
  verbosity: { given: { verbosity: "low" } },
  prediction: { given: { prediction: { type: "content", content: "a" } } },
  prompt_cache_key: { given: { prompt_cache_key: "a" } },
  prompt_cache_options: { given: { prompt_cache_options: { mode: "explicit" } } },
  prompt_cache_retention: { given: { prompt_cache_retention: "24h" } },
  moderation: { given: { moderation: { model: "a" } } },
  web_search_options: { given: { web_search_options: {} } },
  "messages[].role of system": { given: { messages: [{ ...user, role: "system" }, user] } },
  "messages[].role of developer": { given: { messages: [{ ...user, role: "developer" }, user] } },
  "messages[].role of system in the middle": {
    given: { messages: [user, assistant, user, { role: "system", content: "Be brief." }] },
    without: { messages: [user, assistant, user] },
  },
  "messages[].role of assistant": { given: answered({}) },
  "messages[].role of assistant at the end": { given: { messages: [user, assistant] } },
  "messages[].role of tool": { given: called() },
  "messages[].content": ofUser({ content: "Bye" }),
  "messages[].name": ofUser({ name: "Ann" }),
  "messages[].name of a tool message": ofCall({}, { name: "f" }),
  "messages[].tool_calls[].id": ofCall({ id: "call_2" }, { tool_call_id: "call_2" }),
  "messages[].tool_call_id": ofCall({ id: "call_2" }, { tool_call_id: "call_2" }),
  "messages[].tool_calls[].function.name": ofCall({ function: { name: "g", arguments: "{}" } }),
  "messages[].tool_calls[].function.arguments": ofCall({ function: { name: "f", arguments: '{"a":1}' } }),
  "messages[].tool_calls[].custom": ofCall({ type: "custom", custom: { name: "c", input: "x" } }),
  "messages[].tool_calls[].extra_content": ofCall({ extra_content: SIGNATURE }),
  "messages[].refusal": ofAssistant({ refusal: "No." }),
  "messages[].reasoning_content": ofAssistant({ reasoning_content: "Hm." }),
  "messages[].thinking_blocks": ofAssistant({ thinking_blocks: THOUGHT }),
  "messages[].thinking_blocks without text and calls": {
    given: answered({ content: null, thinking_blocks: THOUGHT }),
    without: answered({ content: null }),
  },
  "messages[].extra_content": ofAssistant({ extra_content: SIGNATURE }),
  "messages[].images": ofAssistant({ images: [picture] }),
  "messages[].audio": ofAssistant({ audio: { id: "audio_1" } }),
  "messages[].annotations": ofAssistant({ annotations: [{ type: "url_citation" }] }),
  "messages[].cache_control": ofUser({ cache_control: { type: "ephemeral" } }),
  "messages[].content[].text": inPart({ type: "text", text: "a" }, { text: "b" }),
  "messages[].content[].refusal": ofAssistant({ content: [{ type: "refusal", refusal: "No." }] }),
  "messages[].content[].image_url.url": { given: said(picture) },
  "messages[].content[].image_url.url of https": { given: said(linked) },
  "messages[].content[].image_url.detail": inPart(picture, { image_url: { ...picture.image_url, detail: "high" } }),
  "messages[].content[].extra_content": inPart(picture, { extra_content: SIGNATURE }),
  "messages[].content[].input_audio": {
    given: said({ type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } }),
  },
  "messages[].content[].file.file_data": { given: said(pdf) },
  "messages[].content[].file.filename": inPart(pdf, { file: { ...pdf.file, filename: "a.pdf" } }),
  "messages[].content[].file.file_id": { given: said({ type: "file", file: { file_id: "file_1" } }) },
  "messages[].content[].cache_control": inPart(picture, { cache_control: { type: "ephemeral" } }),
  "messages[].content[].cache_control.ttl of 1h": inPart(
    { ...picture, cache_control: { type: "ephemeral" } },
    { cache_control: { type: "ephemeral", ttl: "1h" } },
  ),
  "messages[].content[].cache_control.ttl of 10m": inPart(
    { ...picture, cache_control: { type: "ephemeral" } },
    { cache_control: { type: "ephemeral", ttl: "10m" } },
  ),
};
