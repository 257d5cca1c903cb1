import { create, type MessageInitShape } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { clampsOf, omittedOf } from "../omissions.ts";
import { CompletionRequestSchema, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import {
  CacheMarkSchema,
  ImageDetail,
  type ImageSchema,
  type MessageSchema,
  Role,
  type ToolCallSchema,
} from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import type { UpstreamModel } from "../../../src/core/provider.ts";
import { toOpenAiRequest } from "../../../src/providers/openai/request.ts";
import { readFixture } from "./fixture.ts";
import { modelThat } from "./model.ts";

type RequestInit = MessageInitShape<typeof CompletionRequestSchema>;
type MessageInit = MessageInitShape<typeof MessageSchema>;

const text = (value: string) => ({ kind: { case: "text" as const, value } });
const user = (...parts: string[]): MessageInit => ({ role: Role.USER, parts: parts.map(text) });
const system = (...parts: string[]): MessageInit => ({ role: Role.SYSTEM, parts: parts.map(text) });
const tool = (name: string) => ({ kind: { case: "function" as const, value: { name } } });
type CallInit = MessageInitShape<typeof ToolCallSchema>;
const call = (id: string, input?: CallInit["input"], name = "f") => ({
  kind: { case: "toolCall" as const, value: { id, name, ...(input && { input }) } },
});
const json = (value: string) => ({ case: "argumentsJson" as const, value });
const result = (toolCallId: string, ...parts: NonNullable<MessageInit["parts"]>) => ({
  kind: { case: "toolResult" as const, value: { toolCallId, parts } },
});
const PNG = Uint8Array.from([0x89, 0x50, 0x4e, 0x47]);

function translate(request: RequestInit, model: UpstreamModel = modelThat(), mode: "whole" | "stream" = "whole") {
  const translation = toOpenAiRequest(create(CompletionRequestSchema, { messages: [user("hi")], ...request }), model, {
    mode,
  });
  return {
    body: JSON.parse(translation.body.toString()),
    omitted: omittedOf(translation),
    clamped: clampsOf(translation),
    streamed: translation.streamed,
    sent: translation.sent,
  };
}

const translateMessages = (messages: MessageInit[], model?: UpstreamModel) =>
  translate({ messages }, model).body.messages;

function refusalOf(request: RequestInit, model?: UpstreamModel): string {
  try {
    translate(request, model);
  } catch (reason) {
    if (reason instanceof Failure && reason.code === "invalid_request") {
      return reason.violations.map(({ field, description }) => `${field}: ${description}`).join();
    }
    throw reason;
  }
  return "accepted";
}

const effort = (value: ReasoningEffort) => ({ effort: value });

describe("an OpenAI request", () => {
  it("is the one of fixture 40", () => {
    const { body } = translate(
      {
        tools: [
          {
            kind: {
              case: "function",
              value: {
                name: "get_weather",
                description: "Current weather for a city",
                parametersJson: JSON.stringify({
                  type: "object",
                  properties: { city: { type: "string" } },
                  required: ["city"],
                  additionalProperties: false,
                }),
              },
            },
          },
        ],
      },
      modelThat(),
      "stream",
    );
    expect(body).toEqual(readFixture("40-openai-compat-quirks-stream").json("upstream-request.json"));
  });

  it("passes on everything that a capable model takes, and notes nothing", () => {
    const { body, omitted, clamped, streamed } = translate({
      maxOutputTokens: 100,
      temperature: 1.4,
      topP: 0.9,
      stopSequences: ["END", "\n"],
      seed: 7n,
      frequencyPenalty: 0.5,
      presencePenalty: -0.5,
      logitBias: { "50256": -100 },
      logprobs: { topCount: 3 },
      choiceCount: 2,
      reasoning: effort(ReasoningEffort.LOW),
      modalities: [Modality.TEXT, Modality.AUDIO],
      audioOptions: { format: "mp3", voice: "alloy" },
      imageOptions: { aspectRatio: "16:9", size: "2K" },
      endUserId: "u-1",
      metadata: { a: "b" },
      serviceTier: "flex",
      store: true,
      verbosity: Verbosity.LOW,
      prediction: "text",
      promptCacheKey: "k",
      sessionId: "ignored beside the key",
      safetyIdentifier: "s",
      providerOptionsJson: {
        "openai.web_search_options": '{"search_context_size":"low"}',
        "openai.prompt_cache_retention": '"24h"',
      },
    });
    expect(body).toEqual({
      model: "llama-x",
      messages: [{ role: "user", content: "hi" }],
      max_tokens: 100,
      temperature: 1.4,
      top_p: 0.9,
      stop: ["END", "\n"],
      seed: 7,
      frequency_penalty: 0.5,
      presence_penalty: -0.5,
      logit_bias: { "50256": -100 },
      logprobs: true,
      top_logprobs: 3,
      n: 2,
      reasoning_effort: "low",
      modalities: ["text", "audio"],
      audio: { format: "mp3", voice: "alloy" },
      image_config: { aspect_ratio: "16:9", image_size: "2K" },
      user: "u-1",
      metadata: { a: "b" },
      service_tier: "flex",
      store: true,
      verbosity: "low",
      prediction: { type: "content", content: "text" },
      prompt_cache_key: "k",
      safety_identifier: "s",
      web_search_options: { search_context_size: "low" },
      prompt_cache_retention: "24h",
    });
    expect({ omitted, clamped, streamed }).toEqual({ omitted: [], clamped: [], streamed: false });
  });

  it.each([
    [undefined, 1],
    ["auto", 1],
    ["default", 1],
    ["flex", 1],
    ["on_demand", 1],
    ["priority", 2.5],
    ["fast", 2.5],
    ["ultrafast", 6],
    ["Priority", 6],
    ["a later one", 6],
  ])("has the highest price of the service tier %s: %d times the list price", (serviceTier, priceFactor) => {
    expect(translate({ ...(serviceTier !== undefined && { serviceTier }) }).sent.priceFactor).toBe(priceFactor);
  });

  it("may be read as prompts of any length where the provider searches, or reads the address of a picture", () => {
    const withPicture = (source: NonNullable<MessageInitShape<typeof ImageSchema>["source"]>) => {
      const parts = [{ kind: { case: "image" as const, value: { source, mediaType: "image/png" } } }];
      return translate({ messages: [{ role: Role.USER, parts }] }).sent.unbounded;
    };
    expect(withPicture({ case: "data", value: PNG })).toBe("no");
    expect(withPicture({ case: "url", value: "https://pictures.example/1" })).toBe("address");
    const options = { providerOptionsJson: { "openai.web_search_options": "{}" } };
    expect(translate(options).sent.unbounded).toBe("search");
  });

  it("groups the requests of a session in the cache, where they have no key of their own", () => {
    expect(translate({ sessionId: "s" }).body.prompt_cache_key).toBe("s");
    expect(translate({}).body).not.toHaveProperty("prompt_cache_key");
  });

  it("lists what this dialect cannot say", () => {
    const mask = { source: { case: "data" as const, value: PNG }, mediaType: "image/png" };
    const { body, omitted } = translate({
      modalities: [Modality.TEXT, Modality.IMAGE],
      imageOptions: { size: "1K", mask },
      providerOptionsJson: { "gemini.safety_settings": "[]" },
    });
    expect(body.image_config).toEqual({ image_size: "1K" });
    expect(omitted).toEqual(["image_options.mask", "provider_options_json.gemini.safety_settings"]);
    expect(translate({ reasoning: { maxTokens: 9 } }).omitted).toEqual(["reasoning.max_tokens"]);
  });

  it("ignores a number of tokens for reasoning beside an effort, and lists both for a model without reasoning", () => {
    const asked = { reasoning: { effort: ReasoningEffort.LOW, maxTokens: 9 } };
    const reasons = modelThat({ reasoning: "level", reasoningEfforts: ["low", "high"] });
    expect(translate(asked, reasons)).toMatchObject({ body: { reasoning_effort: "low" }, omitted: [] });
    expect(translate(asked, modelThat({ reasoning: "none" })).omitted).toEqual([
      "reasoning.effort",
      "reasoning.max_tokens",
    ]);
  });

  it("is the same bytes for the same request", () => {
    const request = create(CompletionRequestSchema, {
      messages: [user("a", "b")],
      tools: [tool("f")],
      temperature: 0.3,
    });
    expect(toOpenAiRequest(request, modelThat(), { mode: "stream" })).toEqual(
      toOpenAiRequest(request, modelThat(), { mode: "stream" }),
    );
  });

  it("cannot be given fields of its own through the further options", () => {
    const { body, omitted } = translate({ providerOptionsJson: { "openai.model": '"other"', "openai.n": "9" } });
    expect(body).toEqual({ model: "llama-x", messages: [{ role: "user", content: "hi" }] });
    expect(omitted).toEqual(["provider_options_json.openai.model", "provider_options_json.openai.n"]);
    expect(refusalOf({ providerOptionsJson: { "openai.moderation": "{" } })).toBe(
      "provider_options_json.openai.moderation: must be JSON",
    );
  });
});

describe("capabilities decide what is sent", () => {
  it.each<[string, RequestInit, UpstreamModel, object, string[]]>([
    [
      "names the token limit as the server does",
      { maxOutputTokens: 9 },
      modelThat({ maxTokensField: "max_completion_tokens" }),
      { max_completion_tokens: 9 },
      [],
    ],
    ["trap 57: leaves out a seed", { seed: 1n }, modelThat({ seed: false }), {}, ["seed"]],
    ["folds a seed that JSON cannot hold", { seed: 2n ** 62n + 5n }, modelThat(), { seed: 5 }, []],
    [
      "trap 57: leaves out penalties",
      { frequencyPenalty: 1, presencePenalty: 1 },
      modelThat({ penalties: false }),
      {},
      ["frequency_penalty", "presence_penalty"],
    ],
    ["says nothing about penalties of zero", { frequencyPenalty: 0 }, modelThat({ penalties: false }), {}, []],
    [
      "leaves out sampling",
      { temperature: 0.2, topP: 0.5 },
      modelThat({ sampling: false }),
      {},
      ["temperature", "top_p"],
    ],
    ["says nothing about default sampling", { temperature: 1, topP: 1 }, modelThat({ sampling: false }), {}, []],
    [
      "keeps the temperature of two",
      { temperature: 0.2, topP: 0.5 },
      modelThat({ temperatureWithTopP: false }),
      { temperature: 0.2 },
      ["top_p"],
    ],
    ["keeps top_p alone", { topP: 0.5 }, modelThat({ temperatureWithTopP: false }), { top_p: 0.5 }, []],
    [
      "trap 56: leaves out log probabilities",
      { logprobs: { topCount: 2 } },
      modelThat({ logprobs: false }),
      {},
      ["logprobs", "logprobs.top_count"],
    ],
    ["asks for no alternatives", { logprobs: {} }, modelThat(), { logprobs: true }, []],
    [
      "lists log probabilities without alternatives",
      { logprobs: {} },
      modelThat({ logprobs: false }),
      {},
      ["logprobs"],
    ],
    [
      "says nothing about defaults",
      { choiceCount: 1, store: false, modalities: [Modality.TEXT] },
      modelThat({ multipleChoices: false }),
      {},
      [],
    ],
    [
      "leaves out picture options",
      { imageOptions: { size: "1K" } },
      modelThat({ imageOptions: false }),
      {},
      ["image_options.size"],
    ],
    [
      "leaves out speech options without speech",
      { audioOptions: { format: "mp3", voice: "v" } },
      modelThat(),
      {},
      ["audio_options"],
    ],
    [
      "asks for pictures",
      { modalities: [Modality.IMAGE, Modality.TEXT] },
      modelThat(),
      { modalities: ["image", "text"] },
      [],
    ],
  ])("%s", (_, request, model, fields, omitted) => {
    const { body, omitted: noted } = translate(request, model);
    expect(body).toEqual({ model: "llama-x", messages: [{ role: "user", content: "hi" }], ...fields });
    expect(noted).toEqual(omitted);
  });

  it("clamps the temperature and the token limit, and says so", () => {
    const { body, clamped } = translate(
      { temperature: 1.4, maxOutputTokens: 99_000 },
      modelThat({ maxTemperature: 1 }),
    );
    expect(body).toMatchObject({ temperature: 1, max_tokens: 16_000 });
    expect(clamped).toEqual([
      { field: "max_output_tokens", requested: 99_000, sent: 16_000 },
      { field: "temperature", requested: 1.4, sent: 1 },
    ]);
  });

  it("trap 54: refuses several choices where there is one, naming the field", () => {
    expect(refusalOf({ choiceCount: 2 }, modelThat({ multipleChoices: false }))).toBe(
      "choice_count: must be 1 for this model",
    );
  });

  it("refuses a modality that the model does not make", () => {
    const model = modelThat({}, { outputModalities: new Set([Modality.TEXT]) });
    expect(refusalOf({ modalities: [Modality.TEXT, Modality.IMAGE] }, model)).toBe(
      "modalities: this model does not make image",
    );
  });

  it.each([
    [{ streamUsage: true }, { stream: true, stream_options: { include_usage: true } }],
    [{ streamUsage: false }, { stream: true }],
  ])("asks for a stream with %j", (can, fields) => {
    const { body, streamed } = translate({}, modelThat(can), "stream");
    expect(body).toEqual({ model: "llama-x", messages: [{ role: "user", content: "hi" }], ...fields });
    expect(streamed).toBe(true);
  });

  it.each([
    [1000, undefined, false],
    [1000, 1000, false],
    [1000, 1001, true],
    [4095, undefined, true],
    [0, 1, true],
  ])("trap 17: above %i, a whole answer of %s tokens is streamed: %s", (streamAbove, maxOutputTokens, streamed) => {
    const model = modelThat({ streamAbove }, { defaultMaxTokens: streamAbove === 4095 ? 4096 : 500 });
    const translated = translate(maxOutputTokens === undefined ? {} : { maxOutputTokens }, model);
    expect(translated.streamed).toBe(streamed);
    expect(translated.body.stream).toBe(streamed ? true : undefined);
  });
});

describe("reasoning effort", () => {
  const E = ReasoningEffort;
  it.each<[string, ReasoningEffort, Parameters<typeof modelThat>[0], string | undefined, string[]]>([
    ["is left to the model when absent", E.UNSPECIFIED, {}, undefined, []],
    ["is the model's own word", E.MEDIUM, {}, "medium", []],
    ["moves down to the nearest", E.MAX, {}, "high", []],
    ["moves up to the nearest", E.MINIMAL, {}, "low", []],
    ["takes the lower of two equally near", E.MEDIUM, { reasoningEfforts: ["low", "high"] }, "low", []],
    ["passes where the words are not known", E.XHIGH, { reasoningEfforts: [] }, "xhigh", []],
    ["is none where it can be", E.NONE, {}, "none", []],
    ["is the lowest where it cannot be none", E.NONE, { reasoningCanBeDisabled: false }, "low", []],
    [
      "is left out where it can be neither none nor known",
      E.NONE,
      { reasoningCanBeDisabled: false, reasoningEfforts: [] },
      undefined,
      ["reasoning.effort"],
    ],
    ["is left out for a model without reasoning", E.HIGH, { reasoning: "none" }, undefined, ["reasoning.effort"]],
    ["is not missed when it was none", E.NONE, { reasoning: "none" }, undefined, []],
  ])("%s", (_, requested, can, sent, omitted) => {
    const translated = translate({ reasoning: effort(requested) }, modelThat(can));
    expect(translated.body.reasoning_effort).toBe(sent);
    expect(translated.omitted).toEqual(omitted);
    const asked = `REASONING_EFFORT_${E[requested]}`;
    const given = `REASONING_EFFORT_${sent?.toUpperCase()}`;
    const isClamped = sent !== undefined && given !== asked;
    expect(translated.clamped).toEqual(isClamped ? [{ field: "reasoning.effort", requested: asked, sent: given }] : []);
  });
});

describe("messages", () => {
  it("trap 36: keep their roles, names and order", () => {
    const messages = [
      { ...system("be brief"), name: "app" },
      { ...user("hi"), name: "ann" },
      { role: Role.ASSISTANT, parts: [text("yes")] },
    ];
    expect(translateMessages(messages)).toEqual([
      { role: "system", content: "be brief", name: "app" },
      { role: "user", content: "hi", name: "ann" },
      { role: "assistant", content: "yes" },
    ]);
  });

  it("trap 41: join several texts for a server that takes no arrays of text, and only for it", () => {
    expect(translateMessages([user("a", "b")], modelThat({ contentParts: false }))).toEqual([
      { role: "user", content: "a\nb" },
    ]);
    expect(translateMessages([user("a", "b")])).toEqual([
      {
        role: "user",
        content: [
          { type: "text", text: "a" },
          { type: "text", text: "b" },
        ],
      },
    ]);
  });

  it("hold pictures, recordings and files", () => {
    const parts = [
      text("look"),
      {
        kind: {
          case: "image" as const,
          value: { source: { case: "data" as const, value: PNG }, mediaType: "image/png", detail: ImageDetail.LOW },
        },
      },
      {
        kind: {
          case: "image" as const,
          value: { source: { case: "url" as const, value: "https://example.com/a.png" } },
        },
      },
      {
        kind: {
          case: "audio" as const,
          value: { source: { case: "data" as const, value: PNG }, mediaType: "audio/mpeg" },
        },
      },
      {
        kind: {
          case: "file" as const,
          value: { source: { case: "data" as const, value: PNG }, name: "a.pdf", mediaType: "application/pdf" },
        },
      },
      { kind: { case: "file" as const, value: { source: { case: "id" as const, value: "file-1" } } } },
    ];
    expect(translateMessages([{ role: Role.USER, parts }], modelThat({ contentParts: false }))[0].content).toEqual([
      { type: "text", text: "look" },
      { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==", detail: "low" } },
      { type: "image_url", image_url: { url: "https://example.com/a.png" } },
      { type: "input_audio", input_audio: { data: "iVBORw==", format: "mp3" } },
      { type: "file", file: { filename: "a.pdf", file_data: "data:application/pdf;base64,iVBORw==" } },
      { type: "file", file: { file_id: "file-1" } },
    ]);
  });

  const imageUrl = (value: string) => ({
    kind: { case: "image" as const, value: { source: { case: "url" as const, value } } },
  });
  const textOnly = modelThat({}, { inputModalities: new Set([Modality.TEXT]) });
  it.each<readonly [string, NonNullable<MessageInit["parts"]>[number], UpstreamModel, string]>([
    ["an unencrypted address", imageUrl("http://example.com/a.png"), modelThat(), "image addresses must be https"],
    [
      "trap 49: an address for a server that reads none",
      imageUrl("https://example.com/a.png"),
      modelThat({ imageUrls: false }),
      "this model's provider does not read image addresses; send the image as a data: URL",
    ],
    [
      "a picture for a model that sees none",
      imageUrl("https://example.com/a.png"),
      textOnly,
      "this model does not read images",
    ],
    [
      "a recording for a model that hears none",
      { kind: { case: "audio", value: { source: { case: "data", value: PNG } } } },
      textOnly,
      "this model does not read audio",
    ],
    ...["input_audio", "audio_url"].map(
      (type) =>
        [
          `a recording in a native part for a model that hears none: ${type}`,
          { kind: { case: "native", value: { dialect: "openai", json: JSON.stringify({ type, [type]: {} }) } } },
          textOnly,
          "this model does not read audio",
        ] as const,
    ),
    [
      "a recording as a file for a model that hears none",
      { kind: { case: "file", value: { source: { case: "data", value: PNG }, mediaType: "audio/mpeg" } } },
      textOnly,
      "this model does not read audio",
    ],
    [
      "a recording without data",
      { kind: { case: "audio", value: { id: "audio_1" } } },
      modelThat(),
      "has no audio data",
    ],
    [
      "a recording of no type",
      { kind: { case: "audio", value: { source: { case: "data", value: PNG } } } },
      modelThat(),
      "must have the media type of a recording, such as audio/wav",
    ],
    [
      "a recording of another type",
      { kind: { case: "audio", value: { source: { case: "data", value: PNG }, mediaType: "video/mp4" } } },
      modelThat(),
      "must have the media type of a recording, such as audio/wav",
    ],
    [
      "a video",
      { kind: { case: "video", value: { source: { case: "url", value: "https://example.com/v.mp4" } } } },
      modelThat(),
      "this model does not read video",
    ],
    ["an empty picture", { kind: { case: "image", value: {} } }, modelThat(), "has neither image data nor an address"],
    ["an empty file", { kind: { case: "file", value: {} } }, modelThat(), "has neither file data nor a file ID"],
  ])("are refused with %s", (_, part, model, words) => {
    const messages = [user("a"), { role: Role.USER, parts: [part] }];
    expect(refusalOf({ messages }, model)).toBe(`messages[1].parts[0]: ${words}`);
  });

  it.each([
    ["audio/wav", "wav"],
    ["audio/x-wav", "wav"],
    ["audio/mpeg", "mp3"],
    ["audio/mp3", "mp3"],
    ["audio/flac", "flac"],
    ["audio/opus", "opus"],
    ["audio/aac", "aac"],
    ["audio/L16", "pcm16"],
    ["audio/l16;rate=24000", "pcm16"],
    ["AUDIO/OGG", "ogg"],
  ])("name a recording of the type %s %s", (mediaType, format) => {
    const parts = [
      { kind: { case: "audio" as const, value: { source: { case: "data" as const, value: PNG }, mediaType } } },
    ];
    expect(translateMessages([{ role: Role.USER, parts }])[0].content).toEqual([
      { type: "input_audio", input_audio: { data: "iVBORw==", format } },
    ]);
  });

  it("list the cache marks that this dialect has no common word for", () => {
    const cacheMark = create(CacheMarkSchema, { ttl: { seconds: 3600n } });
    const { body, omitted } = translate({
      messages: [
        { role: Role.SYSTEM, parts: [{ ...text("long"), cacheMark }] },
        { role: Role.ASSISTANT, parts: [{ ...call("c"), cacheMark }] },
        { role: Role.TOOL, parts: [{ ...result("c", { ...text("r"), cacheMark }), cacheMark }] },
      ],
      tools: [{ ...tool("f"), cacheMark }],
    });
    expect(body.messages).toMatchObject([
      { role: "system", content: "long" },
      { role: "assistant", content: null, tool_calls: [{ id: "c", type: "function" }] },
      { role: "tool", tool_call_id: "c", content: "r" },
    ]);
    expect(omitted).toEqual([
      "messages[0].parts[0].cache_mark",
      "messages[1].parts[0].cache_mark",
      "messages[2].parts[0].cache_mark",
      "messages[2].parts[0].tool_result.parts[0].cache_mark",
      "tools[0].cache_mark",
    ]);
  });

  it("trap 37: keep later system messages where they are, where the server takes them", () => {
    const messages = [system("a"), user("q"), system("b"), user("r")];
    expect(translateMessages(messages).map(({ role }: { role: string }) => role)).toEqual([
      "system",
      "user",
      "system",
      "user",
    ]);
  });

  it("trap 37: gather all system messages in one at the front where the server takes one", () => {
    const messages = [system("a"), system("b"), user("q"), system("c")];
    const model = modelThat({ midConversationSystem: false, contentParts: false });
    expect(translateMessages(messages, model)).toEqual([
      { role: "system", content: "a\nb\nc" },
      { role: "user", content: "q" },
    ]);
    expect(translateMessages([user("q"), system("c")], model)).toEqual([
      { role: "system", content: "c" },
      { role: "user", content: "q" },
    ]);
  });

  it("trap 37: never move one to the front of a conversation that the model checks", () => {
    const model = modelThat({ midConversationSystem: false, preservedReasoning: true });
    expect(translateMessages([system("a"), user("q"), system("b")], model)).toEqual([
      { role: "system", content: "a" },
      { role: "user", content: "q" },
      { role: "user", content: "b" },
    ]);
  });

  it("trap 38: may be system messages only", () => {
    expect(translateMessages([system("a")], modelThat({ midConversationSystem: false }))).toEqual([
      { role: "system", content: "a" },
    ]);
  });

  it("need a role", () => {
    expect(refusalOf({ messages: [{ parts: [text("x")] }] })).toBe(
      "messages[0].role: must be system, user, assistant or tool",
    );
  });
});

describe("an earlier answer", () => {
  const called = { ...call("call_1", json('{"a":9007199254740993}')), signature: "sig" };
  const assistant = (parts: NonNullable<MessageInit["parts"]>, model?: UpstreamModel) =>
    translateMessages([user("q"), { role: Role.ASSISTANT, parts }, user("r")], model)[1];

  it("traps 40 and 46: has null for content when it only called tools, and exact arguments", () => {
    expect(assistant([called])).toEqual({
      role: "assistant",
      content: null,
      tool_calls: [{ id: "call_1", type: "function", function: { name: "f", arguments: '{"a":9007199254740993}' } }],
    });
  });

  it("trap 45: has an empty object for empty arguments, and other text as it is", () => {
    const calls = [call("call_1", json("")), call("call_2", json("not JSON")), call("call_3")];
    const sent = assistant(calls).tool_calls.map((one: { function: { arguments: string } }) => one.function.arguments);
    expect(sent).toEqual(["{}", "not JSON", "{}"]);
  });

  it("has custom calls", () => {
    const parts = ["", "select 1"].map((value, index) => call(`c${index}`, { case: "customInput", value }, "sql"));
    expect(assistant([text("x"), ...parts])).toEqual({
      role: "assistant",
      content: "x",
      tool_calls: [
        { id: "c0", type: "custom", custom: { name: "sql", input: "" } },
        { id: "c1", type: "custom", custom: { name: "sql", input: "select 1" } },
      ],
    });
  });

  it("cannot have been a file or a video", () => {
    for (const name of ["file", "video"] as const) {
      const value = { source: { case: "url" as const, value: "https://example.com/a" } };
      const messages = [user("q"), { role: Role.ASSISTANT, parts: [{ kind: { case: name, value } }] }];
      expect(refusalOf({ messages })).toBe(`messages[1].parts[0]: an assistant message cannot hold a ${name}`);
    }
  });

  it("may have been a refusal, or nothing", () => {
    expect(assistant([{ kind: { case: "refusal", value: "no" } }])).toEqual({
      role: "assistant",
      content: null,
      refusal: "no",
    });
    expect(assistant([])).toEqual({ role: "assistant", content: "" });
  });

  it("trap 51: is sent without its pictures", () => {
    const image = { kind: { case: "image" as const, value: { source: { case: "data" as const, value: PNG } } } };
    expect(assistant([text("a"), image])).toEqual({ role: "assistant", content: "a" });
  });

  it("refers to its speech by ID, or says what was spoken to a model that does not speak", () => {
    const speech = { kind: { case: "audio" as const, value: { id: "audio_1", transcript: "hello" } } };
    expect(assistant([speech])).toEqual({ role: "assistant", content: null, audio: { id: "audio_1" } });
    const other = { kind: { case: "audio" as const, value: { id: "audio_2", transcript: "again" } } };
    expect(assistant([speech, other])).toEqual({ role: "assistant", content: "again", audio: { id: "audio_1" } });
    const mute = modelThat({}, { outputModalities: new Set([Modality.TEXT]) });
    expect(assistant([speech], mute)).toEqual({ role: "assistant", content: "hello" });
  });

  it("trap 101: loses reasoning and signatures, but for a model that asks for them", () => {
    const thought = (value: string) => ({ kind: { case: "reasoning" as const, value: { text: value } } });
    const parts = [thought("a"), thought("b"), { ...text("x"), signature: "s" }, called];
    expect(Object.keys(assistant(parts))).toEqual(["role", "content", "tool_calls"]);
    expect(assistant(parts, modelThat({ preservedReasoning: true }))).toMatchObject({
      reasoning_content: "ab",
      extra_content: { google: { thought_signature: "s" } },
      tool_calls: [{ extra_content: { google: { thought_signature: "sig" } } }],
    });
  });

  it("trap 52: may be the last message", () => {
    expect(translateMessages([user("q"), { role: Role.ASSISTANT, parts: [text("The ")] }]).at(-1)).toEqual({
      role: "assistant",
      content: "The ",
    });
  });
});

describe("tool results", () => {
  const answer = (toolCallId: string, ...parts: NonNullable<MessageInit["parts"]>): MessageInit => ({
    role: Role.TOOL,
    parts: [result(toolCallId, ...parts)],
  });
  const image = {
    kind: {
      case: "image" as const,
      value: { source: { case: "data" as const, value: PNG }, mediaType: "image/png" },
    },
  };

  it("trap 42: stay one message each", () => {
    expect(translateMessages([answer("a", text("1")), answer("b"), user("q")])).toEqual([
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "tool", tool_call_id: "b", content: "" },
      { role: "user", content: "q" },
    ]);
  });

  it("are one message each also when they came in one, and cannot say that the tool failed", () => {
    const failed = {
      kind: { case: "toolResult" as const, value: { toolCallId: "b", parts: [text("no")], isError: true } },
    };
    const { body, omitted } = translate({
      messages: [{ role: Role.TOOL, parts: [result("a", text("1")), failed] }, user("q")],
    });
    expect(body.messages).toEqual([
      { role: "tool", tool_call_id: "a", content: "1" },
      { role: "tool", tool_call_id: "b", content: "no" },
      { role: "user", content: "q" },
    ]);
    expect(omitted).toEqual(["messages[0].parts[1].tool_result.is_error"]);
  });

  it("trap 50: give their pictures as the user, after the last result of the run", () => {
    expect(translateMessages([answer("a", text("see"), image), answer("b", text("2")), user("q")])).toEqual([
      { role: "tool", tool_call_id: "a", content: "see" },
      { role: "tool", tool_call_id: "b", content: "2" },
      {
        role: "user",
        content: [
          { type: "text", text: "Images in the result of tool call a:" },
          { type: "image_url", image_url: { url: "data:image/png;base64,iVBORw==" } },
        ],
      },
      { role: "user", content: "q" },
    ]);
    expect(translateMessages([answer("a", image)])).toHaveLength(2);
  });

  it("trap 44: have an ID of at most 40 characters, the same as the call's and apart from others", () => {
    const [long, other] = [`${"x".repeat(50)}1`, `${"x".repeat(50)}2`];
    const parts = [long, other, "functions.f:0"].map((id) => call(id));
    const [asked, ...answers] = translateMessages([
      { role: Role.ASSISTANT, parts },
      answer(long),
      answer(other),
      answer("functions.f:0"),
    ]);
    const ids = asked.tool_calls.map(({ id }: { id: string }) => id);
    expect(answers.map(({ tool_call_id: id }: { tool_call_id: string }) => id)).toEqual(ids);
    expect(ids.map((id: string) => id.length)).toEqual([40, 40, 13]);
    expect(new Set(ids).size).toBe(3);
  });
});

describe("tools", () => {
  const tools = [
    tool("f"),
    { kind: { case: "custom" as const, value: { name: "sql", formatJson: '{"type":"text"}' } } },
  ];

  it("trap 65: may have no parameters, and may be custom", () => {
    const strict = {
      kind: { case: "function" as const, value: { name: "g", description: "d", parametersJson: "{}", strict: true } },
    };
    expect(translate({ tools: [...tools, strict] }).body.tools).toEqual([
      { type: "function", function: { name: "f" } },
      { type: "custom", custom: { name: "sql", format: { type: "text" } } },
      { type: "function", function: { name: "g", description: "d", parameters: {}, strict: true } },
    ]);
  });

  it.each<[string, RequestInit["toolChoice"], unknown]>([
    ["auto", { choice: { case: "mode", value: ToolMode.AUTO } }, "auto"],
    ["none", { choice: { case: "mode", value: ToolMode.NONE } }, "none"],
    ["required", { choice: { case: "mode", value: ToolMode.REQUIRED } }, "required"],
    ["nothing", { choice: { case: "mode", value: ToolMode.UNSPECIFIED } }, undefined],
    ["a function", { choice: { case: "function", value: "f" } }, { type: "function", function: { name: "f" } }],
    ["a custom tool", { choice: { case: "custom", value: "sql" } }, { type: "custom", custom: { name: "sql" } }],
    [
      "some tools",
      { choice: { case: "allowed", value: { mode: ToolMode.REQUIRED, names: ["f", "sql"] } } },
      {
        type: "allowed_tools",
        allowed_tools: {
          mode: "required",
          tools: [
            { type: "function", function: { name: "f" } },
            { type: "custom", custom: { name: "sql" } },
          ],
        },
      },
    ],
  ])("may be chosen: %s", (_, toolChoice, sent) => {
    expect(translate({ tools, toolChoice }).body.tool_choice).toEqual(sent);
  });

  it("say nothing about parallel calls unless they are forbidden", () => {
    expect(translate({ tools, parallelToolCalls: true }).body).not.toHaveProperty("parallel_tool_calls");
    expect(translate({ tools, parallelToolCalls: false }).body.parallel_tool_calls).toBe(false);
  });

  it("trap 62: bring no choice when there are none", () => {
    const none: RequestInit = {
      toolChoice: { choice: { case: "mode", value: ToolMode.NONE } },
      parallelToolCalls: false,
    };
    expect(translate(none)).toMatchObject({ body: { messages: [{}] }, omitted: [] });
    expect(translate(none).body).not.toHaveProperty("tool_choice");
    expect(translate({ toolChoice: { choice: { case: "function", value: "f" } } }).omitted).toEqual(["tool_choice"]);
  });

  it("trap 63: are left to a model that cannot be made to call one", () => {
    const model = modelThat({ forcedTools: false });
    const { body, omitted } = translate({ tools, toolChoice: { choice: { case: "function", value: "f" } } }, model);
    expect(body.tool_choice).toBe("auto");
    expect(omitted).toEqual(["tool_choice"]);
  });

  it("are left out, and listed, for a model that calls none", () => {
    const { body, omitted } = translate({ tools, parallelToolCalls: false }, modelThat({ tools: false }));
    expect(Object.keys(body)).toEqual(["model", "messages"]);
    expect(omitted).toEqual(["tools", "parallel_tool_calls"]);
  });

  it.each(["[]", "{", "1"])("are refused with the schema %s", (parametersJson) => {
    const broken = { kind: { case: "function" as const, value: { name: "f", parametersJson } } };
    expect(refusalOf({ tools: [tool("g"), broken] })).toBe("tools[1].function.parameters_json: must be a JSON object");
  });
});

describe("the answer's form", () => {
  const jsonSchema = (schemaJson: string, description = "") => ({
    format: { case: "jsonSchema" as const, value: { name: "n", schemaJson, description, strict: true } },
  });

  it("passes where the model enforces a schema", () => {
    expect(translate({ responseFormat: { format: { case: "jsonObject", value: {} } } }).body.response_format).toEqual({
      type: "json_object",
    });
    expect(translate({ responseFormat: { format: { case: "text", value: {} } } }).body).not.toHaveProperty(
      "response_format",
    );
    expect(translate({ responseFormat: jsonSchema('{"type":"object"}') }).body.response_format).toEqual({
      type: "json_schema",
      json_schema: { name: "n", strict: true, schema: { type: "object" } },
    });
  });

  it("is said in the system message where the model does not", () => {
    const model = modelThat({ jsonSchema: false });
    const { body, omitted } = translate(
      { messages: [system("be brief"), user("q")], responseFormat: jsonSchema('{"type":"object"}', "A person") },
      model,
    );
    const instruction =
      'Answer only with a JSON object that satisfies this JSON Schema: {"type":"object"}. It is: A person';
    expect(body.response_format).toEqual({ type: "json_object" });
    expect(body.messages[0]).toEqual({ role: "system", content: `be brief\n\n${instruction}` });
    expect(omitted).toEqual(["response_format.json_schema"]);
    expect(translate({ responseFormat: jsonSchema("") }, model).body.messages).toEqual([
      { role: "system", content: "Answer only with a JSON object." },
      { role: "user", content: "hi" },
    ]);
  });

  it("is refused with a broken schema", () => {
    expect(refusalOf({ responseFormat: jsonSchema("{") })).toBe(
      "response_format.json_schema.schema_json: must be a JSON object",
    );
  });
});
