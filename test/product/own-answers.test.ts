import Anthropic from "@anthropic-ai/sdk";
import { GoogleGenAI } from "@google/genai";
import OpenAI from "openai";
import { afterAll, beforeAll, beforeEach, describe, expect, it } from "vitest";
import { startTestGateway, type TestGateway } from "../support/gateway.ts";
import { answerJson, beginStream, startUpstream, type Upstream, type UpstreamExchange } from "./support/upstream.ts";

/* What of a provider's answer only its own dialect has a word for, as official clients of that dialect read it. */

type Json = Readonly<Record<string, unknown>>;

const CREDENTIAL = "credential-of-the-gateway";

let upstream: Upstream;
let gateway: TestGateway;
let answer: (exchange: UpstreamExchange) => void;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answer(exchange));
  const { url } = upstream;
  const at = { allow_private: true, api_keys: [CREDENTIAL] };
  const model = { upstream_model: "any", max_output_tokens: 4_000 };
  gateway = await startTestGateway({
    config: {
      retries: { base_ms: 0, cap_ms: 0 },
      breaker: { failures: 1000 },
      providers: {
        a: { ...at, base_url: url, dialect: "anthropic" },
        g: { ...at, base_url: url, dialect: "gemini" },
        o: { ...at, base_url: `${url}/v1`, dialect: "openai" },
        r: { ...at, base_url: `${url}/v1`, dialect: "openai-responses" },
      },
      models: Object.fromEntries(["a", "g", "o", "r"].map((name) => [`fx-${name}`, { ...model, provider: name }])),
    },
  });
});

afterAll(async () => {
  await gateway.close();
  await upstream.close();
});

beforeEach(() => {
  answer = (exchange) => {
    const path = exchange.request.url ?? "";
    if (path.includes("streamGenerateContent")) stream(exchange, [{ data: GEMINI }]);
    else if (path.includes("generateContent")) answerJson(exchange.response, 200, GEMINI);
    else {
      const isStream = (JSON.parse(exchange.body) as Json)["stream"] === true;
      const [whole, events] = path.endsWith("/messages") ? ANTHROPIC : path.endsWith("/responses") ? RESPONSES : CHAT;
      if (isStream) stream(exchange, events);
      else answerJson(exchange.response, 200, whole);
    }
  };
});

interface SentEvent {
  readonly event?: string;
  readonly data: object;
}

function stream({ response }: UpstreamExchange, events: readonly SentEvent[]): void {
  beginStream(response);
  for (const { event, data } of events)
    response.write(`${event === undefined ? "" : `event: ${event}\n`}data: ${JSON.stringify(data)}\n\n`);
  response.end("data: [DONE]\n\n");
}

const COMPACTION = { type: "compaction", content: "What was said." };
const CONTAINER = { id: "container_1", expires_at: "2026-12-01T00:00:00Z" };
const EDITS = { applied_edits: [{ type: "clear_tool_uses_20250919", cleared_tool_uses: 3 }] };
const SAID = { type: "text", text: "Hello." };
const CALL = {
  type: "tool_use",
  id: "toolu_1",
  name: "f",
  input: {},
  caller: { type: "code_execution", tool_id: "s1" },
};
const USAGE = { input_tokens: 3, output_tokens: 4, service_tier: "priority", inference_geo: "eu" };
const ANTHROPIC: readonly [object, readonly SentEvent[]] = [
  {
    id: "msg_up",
    type: "message",
    role: "assistant",
    model: "claude",
    content: [COMPACTION, SAID, CALL],
    stop_reason: "tool_use",
    container: CONTAINER,
    context_management: EDITS,
    usage: USAGE,
  },
  [
    ["message_start", { message: { id: "msg_up", model: "claude", usage: { ...USAGE, output_tokens: 1 } } }],
    ["content_block_start", { index: 0, content_block: { type: "compaction", content: "" } }],
    ["content_block_delta", { index: 0, delta: { type: "compaction_delta", content: "What was " } }],
    ["content_block_delta", { index: 0, delta: { type: "compaction_delta", content: "said." } }],
    ["content_block_stop", { index: 0 }],
    ["content_block_start", { index: 1, content_block: { type: "text", text: "" } }],
    ["content_block_delta", { index: 1, delta: { type: "text_delta", text: "Hello." } }],
    ["content_block_stop", { index: 1 }],
    ["content_block_start", { index: 2, content_block: CALL }],
    ["content_block_stop", { index: 2 }],
    ["event_of_tomorrow", { a: 1 }],
    [
      "message_delta",
      {
        delta: { stop_reason: "tool_use", container: CONTAINER },
        usage: { output_tokens: 4 },
        context_management: EDITS,
      },
    ],
    ["message_stop", {}],
  ].map(([event, fields]) => ({ event: event as string, data: { type: event, ...(fields as object) } })),
];

