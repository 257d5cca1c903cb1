import { fromJson, type JsonValue } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import type { Translation, UpstreamModel } from "../../../src/core/provider.ts";
import { toGeminiRequest } from "../../../src/providers/gemini/request.ts";
import { jsonOf } from "./fixture.ts";
import { flash, older, painter } from "./model.ts";

const PNG = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const JPEG = Buffer.from([0xff, 0xd8, 0xff, 0xe0, 0, 0]).toString("base64");
const GIF = Buffer.from("GIF89a").toString("base64");

type Fields = { readonly [key: string]: JsonValue };

const ask = (text: string): JsonValue => ({ role: "ROLE_USER", content: [{ text }] });
const system = (text: string): JsonValue => ({ role: "ROLE_SYSTEM", content: [{ text }] });
const say = (text: string, more: Fields = {}): JsonValue => ({ role: "ROLE_ASSISTANT", content: [{ text }], ...more });
const call = (id: string, more: Fields = {}): JsonValue => ({ id, name: "f", arguments: "{}", ...more });
const callTurn = (...toolCalls: JsonValue[]): JsonValue => ({ role: "ROLE_ASSISTANT", toolCalls });
const result = (toolCallId: string, text: string): JsonValue => ({
  role: "ROLE_TOOL",
  toolCallId,
  content: [{ text }],
});

const request = (fields: Fields): CompletionRequest =>
  fromJson(CompletionRequestSchema, { model: "m", messages: [ask("hi")], ...fields });

const translate = (fields: Fields, model: UpstreamModel = flash()): Translation =>
  toGeminiRequest(request(fields), model, "whole");

interface Body {
  readonly systemInstruction?: { readonly parts: readonly unknown[] };
  readonly contents: readonly { readonly role: string; readonly parts: readonly Record<string, unknown>[] }[];
  readonly tools?: readonly { readonly functionDeclarations: readonly unknown[] }[];
  readonly toolConfig?: unknown;
  readonly generationConfig?: Readonly<Record<string, unknown>>;
  readonly serviceTier?: string;
}

const body = (fields: Fields, model?: UpstreamModel): Body => JSON.parse(translate(fields, model).body) as Body;
const config = (fields: Fields, model?: UpstreamModel): unknown => body(fields, model).generationConfig;
const contents = (...messages: JsonValue[]): Body["contents"] => body({ messages }).contents;

const WEATHER = {
  function: {
    name: "get_weather",
    description: "Current weather for a city",
    parametersJson: JSON.stringify({
      type: "object",
      properties: { city: { type: "string" } },
      required: ["city"],
      additionalProperties: false,
    }),
  },
};
const TIME = {
  function: {
    name: "get_time",
    description: "Current time, no arguments",
    parametersJson: '{"type":"object","properties":{}}',
  },
};
const F = { function: { name: "f" } };
const pictures = ["MODALITY_IMAGE", "MODALITY_TEXT"];

