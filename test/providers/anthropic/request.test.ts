import { describe, expect, it } from "vitest";
import { type CompletionRequest, Modality, ReasoningEffort } from "../../../gen/parley/v1/completion_pb.js";
import { ToolMode } from "../../../gen/parley/v1/message_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { Translation, UpstreamModel } from "../../../src/core/provider.ts";
import { toAnthropicRequest } from "../../../src/providers/anthropic/request.ts";
import {
  assistant,
  image,
  imageUrl,
  request,
  system,
  text,
  TIME,
  tool,
  toolResult,
  user,
  WEATHER,
  WEATHER_SCHEMA,
} from "./builders.ts";
import { readFixtureJson } from "./fixtures.ts";
import { adaptiveModel, budgetModel, switchableModel } from "./model.ts";

const PNG = Buffer.from(
  "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==",
  "base64",
);
const SIGNED = { text: "Need the tool.", signature: "EqQBsigFixture==" };
const PARIS = { id: "toolu_01Paris", name: "get_weather", arguments: '{"city":"Paris"}' };

function translate(request: CompletionRequest, model: UpstreamModel, mode: "whole" | "stream" = "whole"): Translation {
  return toAnthropicRequest(request, model, mode);
}

function bodyOf(request: CompletionRequest, model: UpstreamModel = budgetModel()): Record<string, unknown> {
  return JSON.parse(translate(request, model).body) as Record<string, unknown>;
}

const messagesOf = (request: CompletionRequest, model?: UpstreamModel): unknown => bodyOf(request, model)["messages"];

function refusalOf(request: CompletionRequest, model: UpstreamModel = budgetModel()): Failure {
  try {
    translate(request, model);
  } catch (reason) {
    if (reason instanceof Failure) return reason;
    throw reason;
  }
  throw new Error("the request was translated");
}

/** Our contract does not tell a string from a list of one text: both are the same to the provider. */
function withResultLists(body: unknown): unknown {
  return JSON.parse(JSON.stringify(body), (_, value: unknown) => {
    const block = value as { type?: string; content?: unknown } | null;
    const plain = block?.type === "tool_result" && typeof block.content === "string";
    return plain ? { ...block, content: [{ type: "text", text: block.content }] } : value;
  });
}