const GEMINI_CALL = { functionCall: { id: "c1", name: "f", args: {} }, partMetadata: { key: "value" } };
const GEMINI = {
  candidates: [
    {
      content: { parts: [{ executableCode: { language: "PYTHON", code: "1" } }, { text: "Hello." }, GEMINI_CALL] },
      finishReason: "STOP",
      avgLogprobs: -0.5,
      finishMessage: `Done by ${CREDENTIAL}.`,
      safetyRatings: [{ category: "HARM_CATEGORY_HARASSMENT", probability: "NEGLIGIBLE" }],
    },
  ],
  modelStatus: { modelStage: "STABLE" },
};

const MODERATION = { results: [{ flagged: false }] };
const PNG = "iVBORw0KGgo=";
const DRAWN = {
  id: "ig_1",
  type: "image_generation_call",
  status: "completed",
  result: PNG,
  output_format: "png",
  revised_prompt: "A tide.",
  size: "1024x1024",
};
const CALLED = {
  id: "fc_1",
  type: "function_call",
  status: "completed",
  call_id: "c1",
  name: "f",
  arguments: "{}",
  caller: { type: "program" },
};
const OUTPUT = [
  {
    type: "message",
    id: "m",
    role: "assistant",
    status: "completed",
    phase: "commentary",
    content: [{ type: "output_text", text: "Hello.", annotations: [] }],
  },
  DRAWN,
  CALLED,
];
const RESPONSE = {
  id: "resp_up",
  status: "completed",
  output: OUTPUT,
  moderation: MODERATION,
  billing: { payer: "us" },
};
const RESPONSES = [RESPONSE, [{ data: { type: "response.completed", response: RESPONSE } }]] as const;

const FILTERS = { hate: { filtered: false, severity: "safe" } };
const PROVIDER_SPECIFIC = [{ type: "note", text: "a" }];
const CHAT = [
  {
    id: "up",
    object: "chat.completion",
    model: "gpt",
    choices: [
      {
        index: 0,
        message: { role: "assistant", content: "Hello.", notes: PROVIDER_SPECIFIC, mood: "good" },
        finish_reason: "stop",
        content_filter_results: FILTERS,
      },
    ],
    system_fingerprint: "fp_1",
    citations: ["https://example.com/"],
    provider: "somebody",
    organization: "org-of-the-gateway",
    parley: { attempts: [] },
    usage: { prompt_tokens: 3, completion_tokens: 4, cost: 0.1 },
  },
  [
    {
      data: {
        choices: [{ index: 0, delta: { role: "assistant", content: "Hello.", mood: "go" } }],
        system_fingerprint: "fp_1",
      },
    },
    { data: { choices: [{ index: 0, delta: { notes: PROVIDER_SPECIFIC, mood: "od" }, finish_reason: null }] } },
    {
      data: {
        choices: [{ index: 0, delta: {}, finish_reason: "stop", content_filter_results: FILTERS }],
        citations: ["https://example.com/"],
        organization: "org-of-the-gateway",
      },
    },
  ],
] as const;

const url = (): string => `http://127.0.0.1:${gateway.httpPort}`;