describe("the fixtures", () => {
  it.each<[string, Fields, UpstreamModel]>([
    [
      "20-gemini-text",
      {
        messages: [system("You are terse."), ask("Say hi")],
        temperature: 0.5,
        topP: 0.9,
        maxTokens: 100,
        stop: ["END"],
        seed: "7",
        reasoningEffort: "REASONING_EFFORT_LOW",
      },
      flash(),
    ],
    ["21-gemini-text-stream", { messages: [ask("Write ÅÄÖ and 🐙")] }, flash()],
    [
      "22-gemini-tool-call",
      { messages: [ask("Weather in Paris?")], tools: [WEATHER, TIME], toolChoice: { function: "get_weather" } },
      flash(),
    ],
    [
      "23-gemini-tools-parallel-stream",
      { messages: [ask("Weather in Paris and Rome, and the time?")], tools: [WEATHER, TIME] },
      flash(),
    ],
    [
      "24-gemini-tool-results",
      {
        tools: [WEATHER, TIME],
        messages: [
          ask("Weather in Paris and time?"),
          say("", {
            toolCalls: [
              { id: "fc_a", name: "get_weather", arguments: '{"city":"Paris"}', signature: "c2lnLWZj" },
              { id: "fc_c", name: "get_time", arguments: "{}" },
            ],
          }),
          result("fc_a", '{"temp":18}'),
          result("fc_c", "12:00"),
          callTurn({ id: "fc_d", name: "get_weather", arguments: '{"city":"Rome"}' }),
          result("fc_d", "20C"),
        ],
      },
      flash(),
    ],
    [
      "25-gemini-vision",
      {
        messages: [
          {
            role: "ROLE_USER",
            content: [
              { image: { data: PNG, mediaType: "image/png" } },
              { audio: { data: "UklGRg==", format: "wav" } },
              { file: { data: "JVBERi0=", name: "a.pdf", mediaType: "application/pdf" } },
              { text: "What is this?" },
            ],
          },
        ],
      },
      flash(),
    ],
    [
      "26-gemini-image-out",
      { messages: [ask("Draw a dot")], modalities: pictures, imageOptions: { aspectRatio: "16:9", size: "2K" } },
      painter(),
    ],
    ["27-gemini-image-out-stream", { messages: [ask("Two dots please")], modalities: pictures }, painter()],
    ["28-gemini-thinking-stream", { messages: [ask("2+2?")], reasoningEffort: "REASONING_EFFORT_HIGH" }, flash()],
  ])("%s becomes the recorded body", (scenario, fields, model) => {
    expect(body(fields, model)).toEqual(jsonOf(scenario, "upstream-request.json"));
    expect(translate(fields, model)).toMatchObject({ omitted: [], clamped: [] });
  });
});