describe("the request of fixture", () => {
  const rows: [number: string, what: string, request: CompletionRequest, model: UpstreamModel, mode?: "stream"][] = [
    [
      "01",
      "system messages, a clamped temperature and the default token limit (traps 36, 58, 60)",
      request({
        messages: [system("You are terse."), system("Answer in English."), user("Say hi")],
        temperature: 1.4,
        user: "u-42",
      }),
      budgetModel(),
    ],
    [
      "02",
      "a stream with stop sequences (trap 55)",
      request({ maxTokens: 64, stop: ["END", "\n"], messages: [user("Greet me in Japanese")] }),
      budgetModel(),
      "stream",
    ],
    [
      "03",
      "a forced tool, one at a time",
      request({
        maxTokens: 256,
        messages: [user("Weather in Paris?")],
        tools: [WEATHER],
        toolChoice: { choice: { case: "mode", value: ToolMode.REQUIRED } },
        parallelToolCalls: false,
      }),
      budgetModel(),
    ],
    [
      "04",
      "several tools",
      request({ maxTokens: 512, messages: [user("Weather in Paris and Rome, and the time?")], tools: [WEATHER, TIME] }),
      budgetModel(),
      "stream",
    ],
    [
      "05",
      "tool results that join the user's next turn (traps 40, 42, 44, 45)",
      request({
        maxTokens: 128,
        tools: [WEATHER, TIME],
        messages: [
          user("Weather in Paris and time?"),
          assistant(undefined, {
            toolCalls: [
              { id: "call.1:a", name: "get_weather", arguments: '{"city":"Paris"}' },
              { id: "call_2", name: "get_time", arguments: "" },
            ],
          }),
          toolResult("call.1:a", "18C"),
          toolResult("call_2", "12:00"),
          user("Thanks, summarise."),
        ],
      }),
      budgetModel(),
    ],
    [
      "06",
      "pictures by bytes and by address",
      request({
        maxTokens: 64,
        messages: [user([text("Compare"), image(PNG, "low"), imageUrl("https://example.com/a.jpg")])],
      }),
      budgetModel(),
    ],
    [
      "07",
      "an effort as a budget, without a temperature (trap 58)",
      request({
        maxTokens: 2000,
        reasoningEffort: ReasoningEffort.LOW,
        temperature: 0.2,
        messages: [user("2+2?")],
      }),
      budgetModel(),
      "stream",
    ],
    [
      "08",
      "reasoning that comes back in a tool loop",
      request({
        maxTokens: 2048,
        reasoningEffort: ReasoningEffort.LOW,
        tools: [WEATHER],
        messages: [
          user("Weather in Paris?"),
          assistant(undefined, { reasoning: [SIGNED], toolCalls: [PARIS] }),
          toolResult("toolu_01Paris", "18C"),
        ],
      }),
      budgetModel(),
    ],
    [
      "09",
      "an adapted effort, without sampling parameters (trap 58)",
      request({
        maxTokens: 200,
        temperature: 0.3,
        topP: 0.9,
        reasoningEffort: ReasoningEffort.MINIMAL,
        messages: [user("…")],
      }),
      adaptiveModel(),
      "stream",
    ],
    [
      "10",
      "a JSON schema in the form that is enforced (trap 64)",
      request({
        maxTokens: 100,
        messages: [user("Pick a number")],
        responseFormat: {
          format: {
            case: "jsonSchema",
            value: {
              name: "answer",
              strict: true,
              schemaJson: JSON.stringify({
                type: "object",
                properties: { n: { type: "integer", minimum: 1 } },
                required: ["n"],
                additionalProperties: false,
              }),
            },
          },
        },
      }),
      budgetModel(),
    ],
    [
      "17",
      "a model that reasons unasked",
      request({ maxTokens: 4000, tools: [WEATHER], messages: [user("Weather in Paris?")] }),
      adaptiveModel(),
      "stream",
    ],
    [
      "18",
      "interleaved reasoning back in its places (traps 94, 95, 96)",
      request({
        maxTokens: 4000,
        tools: [WEATHER],
        messages: [
          user("Weather in Paris?"),
          assistant("Looking it up. ", {
            reasoning: [
              { text: "Need data.", signature: "EqQBsigA==" },
              { text: "", signature: "EqQBsigB==", textOffset: 15 },
            ],
            toolCalls: [{ ...PARIS, arguments: '{"city": "Paris"}' }],
          }),
          toolResult("toolu_01Paris", "18C"),
        ],
      }),
      adaptiveModel(),
    ],
    [
      "19",
      "a system message in the middle of the conversation (trap 37)",
      request({
        maxTokens: 1000,
        messages: [
          system("You are terse."),
          user("Hi"),
          assistant("Hello."),
          user("Rename the file."),
          system("The workspace is read-only now."),
        ],
      }),
      switchableModel(),
    ],
  ];

  it.each(rows)("%s: %s", (number, _, request, model, mode) => {
    const body: unknown = JSON.parse(translate(request, model, mode).body);
    expect(withResultLists(body)).toEqual(withResultLists(readFixtureJson(number, "upstream-request.json")));
  });
});