describe.each([false, true])("an answer to a caller of the provider's dialect (streamed: %s)", (streamed) => {
  it("has the blocks and fields of a message", async () => {
    const client = new Anthropic({ baseURL: url(), apiKey: gateway.key, maxRetries: 0 });
    const asked = { model: "fx-a", max_tokens: 100, messages: [{ role: "user" as const, content: "Hi" }] };
    const message = (streamed
      ? await client.messages.stream(asked).finalMessage()
      : await client.messages.create(asked)) as unknown as Json;
    expect(message["content"]).toMatchObject([COMPACTION, SAID, CALL]);
    expect(message).toMatchObject({ container: CONTAINER, model: "fx-a" });
    const text = await raw("/v1/messages", { ...asked, stream: streamed });
    expect(text).toContain(`"context_management":${JSON.stringify(EDITS)}`);
    expect(text).toContain('"service_tier":"priority","inference_geo":"eu"');
    expect(text).not.toMatch(/msg_up|"claude"/);
  });

  it("has the parts and fields of Gemini, without the gateway's credential", async () => {
    const httpOptions = { baseUrl: url() };
    const { models } = new GoogleGenAI({ apiKey: gateway.key, vertexai: false, httpOptions });
    const asked = { model: "fx-g", contents: "Hi" };
    const pieces = [];
    if (streamed) for await (const piece of await models.generateContentStream(asked)) pieces.push(piece);
    else pieces.push(await models.generateContent(asked));
    const candidates = pieces.map((piece) => piece.candidates![0]!);
    expect(candidates[0]!.content!.parts![0]).toEqual(GEMINI.candidates[0]!.content.parts[0]);
    expect(candidates.at(-1)).toMatchObject({
      avgLogprobs: -0.5,
      safetyRatings: GEMINI.candidates[0]!.safetyRatings,
    });
    const path = `/v1beta/models/fx-g:${streamed ? "streamGenerateContent?alt=sse" : "generateContent"}`;
    const text = await raw(path, { contents: [{ parts: [{ text: "Hi" }] }] });
    expect(text).toContain('"modelStatus":{"modelStage":"STABLE"}');
    expect(text).toContain('"finishMessage":"Done by [key]."');
    expect(text).toContain('{"partMetadata":{"key":"value"},"functionCall":{');
    expect(text).not.toContain("left_out");
  });

  it("has the fields of a response", async () => {
    const client = new OpenAI({ baseURL: `${url()}/v1`, apiKey: gateway.key, maxRetries: 0 });
    const asked = { model: "fx-r", input: "Hi" };
    const response = streamed
      ? await client.responses.stream(asked).finalResponse()
      : await client.responses.create(asked);
    expect(response).toMatchObject({ moderation: MODERATION, output_text: "Hello.", model: "fx-r" });
    const { id: _image, ...image } = DRAWN;
    const { id: _call, ...call } = CALLED;
    expect(response.output).toMatchObject([{ type: "message", phase: "commentary" }, image, call]);
    expect(response).not.toHaveProperty("billing");
    expect(response.id).not.toBe("resp_up");
  });

  it("has the fields of a chat completion, and not those of the gateway's own account", async () => {
    const client = new OpenAI({ baseURL: `${url()}/v1`, apiKey: gateway.key, maxRetries: 0 });
    const asked = { model: "fx-o", messages: [{ role: "user" as const, content: "Hi" }] };
    const completion = streamed
      ? await client.chat.completions.stream(asked).finalChatCompletion()
      : await client.chat.completions.create(asked);
    const [choice] = completion.choices;
    expect(choice).toMatchObject({
      content_filter_results: FILTERS,
      message: { content: "Hello.", notes: PROVIDER_SPECIFIC, mood: "good" },
    });
    expect(completion).toMatchObject({
      system_fingerprint: "fp_1",
      citations: ["https://example.com/"],
      model: "fx-o",
    });
    const text = await raw("/v1/chat/completions", { ...asked, stream: streamed });
    expect(text).not.toMatch(/org-of-the-gateway|somebody|"cost":/);
    expect(text.match(/"parley":/g)).toHaveLength(1);
  });

  it.each([
    ["fx-a", ["anthropic.compaction", "anthropic.caller", "anthropic.container", "anthropic.context_management"]],
    ["fx-g", ["gemini.executableCode", "gemini.avgLogprobs", "gemini.finishMessage", "gemini.safety_ratings"]],
    ["fx-r", ["openai-responses.moderation", "openai-responses.revised_prompt", "openai-responses.message.phase"]],
  ])("of another dialect (%s) is without them, and lists what was left out", async (model, names) => {
    const asked = { model, messages: [{ role: "user", content: "Hi" }], stream: streamed };
    const text = await raw("/v1/chat/completions", asked);
    const [, leftOut = "[]"] = /"left_out":(\[[^\]]*\])/.exec(text) ?? [];
    expect(JSON.parse(leftOut)).toEqual(expect.arrayContaining(names));
    expect(text).not.toMatch(/What was said|"modelStatus"|flagged/);
  });

  it("of chat completions is without them in another format", async () => {
    const asked = { model: "fx-o", max_tokens: 100, messages: [{ role: "user", content: "Hi" }], stream: streamed };
    const text = await raw("/v1/messages", asked);
    expect(text).toContain('"openai.message.notes"');
    expect(text).not.toContain('"type":"note"');
  });
});