describe("messages", () => {
  it("gathers instructions from anywhere, trap 37: there is no place for them in mid-conversation", () => {
    const { systemInstruction, contents: turns } = body({
      messages: [system("a"), ask("hi"), system("b"), system("")],
    });
    expect(systemInstruction).toEqual({ parts: [{ text: "a" }, { text: "b" }] });
    expect(turns).toEqual([{ role: "user", parts: [{ text: "hi" }] }]);
  });

  it("trap 38: makes the last instruction the question when there is nothing else", () => {
    const only = body({ messages: [system("a"), system("b")] });
    expect(only).toMatchObject({
      systemInstruction: { parts: [{ text: "a" }] },
      contents: [{ parts: [{ text: "b" }] }],
    });
    expect(body({ messages: [system("a")] }).systemInstruction).toBeUndefined();
  });

  it("merges neighbouring turns of one side, and drops what is empty", () => {
    expect(contents(ask("a"), ask("b"), say(""), ask("c"), say("d"), say("e"))).toEqual([
      { role: "user", parts: [{ text: "a" }, { text: "b" }, { text: "c" }] },
      { role: "model", parts: [{ text: "d" }, { text: "e" }] },
    ]);
  });

  it("trap 40: a turn of calls without text has no text part", () => {
    const [, turn] = contents(ask("a"), callTurn(call("x")), result("x", "1"));
    expect(turn?.parts.map((part) => Object.keys(part)[0])).toEqual(["functionCall"]);
  });

  it("trap 42: answers a turn of calls with one content, in the order of the calls, and the user's words after it", () => {
    const turns = contents(ask("a"), callTurn(call("x"), call("y")), result("y", "2"), result("x", "1"), ask("go on"));
    expect(turns.map(({ role }) => role)).toEqual(["user", "model", "user"]);
    expect(turns[2]?.parts).toEqual([
      { functionResponse: { id: "x", name: "f", response: { output: "1" } } },
      { functionResponse: { id: "y", name: "f", response: { output: "2" } } },
      { text: "go on" },
    ]);
  });

  it("trap 44: IDs that come again in a later turn are answered in their own turn", () => {
    const again = callTurn(call("x", { name: "g" }));
    const turns = contents(ask("a"), callTurn(call("x")), result("x", "1"), again, result("x", "2"));
    expect(turns[4]?.parts).toEqual([{ functionResponse: { id: "x", name: "g", response: { output: "2" } } }]);
  });

  it.each<[string, JsonValue]>([
    ["", {}],
    ["not JSON", { arguments: "not JSON" }],
    ["[1]", { arguments: "[1]" }],
    ["12345678901234567890", { arguments: "12345678901234567890" }],
    ['{"a":1}', { a: 1 }],
  ])("trap 45: arguments %j become an object", (text, args) => {
    const [, turn] = contents(ask("a"), callTurn(call("x", { arguments: text })), result("x", "1"));
    expect(turn?.parts[0]).toMatchObject({ functionCall: { args } });
  });

  it("trap 46: keeps the digits of large numbers in arguments, results and schemas", () => {
    const digits = '{"id":9223372036854775807}';
    const messages = [ask("a"), callTurn(call("x", { arguments: digits })), result("x", digits)];
    const schema = '{"maximum":9223372036854775807}';
    const text = translate({ messages, tools: [{ function: { name: "f", parametersJson: schema } }] }).body;
    expect(text.match(/:9223372036854775807\b/g)).toHaveLength(3);
  });

  it("passes a result on as it is only when it is an object without a reserved key", () => {
    for (const text of ["[1]", '"x"', "12", '{"$ref":"#/a"}', "{oops", ""]) {
      const turns = contents(ask("a"), callTurn(call("x")), result("x", text));
      expect(turns[2]?.parts[0]).toMatchObject({ functionResponse: { response: { output: text } } });
    }
  });

  it("trap 47: a speaker's name has no place there", () => {
    expect(translate({ messages: [{ role: "ROLE_USER", name: "Ann", content: [{ text: "hi" }] }] })).toMatchObject({
      body: '{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}',
      omitted: [],
    });
  });

  it("trap 48: believes a picture's bytes rather than its declared type", () => {
    const image = (data: string, mediaType: string): JsonValue => ({
      role: "ROLE_USER",
      content: [{ image: { data, mediaType } }],
    });
    expect(contents(image(JPEG, "image/png"))[0]?.parts[0]).toMatchObject({ inlineData: { mimeType: "image/jpeg" } });
    expect(contents(image(PNG, ""))[0]?.parts[0]).toMatchObject({ inlineData: { mimeType: "image/png" } });
    expect(() => contents(image(GIF, "image/png"))).toThrow("messages[0].content[0]: must be a PNG");
  });

  it("trap 50: a picture in a result goes inside it, or beside it for older models", () => {
    const seen = { role: "ROLE_TOOL", toolCallId: "x", content: [{ text: "ok" }, { image: { data: PNG } }] };
    const messages = [ask("a"), callTurn(call("x")), seen];
    const picture = { inlineData: { mimeType: "image/png", data: PNG } };
    const response = { id: "x", name: "f", response: { output: "ok" } };
    expect(body({ messages }).contents[2]?.parts).toEqual([{ functionResponse: { ...response, parts: [picture] } }]);
    expect(body({ messages }, older()).contents[2]?.parts).toEqual([{ functionResponse: response }, picture]);
  });

  it("trap 52: a trailing answer is continued where the model can, and refused where it cannot", () => {
    const messages = [ask("a"), say("Once")];
    expect(body({ messages }).contents[1]).toEqual({ role: "model", parts: [{ text: "Once" }] });
    expect(() => body({ messages }, flash({ prefill: false }))).toThrow("must end with a user or tool message");
  });

  it("carries a refusal as text and leaves reasoning out", () => {
    const reasoning = [{ text: "hm", signature: "c2ln" }, { redacted: "xx" }];
    expect(contents(ask("a"), { role: "ROLE_ASSISTANT", refusal: "No.", reasoning }, ask("b"))[1]).toEqual({
      role: "model",
      parts: [{ text: "No." }],
    });
  });

  it.each<[string, JsonValue[], string]>([
    [
      "an address of a picture (trap 49)",
      [{ role: "ROLE_USER", content: [{ image: { url: "https://a.test/b.png" } }] }],
      "messages[0].content[0]",
    ],
    [
      "an uploaded file",
      [{ role: "ROLE_USER", content: [{ text: "a" }, { file: { id: "file-1" } }] }],
      "messages[0].content[1]",
    ],
    ["a file of no type", [{ role: "ROLE_USER", content: [{ file: { data: "AAAA" } }] }], "messages[0].content[0]"],
    [
      "an unknown recording",
      [{ role: "ROLE_USER", content: [{ audio: { data: "AAAA", format: "xyz" } }] }],
      "messages[0].content[0]",
    ],
    [
      "speech by its ID",
      [ask("a"), { role: "ROLE_ASSISTANT", content: [{ audio: { id: "audio_1" } }] }],
      "messages[1].content[0]",
    ],
    [
      "a picture among instructions",
      [{ role: "ROLE_SYSTEM", content: [{ image: { data: PNG } }] }],
      "messages[0].content[0]",
    ],
    [
      "a recording as a result",
      [ask("a"), callTurn(call("x")), { role: "ROLE_TOOL", toolCallId: "x", content: [{ audio: { data: "AA==" } }] }],
      "messages[2].content[0]",
    ],
    ["a custom call", [ask("a"), callTurn(call("x", { custom: true })), result("x", "1")], "messages[1].tool_calls[0]"],
    [
      "a call without a result (trap 43)",
      [ask("a"), callTurn(call("x"), call("y")), result("x", "1")],
      "messages[1].tool_calls[1]",
    ],
    [
      "a result without a call (trap 43)",
      [ask("a"), callTurn(call("x")), result("x", "1"), result("z", "1")],
      "messages[3].tool_call_id",
    ],
    ["a result out of nowhere", [ask("a"), result("z", "1")], "messages[1].tool_call_id"],
    ["nothing at all", [ask("")], "messages"],
  ])("refuses %s and names it", (_, messages, field) => {
    expect(() => translate({ messages })).toThrow(
      expect.objectContaining({ code: "invalid_request", param: field }) as Error,
    );
  });

  it("refuses pictures and recordings for a model that only reads", () => {
    const reader = flash({}, { inputModalities: new Set() });
    const image = { role: "ROLE_USER", content: [{ image: { data: PNG } }] };
    const audio = { role: "ROLE_USER", content: [{ audio: { data: "AA==", format: "wav" } }] };
    expect(() => translate({ messages: [image] }, reader)).toThrow("takes no pictures");
    expect(() => translate({ messages: [audio] }, reader)).toThrow("takes no recordings");
  });
});