describe("what is omitted or clamped", () => {
  const noted = (init: Parameters<typeof request>[0], model: UpstreamModel = budgetModel()): unknown => {
    const { omitted, clamped } = translate(request(init), model);
    return [...omitted, ...clamped.map(({ field, from, to }) => `${field}: ${from} -> ${to}`)];
  };
  const optionsOf = (effort: ReasoningEffort): Parameters<typeof request>[0] => ({ reasoningEffort: effort, maxTokens: 4000 });

  it.each<[string, Parameters<typeof request>[0], UpstreamModel, string[]]>([
    ["trap 57: parameters without a place are left out and listed", { seed: 1n, frequencyPenalty: 1, presencePenalty: -1, logitBias: { "1": 2 }, metadata: { a: "b" }, store: true, verbosity: "low", prediction: "x", promptCacheKey: "k" }, budgetModel(), ["seed", "frequency_penalty", "presence_penalty", "logit_bias", "metadata", "store", "verbosity", "prediction", "prompt_cache_key"]],
    ["trap 56: log probabilities are left out and listed", { logprobs: true, topLogprobs: 3 }, budgetModel(), ["logprobs", "top_logprobs"]],
    ["options of another dialect are listed by name", { openaiOptionsJson: { web_search_options: "{}", moderation: "{}" } }, budgetModel(), ["moderation", "web_search_options"]],
    ["options of pictures and speech are listed", { imageOptions: { size: "1K" }, audioOptions: { voice: "a" } }, budgetModel(), ["image_config", "audio"]],
    ["what has no effect is not listed", { store: false, n: 1, parallelToolCalls: true, logprobs: false, frequencyPenalty: 0, presencePenalty: 0, verbosity: "medium" }, budgetModel(), []],
    ["a default of sampling is not listed where sampling is not taken", { temperature: 1, topP: 1 }, adaptiveModel(), []],
    ["sampling is listed where it is not taken", { temperature: 0.5, topP: 0.5 }, adaptiveModel(), ["temperature", "top_p"]],
    ["trap 58: a temperature above the range is clamped", { temperature: 1.4 }, budgetModel(), ["temperature: 1.4 -> 1"]],
    ["trap 59: top_p gives way to temperature", { temperature: 0.5, topP: 0.5 }, budgetModel(), ["top_p"]],
    ["trap 60: a token limit above the model's is clamped", { maxTokens: 70_000 }, budgetModel(), ["max_tokens: 70000 -> 64000"]],
    ["trap 55: blank stop sequences are listed by index", { stop: ["a", " ", "\n"] }, budgetModel(), ["stop[1]", "stop[2]"]],
    ["an unknown service tier is listed", { serviceTier: "flex" }, budgetModel(), ["service_tier"]],
    ["the second of two user IDs is listed", { user: "a", safetyIdentifier: "b" }, budgetModel(), ["safety_identifier"]],
    ["trap 62: a forced choice without tools is listed", { toolChoice: { choice: { case: "mode", value: ToolMode.REQUIRED } } }, budgetModel(), ["tool_choice"]],
    ["trap 63: a forced choice that the model cannot obey is listed", { tools: [WEATHER], toolChoice: { choice: { case: "function", value: "get_weather" } } }, adaptiveModel(), ["tool_choice"]],
    ["a strict tool with an open schema is listed", { tools: [tool("f", { type: "object" }, { strict: true })] }, budgetModel(), ["tools[0].strict"]],
    ["an effort is listed when the limit leaves no room for it", { reasoningEffort: ReasoningEffort.HIGH, maxTokens: 1024 }, budgetModel(), ["reasoning_effort"]],
    ["an effort is listed where there is no reasoning", optionsOf(ReasoningEffort.LOW), budgetModel({ reasoning: "none" }), ["reasoning_effort"]],
    ["no effort is not listed where there is no reasoning", optionsOf(ReasoningEffort.NONE), budgetModel({ reasoning: "none" }), []],
    ["trap 47: a speaker's name is listed", { messages: [{ ...user("hi"), name: "Ann" }] }, budgetModel(), ["messages[0].name"]],
    ["a picture's detail is listed", { messages: [user([image(PNG, "high")])] }, budgetModel(), ["messages[0].content[0].image_url.detail"]],
    ["strictness that is only asked for in words is listed", { responseFormat: { format: { case: "jsonSchema", value: { name: "a", schemaJson: "{}", strict: true } } } }, budgetModel({ jsonSchema: false }), ["response_format.json_schema.strict"]],
  ])("%s", (_, init, model, expected) => {
    expect(noted(init, model)).toEqual(expected);
  });

  it("trap 57: nothing that is omitted is in the body", () => {
    const body = bodyOf(request({ seed: 1n, logprobs: true, metadata: { a: "b" }, store: true, unrecognizedFields: ["x"] }));
    expect(Object.keys(body).toSorted()).toEqual(["max_tokens", "messages", "model"]);
  });
});

describe("what is refused", () => {
  const custom = { kind: { case: "custom", value: { name: "c" } } } as const;
  const part = (content: NonNullable<Parameters<typeof user>[0][number]>): CompletionRequest =>
    request({ messages: [user("a"), user([content as never])] });

  it.each<[string, CompletionRequest, string, UpstreamModel?]>([
    ["trap 54: more than one choice", request({ n: 2 }), "n"],
    ["an answer with pictures", request({ modalities: [Modality.TEXT, Modality.IMAGE] }), "modalities"],
    ["a recording", part({ content: { case: "audio", value: { format: "wav" } } } as never), "messages[1].content[0]"],
    ["an upload by ID", part({ content: { case: "file", value: { source: { case: "id", value: "f" } } } } as never), "messages[1].content[0]"],
    ["a document of an unknown kind", part({ content: { case: "file", value: { source: { case: "data", value: PNG }, mediaType: "application/zip" } } } as never), "messages[1].content[0]"],
    ["a text document that is not UTF-8", part({ content: { case: "file", value: { source: { case: "data", value: Buffer.from([0xff]) }, mediaType: "text/plain" } } } as never), "messages[1].content[0]"],
    ["trap 48: a picture of an unknown kind", part(image(Buffer.from("BM….")) as never), "messages[1].content[0]"],
    ["a picture by a plain http address", part(imageUrl("http://example.com/a.png") as never), "messages[1].content[0]"],
    ["a picture by address for a model that reads none", part(imageUrl("https://example.com/a.png") as never), "messages[1].content[0]", budgetModel({ imageUrls: false })],
    ["a picture for a model without eyes", part(image(PNG) as never), "messages[1].content[0]", { ...budgetModel(), inputModalities: new Set([Modality.TEXT]) }],
    ["a picture in a system message", request({ messages: [system([image(PNG)]), user("a")] }), "messages[0].content[0]"],
    ["a custom tool", request({ tools: [WEATHER, custom] }), "tools[1]"],
    ["a call of a custom tool", request({ messages: [user("a"), assistant("b", { toolCalls: [{ id: "c", name: "d", custom: true }] })] }), "messages[1].tool_calls[0]"],
    ["a choice of a custom tool", request({ tools: [WEATHER], toolChoice: { choice: { case: "custom", value: "c" } } }), "tool_choice"],
    ["tools for a model without", request({ tools: [WEATHER] }), "tools", budgetModel({ tools: false })],
    ["a tool whose arguments are no object", request({ tools: [tool("f", { type: "string" })] }), "tools[0].function.parameters.type"],
    ["a schema that is none", request({ responseFormat: { format: { case: "jsonSchema", value: { name: "a", schemaJson: "[]" } } } }), "response_format.json_schema.schema"],
    ["trap 43: a result of no call", request({ messages: [user("a"), toolResult("x", "y")] }), "messages[1].tool_call_id"],
    ["trap 52: a last word of the model that it cannot continue", request({ messages: [user("a"), assistant("b")] }), "messages", adaptiveModel()],
    ["trap 52: a last word of the model while it reasons", request({ messages: [user("a"), assistant("b")], reasoningEffort: ReasoningEffort.LOW }), "messages"],
    ["a conversation without content", request({ messages: [user(" ")] }), "messages"],
    ["a role of no meaning", request({ messages: [{ content: [text("a")] }, user("b")] }), "messages[0].role"],
  ])("%s", (_, request, field, model) => {
    expect(refusalOf(request, model)).toMatchObject({ code: "invalid_request", param: field });
  });
});