/* Calls of chat completions with fields that only their dialect has. */
const TOOL_CALLS = [
  {
    id: "call_1",
    type: "function",
    function: { name: "f", arguments: '{"a":1}', confidence: 0.5 },
    caller: { type: "program" },
    mood: "good",
    from: `at ${CREDENTIAL}`,
  },
  { id: "call_2", type: "custom", custom: { name: "g", input: "x", depth: 2 }, mood: "sad" },
  { id: "call_3", type: "function", function: { name: "f", arguments: "{}" } },
];
const CALL_PIECES = [
  {
    index: 0,
    id: "call_1",
    type: "function",
    function: { name: "f", arguments: "" },
    caller: { type: "program" },
    mood: "go",
  },
  { index: 0, function: { arguments: '{"a":1}' }, from: `at ${CREDENTIAL}` },
  { index: 0, mood: "od", function: { confidence: 0.5 } },
  { index: 1, id: "call_2", type: "custom", custom: { name: "g", input: "" } },
  { index: 1, type: "custom", custom: { input: "x", depth: 2 }, mood: "sad" },
  // No call has this index.
  { index: 7, mood: "lost" },
  { index: 2, id: "call_3", type: "function", function: { name: "f", arguments: "{}" } },
];

describe.each([false, true])("calls of a chat completion (streamed: %s)", (streamed) => {
  const asked = { model: "fx-o", messages: [{ role: "user" as const, content: "Hi" }] };

  beforeEach(() => {
    answer = (exchange) => {
      const message = { role: "assistant", content: null, tool_calls: TOOL_CALLS };
      const pieces = CALL_PIECES.map((piece) => ({
        data: { choices: [{ index: 0, delta: { tool_calls: [piece] } }] },
      }));
      if (streamed) stream(exchange, [...pieces, { data: { choices: [{ index: 0, finish_reason: "tool_calls" }] } }]);
      else answerJson(exchange.response, 200, { choices: [{ index: 0, message, finish_reason: "tool_calls" }] });
    };
  });

  it("have their fields for a caller of the dialect, without the gateway's credential", async () => {
    const client = new OpenAI({ baseURL: `${url()}/v1`, apiKey: gateway.key, maxRetries: 0 });
    const { choices } = streamed
      ? await client.chat.completions.stream(asked).finalChatCompletion()
      : await client.chat.completions.create(asked);
    const calls = choices[0]!.message.tool_calls as unknown as Json[];
    expect(calls).toMatchObject([
      {
        id: "call_1",
        type: "function",
        function: { name: "f", arguments: '{"a":1}' },
        caller: { type: "program" },
        mood: "good",
        from: "at [key]",
      },
      { id: "call_2", type: "custom", custom: { name: "g", input: "x" }, mood: "sad" },
      { id: "call_3", type: "function", function: { name: "f", arguments: "{}" } },
    ]);
    expect(calls).toHaveLength(3);
    expect(calls[2]).not.toHaveProperty("mood");
    const text = await raw("/v1/chat/completions", { ...asked, stream: streamed });
    // The client does not join these.
    expect(text).toContain('"function":{"confidence":0.5,');
    expect(text).toContain('"custom":{"depth":2,');
    expect(text).not.toContain("lost");
  });

  it("are without them in another format, which lists them", async () => {
    const text = await raw("/v1/messages", { ...asked, max_tokens: 100, stream: streamed });
    const [, leftOut = "[]"] = /"left_out":(\[[^\]]*\])/.exec(text) ?? [];
    expect(JSON.parse(leftOut)).toEqual(
      expect.arrayContaining(["openai.caller", "openai.mood", "openai.function.confidence", "openai.custom.depth"]),
    );
    expect(text).not.toContain("program");
  });
});