describe("signatures", () => {
  const sentinel = "skip_thought_signature_validator";
  const turn = (message: JsonValue, model?: UpstreamModel): unknown =>
    body({ messages: [ask("a"), message, ask("b")] }, model).contents[1]?.parts;

  it("come back on the last text, or alone when there was none", () => {
    const twice = { role: "ROLE_ASSISTANT", content: [{ text: "a" }, { text: "b" }], signature: "c2ln" };
    expect(turn(twice)).toEqual([{ text: "a" }, { text: "b", thoughtSignature: "c2ln" }]);
    expect(turn({ role: "ROLE_ASSISTANT", signature: "c2ln" })).toEqual([{ text: "", thoughtSignature: "c2ln" }]);
  });

  it("trap 51: come back on our own pictures and on the text before them", () => {
    const picture = { image: { data: PNG, signature: "aW1n" } };
    const message = { role: "ROLE_ASSISTANT", content: [{ text: "a" }, picture, { text: "b" }], signature: "c2ln" };
    const inlineData = { mimeType: "image/png", data: PNG };
    expect(turn(message)).toEqual([
      { text: "a", thoughtSignature: "c2ln" },
      { inlineData, thoughtSignature: "aW1n" },
      { text: "b" },
    ]);
  });

  it("of pictures are filled in where they are checked and lost", () => {
    const message = { role: "ROLE_ASSISTANT", content: [{ text: "a" }, { image: { data: PNG } }, { text: "b" }] };
    const inlineData = { mimeType: "image/png", data: PNG };
    expect(turn(message, painter())).toEqual([
      { text: "a", thoughtSignature: sentinel },
      { inlineData, thoughtSignature: sentinel },
      { text: "b" },
    ]);
    expect(turn(message, painter({ preservedReasoning: false }))).toEqual([
      { text: "a" },
      { inlineData },
      { text: "b" },
    ]);
  });

  it.each([
    ["trap 98: lost by the client", ""],
    ["trap 101: not one of this provider", "sig from {elsewhere}"],
  ])("%s: the first call of the step gets the sentinel, on models that check", (_, signature) => {
    const messages = [ask("a"), callTurn(call("x", { signature }), call("y")), result("x", "1"), result("y", "2")];
    const signed = (model: UpstreamModel): unknown[] =>
      body({ messages }, model).contents[1]!.parts.map((part) => part["thoughtSignature"]);
    expect(signed(flash())).toEqual([sentinel, undefined]);
    expect(signed(older())).toEqual([undefined, undefined]);
  });
});