describe("messages", () => {
  const textBlock = (value: string): object => ({ type: "text", text: value });

  it("joins neighbouring messages of one role", () => {
    const messages = [user("a"), user("b"), assistant("c"), assistant("d"), user("e")];
    expect(messagesOf(request({ messages }))).toEqual([
      { role: "user", content: [textBlock("a"), textBlock("b")] },
      { role: "assistant", content: [textBlock("c"), textBlock("d")] },
      { role: "user", content: [textBlock("e")] },
    ]);
  });

  it("trap 38: asks the last of only system messages as the user", () => {
    expect(bodyOf(request({ messages: [system("a"), system("b")] }))).toMatchObject({
      system: [textBlock("a")],
      messages: [{ role: "user", content: [textBlock("b")] }],
    });
  });

  it("trap 37: hoists a later system message only where the model neither knows it nor binds its reasoning", () => {
    const conversation = request({ messages: [user("a"), system("s"), user("b")] });
    expect(bodyOf(conversation)).toMatchObject({ system: [textBlock("s")], messages: [{ content: [textBlock("a"), textBlock("b")] }] });
    const kept = [{ role: "user", content: [textBlock("a"), textBlock("s"), textBlock("b")] }];
    expect(messagesOf(conversation, adaptiveModel({ midConversationSystem: false }))).toEqual(kept);
    // Between two turns of the user it may not stand by itself.
    expect(messagesOf(conversation, switchableModel())).toEqual(kept);
  });

  it("keeps a system message behind the tool results that it was written before", () => {
    const messages = [user("a"), assistant(undefined, { toolCalls: [PARIS] }), system("s"), toolResult(PARIS.id, "18C")];
    expect(messagesOf(request({ messages, tools: [WEATHER] }), switchableModel())).toMatchObject([
      { role: "user" },
      { role: "assistant" },
      { role: "user", content: [{ type: "tool_result" }, textBlock("s")] },
    ]);
  });

  it("trap 42: puts the results of several calls into one turn, in the order of the calls", () => {
    const messages = [
      user("a"),
      assistant(undefined, { toolCalls: [{ ...PARIS, id: "one" }, { ...PARIS, id: "two" }] }),
      toolResult("two", "2"),
      user("and?"),
      toolResult("one", "1"),
    ];
    expect(messagesOf(request({ messages, tools: [WEATHER] }))).toMatchObject([
      {},
      {},
      {
        role: "user",
        content: [
          { type: "tool_result", tool_use_id: "one", content: "1" },
          { type: "tool_result", tool_use_id: "two", content: "2" },
          textBlock("and?"),
        ],
      },
    ]);
  });

  it("trap 40: sends no empty text", () => {
    const messages = [user("a"), assistant("", { toolCalls: [PARIS] }), toolResult(PARIS.id, "")];
    expect(messagesOf(request({ messages, tools: [WEATHER] }))).toEqual([
      { role: "user", content: [textBlock("a")] },
      { role: "assistant", content: [{ type: "tool_use", id: PARIS.id, name: "get_weather", input: { city: "Paris" } }] },
      { role: "user", content: [{ type: "tool_result", tool_use_id: PARIS.id }] },
    ]);
  });

  it("trap 44: gives calls whose IDs repeat, collide or are too long IDs of their own, the same each time", () => {
    const call = (id: string): NonNullable<Parameters<typeof assistant>[1]> => ({ toolCalls: [{ id, name: "f" }] });
    const ids = ["a.b", "a_b", "a.b", "x".repeat(70), ""];
    const messages = ids.flatMap((id) => [user("q"), assistant(undefined, call(id)), toolResult(id, "r")]);
    const turns = messagesOf(request({ messages })) as { content: { type: string; id?: string; tool_use_id?: string }[] }[];
    const blocks = turns.flatMap(({ content }) => content);
    const opened = blocks.filter(({ type }) => type === "tool_use").map(({ id }) => id);
    expect(new Set(opened).size).toBe(ids.length);
    for (const id of opened) expect(id).toMatch(/^[A-Za-z0-9_-]{1,64}$/);
    expect(opened.slice(0, 1)).toEqual(["a_b"]);
    expect(blocks.filter(({ type }) => type === "tool_result").map((block) => block.tool_use_id)).toEqual(opened);
    expect(messagesOf(request({ messages }))).toEqual(turns);
  });

  it.each([
    ["{}", ""],
    ["{}", " "],
    ['{"arguments":"[1]"}', "[1]"],
    ['{"arguments":"{\\"a\\":"}', '{"a":'],
    ['{"arguments":"null"}', "null"],
    ['{"n":12345678901234567890}', '{"n": 12345678901234567890}'],
  ])("traps 45 and 46: sends %s for the arguments %s", (expected, written) => {
    const messages = [user("a"), assistant(undefined, { toolCalls: [{ ...PARIS, arguments: written }] }), toolResult(PARIS.id, "r")];
    expect(translate(request({ messages, tools: [WEATHER] }), budgetModel()).body).toContain(`"input":${expected}}`);
  });

  it("trap 48: declares a picture by its bytes, whatever its type is said to be", () => {
    const jpeg = Buffer.from([0xff, 0xd8, 0xff, 0xe0]);
    const webp = Buffer.from("RIFF....WEBPVP8 ");
    const wrong = { content: { case: "image", value: { source: { case: "data", value: jpeg }, mediaType: "image/png" } } } as const;
    expect(messagesOf(request({ messages: [user([wrong, image(webp), image(Buffer.from("GIF89a"))])] }))).toMatchObject([
      { content: ["image/jpeg", "image/webp", "image/gif"].map((media_type) => ({ source: { media_type } })) },
    ]);
  });

  it("sends PDF and text documents", () => {
    const file = (data: string, mediaType: string, name = ""): Parameters<typeof user>[0][number] =>
      ({ content: { case: "file", value: { source: { case: "data", value: Buffer.from(data) }, mediaType, name } } }) as never;
    const parts = [file("%PDF-1.7", "", "a.pdf"), file("Grüße", "text/plain; charset=utf-8")] as never[];
    expect(messagesOf(request({ messages: [user(parts)] }))).toEqual([
      {
        role: "user",
        content: [
          {
            type: "document",
            title: "a.pdf",
            source: { type: "base64", media_type: "application/pdf", data: Buffer.from("%PDF-1.7").toString("base64") },
          },
          { type: "document", source: { type: "text", media_type: "text/plain", data: "Grüße" } },
        ],
      },
    ]);
  });

  it("trap 50: sends a picture inside a tool result", () => {
    const messages = [user("a"), assistant(undefined, { toolCalls: [PARIS] }), toolResult(PARIS.id, [text("see"), image(PNG)])];
    expect(messagesOf(request({ messages, tools: [WEATHER] }))).toMatchObject([
      {},
      {},
      { content: [{ type: "tool_result", content: [textBlock("see"), { type: "image" }] }] },
    ]);
  });

  it("trap 51: shows the model's own pictures in the user's next turn, and lists them when there is none", () => {
    const answer = assistant([text("Here."), image(PNG)]);
    expect(messagesOf(request({ messages: [user("draw"), answer, user("bluer")] }))).toMatchObject([
      {},
      { role: "assistant", content: [textBlock("Here.")] },
      { role: "user", content: [{ type: "image" }, textBlock("bluer")] },
    ]);
    const last = translate(request({ messages: [user("draw"), answer] }), budgetModel());
    expect(last.omitted).toEqual(["messages[1].content[1]"]);
  });

  it("trap 52: trims the beginning of an answer that the model continues", () => {
    const messages = [user("a"), assistant("Once \n", { reasoning: [SIGNED] })];
    expect(messagesOf(request({ messages }))).toEqual([
      { role: "user", content: [textBlock("a")] },
      { role: "assistant", content: [textBlock("Once")] },
    ]);
  });

  it("sends a refusal as the text that it was", () => {
    const messages = [user("a"), assistant(undefined, { refusal: "No." }), user("b")];
    expect(messagesOf(request({ messages }))).toMatchObject([{}, { role: "assistant", content: [textBlock("No.")] }, {}]);
  });
});

