import { describe, expect, it } from "vitest";
import { clampsOf, omittedOf } from "../omissions.ts";
import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { ImageDetail } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import type { UpstreamModel } from "../../../src/core/provider.ts";
import {
  type PartInit,
  assistant,
  effort,
  image,
  imageUrl,
  PNG,
  request,
  system,
  text,
  tool,
  toolResult,
  user,
  WEATHER,
} from "./builders.ts";
import { adaptiveModel, budgetModel } from "./model.ts";
import { bodyOf, refusalOf, translate } from "./translating.ts";

describe("what is omitted or clamped", () => {
  const noted = (init: Parameters<typeof request>[0], model: UpstreamModel = budgetModel()): unknown => {
    const translation = translate(request(init), model);
    return [
      ...omittedOf(translation),
      ...clampsOf(translation).map(({ field, requested, sent }) => `${field}: ${requested} -> ${sent}`),
    ];
  };
  const optionsOf = (requested: ReasoningEffort): Parameters<typeof request>[0] => ({
    reasoning: effort(requested),
    maxOutputTokens: 4000,
  });

  it.each<[string, Parameters<typeof request>[0], UpstreamModel, string[]]>([
    [
      "trap 57: parameters without a place are left out and listed",
      {
        seed: 1n,
        frequencyPenalty: 1,
        presencePenalty: -1,
        logitBias: { "1": 2 },
        store: true,
        verbosity: Verbosity.LOW,
        prediction: "x",
      },
      budgetModel(),
      ["seed", "frequency_penalty", "presence_penalty", "logit_bias", "store", "verbosity", "prediction"],
    ],
    [
      "trap 56: log probabilities are left out and listed",
      { logprobs: { topCount: 3 } },
      budgetModel(),
      ["logprobs", "logprobs.top_count"],
    ],
    [
      "options of another dialect are listed by name",
      {
        providerOptionsJson: {
          "openai.web_search_options": "{}",
          "openai.moderation": "{}",
          "gemini.safety_settings": "[]",
        },
      },
      budgetModel(),
      [
        "provider_options_json.gemini.safety_settings",
        "provider_options_json.openai.moderation",
        "provider_options_json.openai.web_search_options",
      ],
    ],
    [
      "options of pictures and speech are listed",
      { imageOptions: { size: "1K", mask: { mediaType: "image/png" } }, audioOptions: { voice: "a" } },
      budgetModel(),
      ["image_options.size", "image_options.mask", "audio_options"],
    ],
    [
      "what has no effect is not listed",
      {
        store: false,
        choiceCount: 1,
        parallelToolCalls: true,
        frequencyPenalty: 0,
        presencePenalty: 0,
        verbosity: Verbosity.MEDIUM,
      },
      budgetModel(),
      [],
    ],
    [
      "trap 47: a speaker's name is listed, a session is not",
      {
        metadata: { a: "b" },
        promptCacheKey: "k",
        sessionId: "s",
        messages: [{ ...user("hi"), name: "Ann" }],
      },
      budgetModel(),
      ["messages[0].name", "metadata", "prompt_cache_key"],
    ],
    [
      "a default of sampling is not listed where sampling is not taken",
      { temperature: 1, topP: 1 },
      adaptiveModel(),
      [],
    ],
    [
      "sampling is listed where it is not taken",
      { temperature: 0.5, topP: 0.5 },
      adaptiveModel(),
      ["temperature", "top_p"],
    ],
    [
      "trap 58: a temperature above the range is clamped",
      { temperature: 1.4 },
      budgetModel(),
      ["temperature: 1.4 -> 1"],
    ],
    ["trap 59: top_p gives way to temperature", { temperature: 0.5, topP: 0.5 }, budgetModel(), ["top_p"]],
    [
      "trap 60: a token limit above the model's is clamped",
      { maxOutputTokens: 70_000 },
      budgetModel(),
      ["max_output_tokens: 70000 -> 64000"],
    ],
    [
      "trap 55: blank stop sequences are listed by index",
      { stopSequences: ["a", " ", "\n"] },
      budgetModel(),
      ["stop_sequences[1]", "stop_sequences[2]"],
    ],
    ["an unknown service tier is listed", { serviceTier: "flex" }, budgetModel(), ["service_tier"]],
    [
      "the second of two user IDs is listed",
      { endUserId: "a", safetyIdentifier: "b" },
      budgetModel(),
      ["safety_identifier"],
    ],
    [
      "trap 62: a forced choice without tools is listed",
      { toolChoice: { choice: { case: "mode", value: ToolMode.REQUIRED } } },
      budgetModel(),
      ["tool_choice"],
    ],
    [
      "trap 63: a forced choice that the model cannot obey is listed",
      { tools: [WEATHER], toolChoice: { choice: { case: "function", value: "get_weather" } } },
      adaptiveModel(),
      ["tool_choice"],
    ],
    ["tools for a model without are listed", { tools: [WEATHER] }, budgetModel({ tools: false }), ["tools"]],
    [
      "a strict tool with an open schema is listed",
      { tools: [tool("f", { type: "object" }, { strict: true })] },
      budgetModel(),
      ["tools[0].function.strict"],
    ],
    [
      "an effort is listed when the limit leaves no room for it",
      { reasoning: effort(ReasoningEffort.HIGH), maxOutputTokens: 1024 },
      budgetModel(),
      ["reasoning.effort"],
    ],
    [
      "an effort is listed where there is no reasoning",
      optionsOf(ReasoningEffort.LOW),
      budgetModel({ reasoning: "none" }),
      ["reasoning.effort"],
    ],
    [
      "no effort is not listed where there is no reasoning",
      optionsOf(ReasoningEffort.NONE),
      budgetModel({ reasoning: "none" }),
      [],
    ],
    [
      "a picture's detail is listed",
      { messages: [user([image(PNG, ImageDetail.HIGH)])] },
      budgetModel(),
      ["messages[0].parts[0].image.detail"],
    ],
    [
      "a schema that is only asked for in words is listed",
      { responseFormat: { format: { case: "jsonSchema", value: { name: "a", schemaJson: "{}", strict: true } } } },
      budgetModel({ jsonSchema: false }),
      ["response_format.json_schema"],
    ],
  ])("%s", (_, init, model, expected) => {
    expect(noted(init, model)).toEqual(expected);
  });

  it("trap 57: nothing that is omitted is in the body", () => {
    const body = bodyOf(request({ seed: 1n, logprobs: {}, metadata: { a: "b" }, store: true }));
    expect(Object.keys(body).toSorted()).toEqual(["max_tokens", "messages", "model"]);
  });
});