describe("parameters", () => {
  it("trap 57: what has no counterpart is left out and listed", () => {
    const { omitted, body: text } = translate({
      logitBias: { 5: 1 },
      logprobs: true,
      topLogprobs: 2,
      user: "u",
      safetyIdentifier: "s",
      metadata: { a: "b" },
      store: true,
      verbosity: "low",
      prediction: "p",
      promptCacheKey: "k",
      serviceTier: "scale",
      openaiOptionsJson: { web_search_options: "{}" },
      imageOptions: { aspectRatio: "1:1", size: "1K" },
      tools: [F],
      parallelToolCalls: false,
      messages: [{ role: "ROLE_USER", content: [{ text: "a" }, { image: { data: PNG, detail: "high" } }] }],
    });
    expect([...omitted].toSorted()).toEqual([
      "image_config.aspect_ratio",
      "image_config.image_size",
      "logit_bias",
      "logprobs",
      "messages[0].content[1].image_url.detail",
      "metadata",
      "parallel_tool_calls",
      "prediction",
      "prompt_cache_key",
      "safety_identifier",
      "service_tier",
      "store",
      "top_logprobs",
      "user",
      "verbosity",
      "web_search_options",
    ]);
    expect(Object.keys(JSON.parse(text) as object)).toEqual(["contents", "tools"]);
  });

  it("what changes nothing is neither sent nor listed", () => {
    const nothing = {
      n: 1,
      store: false,
      logprobs: false,
      serviceTier: "auto",
      verbosity: "medium",
      parallelToolCalls: true,
    };
    const fixed = flash({ sampling: false, penalties: false });
    const asked = {
      ...nothing,
      temperature: 1,
      topP: 1,
      presencePenalty: 0,
      frequencyPenalty: 0,
      responseFormat: { text: {} },
    };
    expect(translate(asked, fixed)).toMatchObject({
      body: '{"contents":[{"role":"user","parts":[{"text":"hi"}]}]}',
      omitted: [],
      clamped: [],
    });
  });

  it.each<[string, Fields, UpstreamModel, unknown, string[]]>([
    ["sampling", { temperature: 0.2, topP: 0.5 }, flash({ sampling: false }), undefined, ["temperature", "top_p"]],
    [
      "both at once",
      { temperature: 0.2, topP: 0.5 },
      flash({ temperatureWithTopP: false }),
      { temperature: 0.2 },
      ["top_p"],
    ],
    ["only top_p", { topP: 0.5 }, flash({ temperatureWithTopP: false }), { topP: 0.5 }, []],
    [
      "penalties",
      { presencePenalty: 1, frequencyPenalty: -1 },
      flash({ penalties: false }),
      undefined,
      ["presence_penalty", "frequency_penalty"],
    ],
    [
      "penalties it takes",
      { presencePenalty: 1, frequencyPenalty: -1 },
      flash(),
      { presencePenalty: 1, frequencyPenalty: -1 },
      [],
    ],
    ["a seed", { seed: "1" }, flash({ seed: false }), undefined, ["seed"]],
    ["a long seed", { seed: "4294967297" }, flash(), { seed: 1 }, []],
    [
      "log probabilities it takes",
      { logprobs: true, topLogprobs: 3 },
      flash({ logprobs: true }),
      { responseLogprobs: true, logprobs: 3 },
      [],
    ],
    ["several choices", { n: 2 }, flash({ multipleChoices: true }), { candidateCount: 2 }, []],
    [
      "reasoning without any",
      { reasoningEffort: "REASONING_EFFORT_LOW" },
      flash({ reasoning: "none" }),
      undefined,
      ["reasoning_effort"],
    ],
  ])("%s: as the model takes it", (_, fields, model, expected, omitted) => {
    expect(config(fields, model)).toEqual(expected);
    expect(translate(fields, model).omitted).toEqual(omitted);
  });

  it("trap 58 and 60: values beyond the model's range are moved into it and listed", () => {
    const { body: text, clamped } = translate({ temperature: 1.4, maxTokens: 100_000 }, flash({ maxTemperature: 1 }));
    expect(JSON.parse(text)).toMatchObject({ generationConfig: { temperature: 1, maxOutputTokens: 65_536 } });
    expect(clamped).toMatchObject([
      { field: "temperature", from: 1.4, to: 1 },
      { field: "max_tokens", from: 100_000, to: 65_536 },
    ]);
  });

  it("trap 54: more than one choice is refused where there is only one", () => {
    expect(() => translate({ n: 2 })).toThrow("n: must be 1 for this model");
  });

  it.each([
    ["flex", "flex"],
    ["priority", "priority"],
    ["default", "standard"],
  ])("service tier %s is sent as %s", (serviceTier, sent) => {
    expect(body({ serviceTier }).serviceTier).toBe(sent);
  });
});