describe("tools", () => {
  const choose = (choice: NonNullable<Parameters<typeof request>[0]["toolChoice"]>["choice"]): unknown =>
    bodyOf(request({ tools: [WEATHER, TIME], toolChoice: { choice: choice as never } }));

  it("says which tools to call", () => {
    expect(choose({ case: "mode", value: ToolMode.AUTO })).not.toHaveProperty("tool_choice");
    expect(choose({ case: "mode", value: ToolMode.NONE })).toMatchObject({ tool_choice: { type: "none" }, tools: [{}, {}] });
    expect(choose({ case: "mode", value: ToolMode.REQUIRED })).toMatchObject({ tool_choice: { type: "any" } });
    expect(choose({ case: "function", value: "get_time" })).toMatchObject({ tool_choice: { type: "tool", name: "get_time" } });
    const allowed = choose({ case: "allowed", value: { mode: ToolMode.REQUIRED, names: ["get_time"] } as never });
    expect(allowed).toMatchObject({ tools: [{ name: "get_time" }], tool_choice: { type: "any" } });
  });

  it("forbids parallel calls also where nothing else is chosen", () => {
    expect(bodyOf(request({ tools: [WEATHER], parallelToolCalls: false }))).toMatchObject({
      tool_choice: { type: "auto", disable_parallel_tool_use: true },
    });
  });

  it("trap 62: drops what belongs to tools when there are none", () => {
    const body = bodyOf(request({ parallelToolCalls: false, toolChoice: { choice: { case: "mode", value: ToolMode.NONE } } }));
    expect(Object.keys(body).toSorted()).toEqual(["max_tokens", "messages", "model"]);
  });

  it("trap 53: declares the tools of earlier calls when the request has none", () => {
    const messages = [user("a"), assistant(undefined, { toolCalls: [PARIS] }), toolResult(PARIS.id, "18C")];
    expect(bodyOf(request({ messages }))).toMatchObject({
      tools: [{ name: "get_weather", input_schema: { type: "object", properties: {} } }],
      tool_choice: { type: "none" },
    });
  });

  it.each([
    ["none", undefined, { type: "object", properties: {} }],
    ["an empty schema", {}, { type: "object", properties: {} }],
    ["a schema without a type", { properties: { a: {} } }, { type: "object", properties: { a: {} } }],
  ])("trap 65: completes the arguments of a tool with %s", (_, parameters, expected) => {
    expect(bodyOf(request({ tools: [tool("f", parameters)] }))).toMatchObject({ tools: [{ input_schema: expected }] });
  });

  it("enforces a strict tool whose schema can be enforced", () => {
    expect(bodyOf(request({ tools: [tool("f", WEATHER_SCHEMA, { strict: true })] }))).toMatchObject({ tools: [{ strict: true }] });
  });

  it("trap 63: stops manual reasoning when a tool is forced", () => {
    const forced = request({
      tools: [WEATHER],
      maxTokens: 4000,
      reasoningEffort: ReasoningEffort.HIGH,
      toolChoice: { choice: { case: "mode", value: ToolMode.REQUIRED } },
    });
    expect(bodyOf(forced)).toMatchObject({ thinking: { type: "disabled" }, tool_choice: { type: "any" } });
    expect(translate(forced, budgetModel()).omitted).toEqual(["reasoning_effort"]);
  });
});

