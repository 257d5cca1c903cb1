import OpenAI from "openai";
import { describe, expect, it } from "vitest";
import { readChatRequest } from "../../src/formats/openai-chat/request.ts";
import { toOpenAiRequest } from "../../src/providers/openai/request.ts";
import { FIELDS } from "../../src/simulator/openai/rules.ts";
import { modelThat } from "../providers/openai/model.ts";
import { PIXEL } from "./support/png-reader.ts";
import { openSimulator } from "./support/simulators.ts";

/*
 * The simulator reads and writes with the formats. The official client's types say here what the dialect is, so that a mistake
 * of a format is not hidden by its use on both sides.
 */

type Chat = OpenAI.ChatCompletionCreateParams;
type Names<T> = Readonly<Record<keyof T, true>>;

const names = (fields: object): string[] => Object.keys(fields).toSorted();

describe("the fields that the simulator knows", () => {
  const schema: Names<OpenAI.ResponseFormatJSONSchema["json_schema"]> = {
    name: true,
    description: true,
    schema: true,
    strict: true,
  };
  const definition: Names<OpenAI.FunctionDefinition> = {
    name: true,
    description: true,
    parameters: true,
    strict: true,
  };
  const chat: Names<Chat> = {
    model: true,
    messages: true,
    max_completion_tokens: true,
    max_tokens: true,
    temperature: true,
    top_p: true,
    n: true,
    stop: true,
    stream: true,
    stream_options: true,
    presence_penalty: true,
    frequency_penalty: true,
    logit_bias: true,
    logprobs: true,
    top_logprobs: true,
    seed: true,
    tools: true,
    tool_choice: true,
    parallel_tool_calls: true,
    response_format: true,
    reasoning_effort: true,
    verbosity: true,
    modalities: true,
    audio: true,
    prediction: true,
    metadata: true,
    store: true,
    service_tier: true,
    prompt_cache_key: true,
    prompt_cache_options: true,
    prompt_cache_retention: true,
    safety_identifier: true,
    user: true,
    moderation: true,
    web_search_options: true,
    functions: true,
    function_call: true,
  };

  it.each<[keyof typeof FIELDS, object]>([
    ["chat", chat],
    [
      "chat.stream_options",
      { include_usage: true, include_obfuscation: true } satisfies Names<OpenAI.ChatCompletionStreamOptions>,
    ],
    ["chat.tools[]", { type: true, function: true } satisfies Names<OpenAI.ChatCompletionFunctionTool>],
    ["chat.tools[].function", definition],
    ["chat.response_format", { type: true, json_schema: true } satisfies Names<OpenAI.ResponseFormatJSONSchema>],
    ["chat.response_format.json_schema", schema],
    [
      "embeddings",
      {
        model: true,
        input: true,
        encoding_format: true,
        dimensions: true,
        user: true,
      } satisfies Names<OpenAI.EmbeddingCreateParams>,
    ],
  ])("of %s are those of the official client", (place, fields) => {
    expect(FIELDS[place].split(" ").toSorted()).toEqual(names(fields));
  });
});

const parameters = { type: "object", properties: { city: { type: "string" } }, required: ["city"] };

/** A request with most of what the contract has, as the official client types it. */
const REQUEST = {
  model: "gpt-any",
  messages: [
    { role: "system", content: "Be brief." },
    {
      role: "user",
      content: [
        { type: "text", text: "What is this?" },
        { type: "image_url", image_url: { url: `data:image/png;base64,${PIXEL}`, detail: "low" } },
        { type: "input_audio", input_audio: { data: "UklGRg==", format: "wav" } },
      ],
    },
    {
      role: "assistant",
      content: "A picture. The weather follows.",
      tool_calls: [{ id: "call_1", type: "function", function: { name: "get_weather", arguments: '{"city":"Oslo"}' } }],
    },
    { role: "tool", tool_call_id: "call_1", content: "14 degrees" },
    { role: "user", content: "And now?" },
  ],
  max_completion_tokens: 500,
  temperature: 0.5,
  top_p: 0.9,
  frequency_penalty: 0.1,
  presence_penalty: 0.2,
  seed: 7,
  stop: ["HALT"],
  logit_bias: { "50256": -100 },
  logprobs: true,
  top_logprobs: 2,
  tools: [
    { type: "function", function: { name: "get_weather", description: "The weather.", parameters, strict: true } },
    { type: "function", function: { name: "ping" } },
  ],
  tool_choice: {
    type: "allowed_tools",
    allowed_tools: { mode: "required", tools: [{ type: "function", function: { name: "get_weather" } }] },
  },
  parallel_tool_calls: false,
  response_format: { type: "json_schema", json_schema: { name: "weather", schema: parameters, strict: true } },
  user: "u1",
  metadata: { trace: "t" },
  service_tier: "flex",
  store: true,
  verbosity: "low",
  prompt_cache_key: "k",
  safety_identifier: "s",
} satisfies OpenAI.ChatCompletionCreateParamsNonStreaming;