describe("reasoning", () => {
  const think = (effort: string, model: UpstreamModel): unknown =>
    config({ reasoningEffort: `REASONING_EFFORT_${effort}` }, model);

  it.each([
    ["NONE", ["low", "high"], "LOW"],
    ["MINIMAL", ["minimal", "low"], "MINIMAL"],
    ["MINIMAL", ["low", "medium"], "LOW"],
    ["MEDIUM", ["low", "high"], "HIGH"],
    ["XHIGH", ["low", "medium", "high", "xhigh"], "XHIGH"],
    ["MAX", ["low", "medium", "high"], "HIGH"],
  ])("effort %s on levels %j is %s", (effort, reasoningEfforts, thinkingLevel) => {
    const shown = effort === "NONE" ? {} : { includeThoughts: true };
    expect(think(effort, flash({ reasoningEfforts }))).toEqual({ thinkingConfig: { thinkingLevel, ...shown } });
  });

  it.each([
    ["NONE", false, 128],
    ["NONE", true, 0],
    ["MINIMAL", false, 512],
    ["LOW", false, 1024],
    ["MEDIUM", false, 8192],
    ["HIGH", false, 24_576],
    ["MAX", false, 32_768],
  ])("effort %s, can be disabled %s, is a budget of %i tokens", (effort, reasoningCanBeDisabled, thinkingBudget) => {
    expect(think(effort, older({ reasoningCanBeDisabled }))).toMatchObject({ thinkingConfig: { thinkingBudget } });
  });

  it("trap 61: a small limit on a model that thinks by itself leaves room for the answer", () => {
    expect(config({ maxTokens: 100 })).toEqual({ maxOutputTokens: 100, thinkingConfig: { thinkingLevel: "LOW" } });
    expect(config({ maxTokens: 4096 })).toEqual({ maxOutputTokens: 4096 });
    expect(config({ maxTokens: 100 }, flash({ reasoningByDefault: false }))).toEqual({ maxOutputTokens: 100 });
  });
});