describe("reasoning", () => {
  const ask = (effort: ReasoningEffort, model: UpstreamModel, maxTokens = 10_000): unknown => {
    const { thinking, output_config } = bodyOf(request({ maxTokens, reasoningEffort: effort }), model);
    return [thinking, output_config];
  };
  const ADAPTIVE = { type: "adaptive", display: "summarized" };

  it.each([
    [ReasoningEffort.MINIMAL, 1024],
    [ReasoningEffort.LOW, 2000],
    [ReasoningEffort.MEDIUM, 5000],
    [ReasoningEffort.HIGH, 8000],
    [ReasoningEffort.XHIGH, 9500],
    [ReasoningEffort.MAX, 9500],
  ])("makes effort %i a budget of %i of 10,000 tokens", (effort, budget_tokens) => {
    expect(ask(effort, budgetModel())).toEqual([{ type: "enabled", budget_tokens }, undefined]);
  });

  it.each([
    [ReasoningEffort.MINIMAL, "low", "low"],
    [ReasoningEffort.MEDIUM, "medium", "medium"],
    [ReasoningEffort.XHIGH, "xhigh", "max"],
    [ReasoningEffort.MAX, "max", "max"],
  ])("passes effort %i on as %s, or as %s where that is not known", (effort, known, nearest) => {
    expect(ask(effort, adaptiveModel())).toEqual([ADAPTIVE, { effort: known }]);
    expect(ask(effort, adaptiveModel({ reasoningEfforts: ["low", "medium", "high", "max"] }))).toEqual([ADAPTIVE, { effort: nearest }]);
  });

  it("turns reasoning off where that is possible, and down where it is not", () => {
    expect(ask(ReasoningEffort.NONE, budgetModel())).toEqual([{ type: "disabled" }, undefined]);
    expect(ask(ReasoningEffort.NONE, switchableModel())).toEqual([{ type: "disabled" }, undefined]);
    expect(ask(ReasoningEffort.NONE, adaptiveModel())).toEqual([ADAPTIVE, { effort: "low" }]);
    expect(ask(ReasoningEffort.NONE, adaptiveModel({ reasoningByDefault: false }))).toEqual([undefined, undefined]);
  });

  it("trap 61: does not let unasked reasoning use up a small limit", () => {
    expect(ask(ReasoningEffort.UNSPECIFIED, switchableModel(), 200)).toEqual([{ type: "disabled" }, undefined]);
    expect(ask(ReasoningEffort.UNSPECIFIED, adaptiveModel(), 200)).toEqual([ADAPTIVE, { effort: "low" }]);
    expect(ask(ReasoningEffort.UNSPECIFIED, budgetModel(), 200)).toEqual([undefined, undefined]);
  });

  const looped = (reasoning: NonNullable<Parameters<typeof assistant>[1]>["reasoning"]): CompletionRequest =>
    request({
      maxTokens: 4000,
      reasoningEffort: ReasoningEffort.LOW,
      tools: [WEATHER],
      messages: [user("a"), assistant("Hm. ", { toolCalls: [PARIS], reasoning: reasoning ?? [] }), toolResult(PARIS.id, "18C")],
    });

  it("trap 92: stops manual reasoning when that of the running tool calls did not come back", () => {
    expect(bodyOf(looped([]))).toMatchObject({ thinking: { type: "disabled" } });
    expect(translate(looped([]), budgetModel()).omitted).toEqual(["reasoning_effort"]);
    const over = [...looped([]).messages, request({ messages: [assistant("18C"), user("b")] }).messages].flat();
    expect(bodyOf(request({ messages: over, tools: [WEATHER], maxTokens: 4000, reasoningEffort: ReasoningEffort.LOW }))).toMatchObject({
      thinking: { type: "enabled" },
    });
  });

  it("trap 93: sends all reasoning or none", () => {
    const torn = looped([SIGNED, { text: "unsigned" }]);
    expect(JSON.stringify(messagesOf(torn, adaptiveModel()))).not.toContain('"thinking"');
    const unsigned = looped([{ text: "unsigned" }]);
    expect(JSON.stringify(messagesOf(unsigned, adaptiveModel()))).not.toContain('"thinking"');
  });

  it("trap 96: gives the same bytes for the same conversation, and keeps them when it grows", () => {
    const first = looped([SIGNED, { redacted: "Em==" }]);
    const grown = { ...first, messages: [...first.messages, request({ messages: [assistant("18C"), user("b")] }).messages].flat() };
    const body = translate(first, adaptiveModel()).body;
    expect(translate(first, adaptiveModel()).body).toBe(body);
    const prefix = body.slice(body.indexOf('"messages":'), -2);
    expect(translate(grown as CompletionRequest, adaptiveModel()).body).toContain(prefix);
    expect(body).toContain('"block_binding":{"prefix_mismatch_behavior":"drop_block"}');
  });

  it("trap 101: leaves the state of other providers behind", () => {
    const foreign = {
      ...assistant("b", { toolCalls: [{ ...PARIS, signature: "gemini" }], reasoning: [{ text: "thought" }] }),
      signature: "gemini",
    };
    expect(translate(request({ messages: [user("a"), foreign, toolResult(PARIS.id, "r")] }), budgetModel()).body).not.toMatch(/gemini|thought/);
  });

  it("takes a high top_p beside reasoning, and no lower one", () => {
    const options = { maxTokens: 4000, reasoningEffort: ReasoningEffort.LOW };
    expect(bodyOf(request({ ...options, topP: 0.97 }))).toMatchObject({ top_p: 0.97 });
    expect(bodyOf(request({ ...options, topP: 0.9 }))).not.toHaveProperty("top_p");
  });
});