/* Texts and reasoning with fields that only their dialect has. */
const THOUGHT = { type: "thinking", thinking: "Hm.", signature: "c2ln", depth: 2 };
const MARKED = { type: "text", text: "Hello.", mood: { good: true } };
const MESSAGE = {
  type: "message",
  role: "assistant",
  content: [THOUGHT, { type: "redacted_thinking", data: "c2ln", depth: 3 }, MARKED, { type: "text", text: " Bye." }],
  stop_reason: "end_turn",
  usage: { input_tokens: 3, output_tokens: 4 },
};
const GEMINI_PARTS = [
  { text: "Hm.", thought: true, depth: 2 },
  { text: "Hel", mood: "go" },
  { text: "lo.", mood: "od", from: `at ${CREDENTIAL}` },
];
const MARKED_OUTPUT = [
  {
    type: "reasoning",
    id: "rs_1",
    summary: [{ type: "summary_text", text: "Hm." }],
    encrypted_content: "gAAAA",
    depth: 2,
  },
  {
    type: "message",
    id: "m_1",
    role: "assistant",
    status: "completed",
    content: [
      { type: "output_text", text: "Hello.", annotations: [], mood: "good" },
      { type: "output_text", text: " Bye.", annotations: [], mood: "sad" },
    ],
  },
];
const MARKED_RESPONSE = { id: "resp_up", status: "completed", output: MARKED_OUTPUT };

function* messageEvents(): Generator<SentEvent> {
  yield { data: { type: "message_start", message: { usage: { input_tokens: 3 } } } };
  for (const [index, block] of MESSAGE.content.entries()) {
    const begun = { ...block, ...("text" in block && { text: "" }), ...("thinking" in block && { thinking: "" }) };
    yield {
      data: {
        type: "content_block_start",
        index,
        content_block: { ...begun, ...("signature" in block && { signature: "" }) },
      },
    };
    if ("text" in block)
      yield { data: { type: "content_block_delta", index, delta: { type: "text_delta", text: block.text } } };
    if ("thinking" in block) {
      yield {
        data: { type: "content_block_delta", index, delta: { type: "thinking_delta", thinking: block.thinking } },
      };
      yield {
        data: { type: "content_block_delta", index, delta: { type: "signature_delta", signature: block.signature } },
      };
    }
    yield { data: { type: "content_block_stop", index } };
  }
  yield { data: { type: "message_delta", delta: { stop_reason: "end_turn" }, usage: { output_tokens: 4 } } };
  yield { data: { type: "message_stop" } };
}