describe("tools", () => {
  const choice = (toolChoice: JsonValue, model?: UpstreamModel): unknown =>
    body({ tools: [F], toolChoice }, model).toolConfig;
  const mode = (functionCallingConfig: unknown): unknown => ({ functionCallingConfig });

  it.each<[JsonValue, unknown]>([
    [{ mode: "TOOL_MODE_AUTO" }, undefined],
    [{ mode: "TOOL_MODE_NONE" }, mode({ mode: "NONE" })],
    [{ mode: "TOOL_MODE_REQUIRED" }, mode({ mode: "ANY" })],
    [{ function: "f" }, mode({ mode: "ANY", allowedFunctionNames: ["f"] })],
    [{ allowed: { mode: "TOOL_MODE_REQUIRED", names: ["f"] } }, mode({ mode: "ANY", allowedFunctionNames: ["f"] })],
  ])("choice %j is sent as the provider's mode", (toolChoice, sent) => {
    expect(choice(toolChoice)).toEqual(sent);
  });

  it("trap 67: allowed tools never go with AUTO", () => {
    const allowed = { allowed: { mode: "TOOL_MODE_AUTO", names: ["f"] } };
    expect(choice(allowed)).toEqual(mode({ mode: "VALIDATED", allowedFunctionNames: ["f"] }));
  });

  it("trap 63: a forced call on a model that cannot be forced is left to it, and listed", () => {
    const free = flash({ forcedTools: false });
    const required = { tools: [F], toolChoice: { mode: "TOOL_MODE_REQUIRED" } };
    expect(body(required, free).toolConfig).toBeUndefined();
    expect(translate(required, free).omitted).toEqual(["tool_choice"]);
    expect(choice({ function: "f" }, free)).toEqual(mode({ mode: "VALIDATED", allowedFunctionNames: ["f"] }));
  });

  it("strict functions are validated", () => {
    const strict = { function: { name: "f", strict: true } };
    expect(body({ tools: [F, strict] }).toolConfig).toEqual(mode({ mode: "VALIDATED" }));
    expect(translate({ tools: [strict] }).omitted).toEqual([]);
  });

  it("trap 62: a choice without tools is nothing", () => {
    const sent = body({ toolChoice: { mode: "TOOL_MODE_REQUIRED" } });
    expect(Object.keys(sent)).toEqual(["contents"]);
  });

  it("trap 64 and 65: schemas go as they are, empty ones not at all", () => {
    const schema = { $schema: "x", type: "object", properties: { a: { const: 1 } }, additionalProperties: false };
    const tools = [schema, {}].map((each) => ({ function: { name: "f", parametersJson: JSON.stringify(each) } }));
    expect(body({ tools: [...tools, F] }).tools).toEqual([
      { functionDeclarations: [{ name: "f", parametersJsonSchema: schema }, { name: "f" }, { name: "f" }] },
    ]);
  });

  it("a model without tools is not told of them", () => {
    expect(translate({ tools: [F] }, flash({ tools: false }))).toMatchObject({ omitted: ["tools"] });
  });

  it.each<[string, JsonValue, string]>([
    ["a custom tool", { custom: { name: "c" } }, "tools[0]"],
    ["trap 66: a name it does not take", { function: { name: "1st" } }, "tools[0].function.name"],
    ["a schema that is none", { function: { name: "f", parametersJson: "[]" } }, "tools[0].function.parameters"],
  ])("refuses %s", (_, tool, param) => {
    expect(() => translate({ tools: [tool] })).toThrow(
      expect.objectContaining({ code: "invalid_request", param }) as Error,
    );
  });

  it("refuses the choice of a custom tool", () => {
    expect(() => translate({ tools: [F], toolChoice: { custom: "c" } })).toThrow("tool_choice");
  });
});