describe("JSON answers", () => {
  it("trap 68: asks for a JSON object in words", () => {
    const body = bodyOf(request({ messages: [system("a"), user("b")], responseFormat: { format: { case: "jsonObject", value: {} } } }));
    expect(body["system"]).toMatchObject([{ text: "a" }, { text: expect.stringContaining("JSON object") as string }]);
  });

  it("asks for a schema in words where the model has no mode for it", () => {
    const value = { name: "a", schemaJson: '{"type":"object","maxProperties":3}' };
    const body = bodyOf(request({ responseFormat: { format: { case: "jsonSchema", value } } }), budgetModel({ jsonSchema: false }));
    expect(body).not.toHaveProperty("output_config");
    expect(JSON.stringify(body["system"])).toContain("maxProperties");
  });

  it("trap 64: brings a schema into the form that is enforced", () => {
    const schema = {
      $schema: "https://json-schema.org/draft/2020-12/schema",
      properties: {
        when: { type: "string", format: "date-time", minLength: 3, description: "Then" },
        odd: { type: "string", format: "regex" },
        list: { type: "array", items: { $ref: "#/$defs/item" }, minItems: 2 },
        any: true,
        either: { oneOf: [{ const: 1 }, { type: "object", additionalProperties: true }] },
      },
      $defs: { item: { type: "object", properties: {}, additionalProperties: { type: "string" } } },
    };
    const value = { name: "a", description: "The answer", schemaJson: JSON.stringify(schema) };
    const { output_config } = bodyOf(request({ responseFormat: { format: { case: "jsonSchema", value } } }));
    expect(output_config).toEqual({
      format: {
        type: "json_schema",
        schema: {
          type: "object",
          description: "The answer",
          additionalProperties: false,
          properties: {
            when: { type: "string", format: "date-time", description: "Then\nminLength: 3" },
            odd: { type: "string", description: 'format: "regex"' },
            list: { type: "array", items: { $ref: "#/$defs/item" }, description: "minItems: 2" },
            any: {},
            either: { anyOf: [{ const: 1 }, { type: "object", additionalProperties: false }] },
          },
          $defs: {
            item: {
              type: "object",
              properties: {},
              additionalProperties: false,
              description: 'additionalProperties: {"type":"string"}',
            },
          },
        },
      },
    });
  });
});