describe.each([false, true])(
  "texts and reasoning for a caller of the provider's dialect (streamed: %s)",
  (streamed) => {
    beforeEach(() => {
      answer = (exchange) => {
        const path = exchange.request.url ?? "";
        const whole = { candidates: [{ content: { parts: GEMINI_PARTS }, finishReason: "STOP" }] };
        const pieces = GEMINI_PARTS.map((part) => ({ data: { candidates: [{ content: { parts: [part] } }] } }));
        const end = { data: { candidates: [{ content: { parts: [] }, finishReason: "STOP" }] } };
        if (path.includes("streamGenerateContent")) stream(exchange, [...pieces, end]);
        else if (path.includes("generateContent")) answerJson(exchange.response, 200, whole);
        else if (path.endsWith("/messages"))
          if (streamed) stream(exchange, [...messageEvents()]);
          else answerJson(exchange.response, 200, MESSAGE);
        else if (streamed) stream(exchange, [{ data: { type: "response.completed", response: MARKED_RESPONSE } }]);
        else answerJson(exchange.response, 200, MARKED_RESPONSE);
      };
    });

    it("have the fields of Messages", async () => {
      const client = new Anthropic({ baseURL: url(), apiKey: gateway.key, maxRetries: 0 });
      const asked = { model: "fx-a", max_tokens: 100, messages: [{ role: "user" as const, content: "Hi" }] };
      const { content } = streamed
        ? await client.messages.stream(asked).finalMessage()
        : await client.messages.create(asked);
      const { signature: _, ...thought } = THOUGHT;
      expect(content).toMatchObject([
        thought,
        { type: "redacted_thinking", depth: 3 },
        MARKED,
        { type: "text", text: " Bye." },
      ]);
      expect(content[3]).not.toHaveProperty("mood");
    });

    it("have the fields of Gemini's parts, joined as their texts", async () => {
      const { models } = new GoogleGenAI({ apiKey: gateway.key, vertexai: false, httpOptions: { baseUrl: url() } });
      const asked = { model: "fx-g", contents: "Hi", config: { thinkingConfig: { includeThoughts: true } } };
      const pieces = [];
      if (streamed) for await (const piece of await models.generateContentStream(asked)) pieces.push(piece);
      else pieces.push(await models.generateContent(asked));
      const parts = pieces.flatMap((piece) => piece.candidates![0]!.content?.parts ?? []);
      const thoughts = parts.filter(({ thought }) => thought);
      const texts = parts.filter(({ thought }) => !thought);
      expect(Object.assign({}, ...thoughts)).toMatchObject({ depth: 2 });
      expect(Object.assign({}, ...texts)).toMatchObject({ mood: "good", from: "at [key]" });
      expect([thoughts, texts].map((all) => all.map(({ text }) => text).join(""))).toEqual(["Hm.", "Hello."]);
    });

    it("have the fields of items of the Responses API, and of their texts", async () => {
      const client = new OpenAI({ baseURL: `${url()}/v1`, apiKey: gateway.key, maxRetries: 0 });
      const asked = { model: "fx-r", input: "Hi", include: ["reasoning.encrypted_content" as const] };
      const { output } = streamed
        ? await client.responses.stream(asked).finalResponse()
        : await client.responses.create(asked);
      const [reasoning, message] = MARKED_OUTPUT;
      expect(output).toMatchObject([
        { type: "reasoning", summary: reasoning!.summary, depth: 2 },
        { type: "message", content: message!.content },
      ]);
    });

    it("are without them in another format, which lists them", async () => {
      for (const [model, names] of [
        ["fx-a", ["anthropic.depth", "anthropic.mood"]],
        ["fx-g", ["gemini.depth", "gemini.mood", "gemini.from"]],
        ["fx-r", ["openai-responses.depth", "openai-responses.content.mood"]],
      ] as const) {
        const text = await raw("/v1/chat/completions", {
          model,
          messages: [{ role: "user", content: "Hi" }],
          stream: streamed,
        });
        const [, leftOut = "[]"] = /"left_out":(\[[^\]]*\])/.exec(text) ?? [];
        expect(JSON.parse(leftOut)).toEqual(expect.arrayContaining([...names]));
      }
    });
  },
);

async function raw(path: string, body: object): Promise<string> {
  const response = await fetch(url() + path, {
    method: "POST",
    headers: { "content-type": "application/json", authorization: `Bearer ${gateway.key}` },
    body: JSON.stringify(body),
  });
  expect(response.status).toBe(200);
  return response.text();
}