describe("structured output", () => {
  const json = { responseMimeType: "application/json" };
  const schemaFormat = (schema: object): Fields => ({
    responseFormat: { jsonSchema: { name: "s", schemaJson: JSON.stringify(schema), strict: true } },
  });

  it("any object is the provider's JSON mode", () => {
    expect(config({ responseFormat: { jsonObject: {} } })).toEqual(json);
  });

  it("a schema keeps what the provider enforces, rewrites what it can, and lists the rest", () => {
    const schema = {
      $schema: "x",
      type: "object",
      properties: {
        kind: { const: "a" },
        size: { type: "integer", minimum: 1, multipleOf: 2 },
        ref: { $ref: "#/definitions/n", description: "d" },
        one: { allOf: [{ type: "string", pattern: "x" }], title: "t" },
        any: { anyOf: [{ type: "string" }, { type: "null", default: null }] },
        list: { type: "array", items: { type: "string", minLength: 1 } },
        pattern: { type: "string" },
      },
      additionalProperties: false,
      definitions: { n: { type: "number", exclusiveMinimum: 0 } },
    };
    expect(config(schemaFormat(schema))).toEqual({
      ...json,
      responseJsonSchema: {
        type: "object",
        properties: {
          kind: { enum: ["a"] },
          size: { type: "integer", minimum: 1 },
          ref: { $ref: "#/$defs/n" },
          one: { type: "string", title: "t" },
          any: { anyOf: [{ type: "string" }, { type: "null" }] },
          list: { type: "array", items: { type: "string" } },
          pattern: { type: "string" },
        },
        additionalProperties: false,
        $defs: { n: { type: "number" } },
      },
    });
    const at = "response_format.json_schema.schema";
    expect(translate(schemaFormat(schema)).omitted).toEqual([
      `${at}.properties.size.multipleOf`,
      `${at}.properties.one.allOf[0].pattern`,
      `${at}.properties.list.items.minLength`,
      `${at}.definitions.n.exclusiveMinimum`,
    ]);
  });

  it("a model without schemas is told in words and held to JSON", () => {
    const { generationConfig, systemInstruction } = body(
      schemaFormat({ type: "object" }),
      flash({ jsonSchema: false }),
    );
    expect(generationConfig).toEqual(json);
    expect(systemInstruction?.parts).toEqual([{ text: expect.stringContaining('{"type":"object"}') as string }]);
    expect(translate(schemaFormat({ type: "object" }), flash({ jsonSchema: false })).omitted).toEqual([
      "response_format",
    ]);
  });

  it("older models cannot have tools and a JSON mode at once, and are only told", () => {
    const both = { tools: [F], messages: [system("a"), ask("b")], ...schemaFormat({ type: "object" }) };
    expect(body(both, older()).generationConfig).toBeUndefined();
    expect(body(both, older()).systemInstruction?.parts).toHaveLength(2);
    expect(translate(both, older()).omitted).toEqual(["response_format"]);
    expect(config(both, flash())).toMatchObject({ responseJsonSchema: { type: "object" } });
  });

  it("refuses a schema that is none", () => {
    const responseFormat = { jsonSchema: { name: "s", schemaJson: "5" } };
    expect(() => translate({ responseFormat })).toThrow("response_format.json_schema.schema");
  });
});

describe("pictures", () => {
  it("an image model that was asked for nothing special answers in text", () => {
    expect(config({}, painter())).toEqual({ responseModalities: ["TEXT"] });
  });

  it("a model that cannot make what was asked for says so", () => {
    expect(() => translate({ modalities: pictures })).toThrow("modalities: this model does not make images");
    expect(() => translate({ modalities: ["MODALITY_AUDIO"] }, painter())).toThrow("modalities");
  });

  it("wishes about pictures are listed where the model has no choice", () => {
    const asked = { modalities: pictures, imageOptions: { size: "2K" } };
    expect(translate(asked, painter({ imageOptions: false })).omitted).toEqual(["image_config.image_size"]);
  });
});

describe("a translation", () => {
  it("is the same bytes for the same request, in both modes", () => {
    const asked = request({ tools: [WEATHER], messages: [ask("a"), callTurn(call("x")), result("x", "1")] });
    const whole = toGeminiRequest(asked, flash(), "whole");
    expect(toGeminiRequest(asked, flash(), "whole")).toEqual(whole);
    expect(toGeminiRequest(asked, flash(), "stream").body).toBe(whole.body);
  });

  it.each([
    ["a stream always", "stream", {}, 1e9, true],
    ["a whole answer within the limit not", "whole", { maxTokens: 100 }, 100, false],
    ["a whole answer above the limit", "whole", { maxTokens: 101 }, 100, true],
    ["a whole answer of the default length above the limit", "whole", {}, 8191, true],
    ["a whole answer of the default length within the limit not", "whole", {}, 8192, false],
  ] as const)("trap 17: streams %s", (_, mode, fields, streamAbove, streamed) => {
    expect(toGeminiRequest(request(fields), flash({ streamAbove }), mode).streamed).toBe(streamed);
  });
});