describe("the rest of the body", () => {
  it("hashes an e-mail address of the end user", () => {
    const { user_id } = bodyOf(request({ user: "ann@example.com" }))["metadata"] as { user_id: string };
    expect(user_id).toMatch(/^[0-9a-f]{64}$/);
    expect(bodyOf(request({ safetyIdentifier: "s-1" }))).toMatchObject({ metadata: { user_id: "s-1" } });
  });

  it("translates the service tiers that the provider has", () => {
    expect(bodyOf(request({ serviceTier: "auto" }))).toMatchObject({ service_tier: "auto" });
    expect(bodyOf(request({ serviceTier: "default" }))).toMatchObject({ service_tier: "standard_only" });
  });

  it("trap 17: streams a whole answer that may be long", () => {
    expect(translate(request({ maxTokens: 21_333 }), budgetModel())).toMatchObject({ streamed: false });
    const long = translate(request({ maxTokens: 21_334 }), budgetModel());
    expect([long.streamed, JSON.parse(long.body)]).toMatchObject([true, { stream: true }]);
  });

  it("marks prompt caches, at most four, longer-lived ones first", () => {
    const cached = (value: string, ttl = ""): ReturnType<typeof text> => ({ ...text(value), cacheMark: { ttl } });
    const marked = request({
      tools: [{ ...WEATHER, cacheMark: {} }],
      messages: [
        system([cached("s", "1h")]),
        user([cached("a"), cached(" ")]),
        { ...assistant("b", { toolCalls: [PARIS] }), cacheMark: {} },
        { ...toolResult(PARIS.id, "r"), cacheMark: { ttl: "1h" } },
        user([cached("c", "2d")]),
      ],
    });
    const { body, omitted } = translate(marked, budgetModel());
    const mark = { type: "ephemeral" };
    expect(JSON.parse(body)).toEqual({
      model: "claude-sonnet-4-5-20250929",
      max_tokens: 8192,
      tools: [{ name: "get_weather", description: "Current weather for a city", input_schema: WEATHER_SCHEMA }],
      system: [{ type: "text", text: "s" }],
      messages: [
        { role: "user", content: [{ type: "text", text: "a", cache_control: mark }] },
        {
          role: "assistant",
          content: [
            { type: "text", text: "b" },
            { type: "tool_use", id: PARIS.id, name: "get_weather", input: { city: "Paris" }, cache_control: mark },
          ],
        },
        {
          role: "user",
          content: [
            { type: "tool_result", tool_use_id: PARIS.id, content: "r", cache_control: mark },
            { type: "text", text: "c", cache_control: mark },
          ],
        },
      ],
    });
    expect(omitted).toEqual([
      "messages[1].content[1].cache_control",
      "messages[4].content[0].cache_control.ttl",
      "tools[0].cache_control",
      "messages[0].content[0].cache_control",
      "messages[3].cache_control.ttl",
    ]);
  });
});