describe("what is refused", () => {
  const custom = { kind: { case: "custom", value: { name: "c" } } } as const;
  const part = (content: PartInit): CompletionRequest => request({ messages: [user("a"), user([content])] });

  it.each<[string, CompletionRequest, string, UpstreamModel?]>([
    ["trap 54: more than one choice", request({ choiceCount: 2 }), "choice_count"],
    ["an answer with pictures", request({ modalities: [Modality.TEXT, Modality.IMAGE] }), "modalities"],
    ["a recording", part({ kind: { case: "audio", value: { mediaType: "audio/wav" } } }), "messages[1].parts[0]"],
    [
      "a video",
      part({ kind: { case: "video", value: { source: { case: "url", value: "https://example.com/v.mp4" } } } }),
      "messages[1].parts[0]",
    ],
    [
      "a video of the model",
      request({ messages: [user("a"), assistant([{ kind: { case: "video", value: {} } }]), user("b")] }),
      "messages[1].parts[0]",
    ],
    [
      "an upload by ID",
      part({ kind: { case: "file", value: { source: { case: "id", value: "f" } } } }),
      "messages[1].parts[0]",
    ],
    [
      "a document of an unknown kind",
      part({
        kind: { case: "file", value: { source: { case: "data", value: PNG }, mediaType: "application/zip" } },
      }),
      "messages[1].parts[0]",
    ],
    [
      "a text document that is not UTF-8",
      part({
        kind: {
          case: "file",
          value: { source: { case: "data", value: Buffer.from([0xff]) }, mediaType: "text/plain" },
        },
      }),
      "messages[1].parts[0]",
    ],
    ["trap 48: a picture of an unknown kind", part(image(Buffer.from("BM…."))), "messages[1].parts[0]"],
    ["a picture by a plain http address", part(imageUrl("http://example.com/a.png")), "messages[1].parts[0]"],
    [
      "a picture by address for a model that reads none",
      part(imageUrl("https://example.com/a.png")),
      "messages[1].parts[0]",
      budgetModel({ imageUrls: false }),
    ],
    [
      "a picture for a model without eyes",
      part(image(PNG)),
      "messages[1].parts[0]",
      { ...budgetModel(), inputModalities: new Set([Modality.TEXT]) },
    ],
    ["a picture in a system message", request({ messages: [system([image(PNG)]), user("a")] }), "messages[0].parts[0]"],
    ["a custom tool", request({ tools: [WEATHER, custom] }), "tools[1]"],
    [
      "a call of a custom tool",
      request({ messages: [user("a"), assistant("b", { calls: [{ id: "c", name: "d", customInput: "x" }] })] }),
      "messages[1].parts[1]",
    ],
    [
      "a choice of a custom tool",
      request({ tools: [WEATHER], toolChoice: { choice: { case: "custom", value: "c" } } }),
      "tool_choice",
    ],
    [
      "a tool whose arguments are no object",
      request({ tools: [tool("f", { type: "string" })] }),
      "tools[0].function.parameters_json.type",
    ],
    [
      "a schema that is none",
      request({ responseFormat: { format: { case: "jsonSchema", value: { name: "a", schemaJson: "[]" } } } }),
      "response_format.json_schema.schema_json",
    ],
    [
      "trap 43: a result of no call",
      request({ messages: [user("a"), toolResult("x", "y")] }),
      "messages[1].parts[0].tool_result.tool_call_id",
    ],
    [
      "trap 52: a last word of the model that it cannot continue",
      request({ messages: [user("a"), assistant("b")] }),
      "messages",
      adaptiveModel(),
    ],
    [
      "trap 52: a last word of the model while it reasons",
      request({ messages: [user("a"), assistant("b")], reasoning: effort(ReasoningEffort.LOW) }),
      "messages",
    ],
    ["a conversation without content", request({ messages: [user(" ")] }), "messages"],
    ["a role of no meaning", request({ messages: [{ parts: [text("a")] }, user("b")] }), "messages[0].role"],
  ])("%s", (_, refused, field, model) => {
    expect(refusalOf(refused, model)).toMatchObject({ code: "invalid_request", param: field });
  });
});

describe("the rest of the body", () => {
  it("hashes an e-mail address of the end user", () => {
    const { user_id } = bodyOf(request({ endUserId: "ann@example.com" }))["metadata"] as { user_id: string };
    expect(user_id).toMatch(/^[0-9a-f]{64}$/);
    expect(bodyOf(request({ safetyIdentifier: "s-1" }))).toMatchObject({ metadata: { user_id: "s-1" } });
  });

  it("translates the service tiers that the provider has", () => {
    expect(bodyOf(request({ serviceTier: "auto" }))).toMatchObject({ service_tier: "auto" });
    expect(bodyOf(request({ serviceTier: "default" }))).toMatchObject({ service_tier: "standard_only" });
  });

  it("trap 17: streams a whole answer that may be long", () => {
    expect(translate(request({ maxOutputTokens: 21_333 }), budgetModel())).toMatchObject({ streamed: false });
    const long = translate(request({ maxOutputTokens: 21_334 }), budgetModel());
    expect([long.streamed, JSON.parse(long.body.toString())]).toMatchObject([true, { stream: true }]);
  });
});