async function openClient(): Promise<OpenAI> {
  const { url } = await openSimulator();
  return new OpenAI({ apiKey: "any", baseURL: `${url}/v1`, maxRetries: 0 });
}

describe("a request as the official client types it", () => {
  it("is the same after the format has read it and the dialect has written it", () => {
    const { request, unrecognized } = readChatRequest(structuredClone(REQUEST));
    const model = modelThat(
      { maxTokensField: "max_completion_tokens" },
      { name: REQUEST.model, maxOutputTokens: 1000 },
    );
    const { body } = toOpenAiRequest(request, model, { mode: "whole" });
    expect(unrecognized).toEqual([]);
    expect(JSON.parse(String(body))).toEqual(REQUEST);
  });

  it("is answered by the simulator", async () => {
    const client = await openClient();
    const { choices } = await client.chat.completions.create(REQUEST);
    expect(choices[0]?.message.tool_calls).toMatchObject([{ function: { name: "get_weather" } }]);
  });
});

describe("an answer as the official client types it", () => {
  const asked = {
    model: "gpt-any",
    messages: [{ role: "user", content: "Write 2 words" }],
    max_completion_tokens: 2,
  } satisfies Chat;
  const usage = {
    prompt_tokens: 7,
    completion_tokens: 2,
    total_tokens: 9,
    prompt_tokens_details: { cached_tokens: 0 },
    completion_tokens_details: { reasoning_tokens: 0 },
  } satisfies OpenAI.CompletionUsage;
  const head = {
    id: expect.stringMatching(/^chatcmpl-[0-9a-f]{32}$/u) as string,
    created: expect.any(Number) as number,
    model: asked.model,
  };
  const [first, second] = [expect.any(String) as string, expect.any(String) as string];

  it("is all that the simulator writes", async () => {
    const client = await openClient();
    const message = { role: "assistant", content: expect.any(String) as string, refusal: null } as const;
    const written = {
      ...head,
      object: "chat.completion",
      choices: [{ index: 0, message, logprobs: null, finish_reason: "stop" }],
      usage,
    } satisfies OpenAI.ChatCompletion;
    expect(await client.chat.completions.create(asked)).toEqual(written);
  });

  it("is all that the simulator writes of a call", async () => {
    const client = await openClient();
    const message = {
      role: "assistant",
      content: null,
      refusal: null,
      tool_calls: [
        {
          id: expect.stringMatching(/^call_[0-9a-f]{24}$/u) as string,
          type: "function",
          function: { name: "get_weather", arguments: '{"city":"Oslo"}' },
        },
      ],
    } as const satisfies OpenAI.ChatCompletionMessage;
    const { choices } = await client.chat.completions.create({
      model: asked.model,
      messages: [{ role: "user", content: "get_weather(city='Oslo')" }],
      tools: [{ type: "function", function: { name: "get_weather", parameters } }],
    });
    expect(choices).toEqual([
      { index: 0, message, logprobs: null, finish_reason: "tool_calls" } satisfies OpenAI.ChatCompletion.Choice,
    ]);
  });

  it("is all that the simulator writes as a stream", async () => {
    const client = await openClient();
    const chunk = (delta: OpenAI.ChatCompletionChunk.Choice.Delta, finish: "stop" | null = null) =>
      ({
        ...head,
        object: "chat.completion.chunk",
        choices: [{ index: 0, delta, logprobs: null, finish_reason: finish }],
        usage: null,
      }) satisfies OpenAI.ChatCompletionChunk;
    const stream = await client.chat.completions.create({
      ...asked,
      stream: true,
      stream_options: { include_usage: true },
    });
    expect(await Array.fromAsync(stream)).toEqual([
      chunk({ role: "assistant", content: "" }),
      chunk({ content: first }),
      chunk({ content: second }),
      chunk({}, "stop"),
      { ...head, object: "chat.completion.chunk", choices: [], usage } satisfies OpenAI.ChatCompletionChunk,
    ]);
  });
});
