import { describe, expect, it } from "vitest";
import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { ToolMode } from "../../../gen/parley/v1/tool_pb.js";
import { Failure } from "../../../src/core/failure.ts";
import { type ReadRequest, readChatRequest } from "../../../src/formats/openai-chat/request.ts";
import { failureOf } from "../../support/errors.ts";

const MINIMAL = { model: "a", messages: [{ role: "user", content: "hi" }] };

const read = (more: object): ReadRequest => readChatRequest({ ...MINIMAL, ...more });
const requestOf = (more: object): CompletionRequest => read(more).request;

const refusalOf = (json: unknown): Failure => failureOf(() => readChatRequest(json));

const tool = (more: object): object => ({ tools: [{ type: "function", function: { name: "f", ...more } }] });
const custom = (more: object): object => ({ tools: [{ type: "custom", custom: { name: "g", ...more } }] });
const effort = (value: ReasoningEffort): object => ({ effort: value });
const schema = (more: object): object => ({
  response_format: { type: "json_schema", json_schema: { name: "s", ...more } },
});

describe("a field is understood", () => {
  it.each<[string, object, object]>([
    ["model", { model: "family/b" }, { model: "family/b" }],
    ["max_tokens", { max_tokens: 5 }, { maxOutputTokens: 5 }],
    ["max_completion_tokens", { max_completion_tokens: 5 }, { maxOutputTokens: 5 }],
    ["max_completion_tokens before max_tokens", { max_tokens: 9, max_completion_tokens: 5 }, { maxOutputTokens: 5 }],
    ["max_tokens beside a null", { max_tokens: 9, max_completion_tokens: null }, { maxOutputTokens: 9 }],
    ["a whole number written as a float", { max_tokens: 5.0 }, { maxOutputTokens: 5 }],
    ["temperature", { temperature: 0 }, { temperature: 0 }],
    ["top_p", { top_p: 0.5 }, { topP: 0.5 }],
    ["n", { n: 2 }, { choiceCount: 2 }],
    ["stop, one", { stop: "END" }, { stopSequences: ["END"] }],
    ["stop, several", { stop: ["a", "b"] }, { stopSequences: ["a", "b"] }],
    ["presence_penalty", { presence_penalty: -1 }, { presencePenalty: -1 }],
    ["frequency_penalty", { frequency_penalty: 1.5 }, { frequencyPenalty: 1.5 }],
    ["logit_bias", { logit_bias: { "50256": -100 } }, { logitBias: { "50256": -100 } }],
    ["logprobs", { logprobs: true, top_logprobs: 3 }, { logprobs: { topCount: 3 } }],
    ["logprobs without alternatives", { logprobs: true }, { logprobs: { topCount: 0 } }],
    ["logprobs that are not wanted", { logprobs: false }, {}],
    ["seed", { seed: -7 }, { seed: -7n }],
    ["the largest seed that JSON can say", { seed: Number.MAX_SAFE_INTEGER }, { seed: 2n ** 53n - 1n }],
    ["fallback_models", { fallback_models: ["b", "c"] }, { fallbackModels: ["b", "c"] }],
    [
      "modalities",
      { modalities: ["text", "image", "audio"] },
      { modalities: [Modality.TEXT, Modality.IMAGE, Modality.AUDIO] },
    ],
    ["parallel_tool_calls", { parallel_tool_calls: false }, { parallelToolCalls: false }],
    ["verbosity", { verbosity: "low" }, { verbosity: Verbosity.LOW }],
    ["audio", { audio: { format: "wav", voice: "alloy" } }, { audioOptions: { format: "wav", voice: "alloy" } }],
    ["audio with a voice by ID", { audio: { format: "wav", voice: { id: "v1" } } }, { audioOptions: { voice: "v1" } }],
    ["prediction", { prediction: { type: "content", content: "x" } }, { prediction: "x" }],
    [
      "prediction in parts",
      {
        prediction: {
          type: "content",
          content: [
            { type: "text", text: "x" },
            { type: "text", text: "y" },
          ],
        },
      },
      { prediction: "xy" },
    ],
    ["metadata", { metadata: { team: "a" } }, { metadata: { team: "a" } }],
    ["store", { store: false }, { store: false }],
    ["service_tier", { service_tier: "flex" }, { serviceTier: "flex" }],
    ["prompt_cache_key", { prompt_cache_key: "k" }, { promptCacheKey: "k" }],
    ["safety_identifier", { safety_identifier: "s" }, { safetyIdentifier: "s" }],
    ["user", { user: "u" }, { endUserId: "u" }],
    ["moderation", { moderation: { model: "m" } }, { providerOptionsJson: { "openai.moderation": '{"model":"m"}' } }],
    ["web_search_options", { web_search_options: {} }, { providerOptionsJson: { "openai.web_search_options": "{}" } }],
    [
      "prompt_cache_options",
      { prompt_cache_options: { ttl: "30m" } },
      { providerOptionsJson: { "openai.prompt_cache_options": '{"ttl":"30m"}' } },
    ],
    [
      "prompt_cache_retention",
      { prompt_cache_retention: "24h" },
      { providerOptionsJson: { "openai.prompt_cache_retention": '"24h"' } },
    ],
    [
      "image_config",
      { image_config: { aspect_ratio: "16:9", image_size: "2K" } },
      { imageOptions: { aspectRatio: "16:9", size: "2K" } },
    ],
    ["parley.strict", { parley: { strict: true } }, { strict: true }],
    [
      "a tool",
      tool({}),
      { tools: [{ kind: { case: "function", value: { name: "f", description: "", parametersJson: "" } } }] },
    ],
    [
      "a tool's details",
      tool({ description: "d", parameters: { type: "object" }, strict: true }),
      { tools: [{ kind: { value: { description: "d", parametersJson: '{"type":"object"}', strict: true } } }] },
    ],
    [
      "a tool's nulls",
      tool({ description: null, parameters: null, strict: null }),
      { tools: [{ kind: { value: { description: "", parametersJson: "" } } }] },
    ],
    [
      "a tool's cache mark",
      { tools: [{ type: "function", function: { name: "f" }, cache_control: { type: "ephemeral", ttl: "1h" } }] },
      { tools: [{ cacheMark: { ttl: { seconds: 3600n, nanos: 0 } } }] },
    ],
    ["a custom tool", custom({}), { tools: [{ kind: { case: "custom", value: { name: "g", formatJson: "" } } }] }],
    [
      "a custom tool's format",
      custom({ description: "d", format: { type: "text" } }),
      { tools: [{ kind: { value: { description: "d", formatJson: '{"type":"text"}' } } }] },
    ],
    ["tool_choice none", { tool_choice: "none" }, { toolChoice: { choice: { case: "mode", value: ToolMode.NONE } } }],
    ["tool_choice auto", { tool_choice: "auto" }, { toolChoice: { choice: { case: "mode", value: ToolMode.AUTO } } }],
    [
      "tool_choice required",
      { tool_choice: "required" },
      { toolChoice: { choice: { case: "mode", value: ToolMode.REQUIRED } } },
    ],
    [
      "tool_choice of a function",
      { tool_choice: { type: "function", function: { name: "f" } } },
      { toolChoice: { choice: { case: "function", value: "f" } } },
    ],
    [
      "tool_choice of a custom tool",
      { tool_choice: { type: "custom", custom: { name: "g" } } },
      { toolChoice: { choice: { case: "custom", value: "g" } } },
    ],
    [
      "tool_choice among some",
      {
        tool_choice: {
          type: "allowed_tools",
          allowed_tools: {
            mode: "required",
            tools: [
              { type: "function", function: { name: "f" } },
              { type: "custom", custom: { name: "g" } },
            ],
          },
        },
      },
      { toolChoice: { choice: { case: "allowed", value: { mode: ToolMode.REQUIRED, names: ["f", "g"] } } } },
    ],
    ["response_format text", { response_format: { type: "text" } }, { responseFormat: { format: { case: "text" } } }],
    [
      "response_format json_object",
      { response_format: { type: "json_object" } },
      { responseFormat: { format: { case: "jsonObject" } } },
    ],
    [
      "response_format json_schema",
      schema({}),
      { responseFormat: { format: { case: "jsonSchema", value: { name: "s", schemaJson: "", description: "" } } } },
    ],
    [
      "a schema's details",
      schema({ description: "d", schema: { type: "object" }, strict: true }),
      { responseFormat: { format: { value: { description: "d", schemaJson: '{"type":"object"}', strict: true } } } },
    ],
    ["reasoning_effort none", { reasoning_effort: "none" }, { reasoning: effort(ReasoningEffort.NONE) }],
    ["reasoning_effort minimal", { reasoning_effort: "minimal" }, { reasoning: effort(ReasoningEffort.MINIMAL) }],
    ["reasoning_effort low", { reasoning_effort: "low" }, { reasoning: effort(ReasoningEffort.LOW) }],
    ["reasoning_effort medium", { reasoning_effort: "medium" }, { reasoning: effort(ReasoningEffort.MEDIUM) }],
    ["reasoning_effort high", { reasoning_effort: "high" }, { reasoning: effort(ReasoningEffort.HIGH) }],
    ["reasoning_effort xhigh", { reasoning_effort: "xhigh" }, { reasoning: effort(ReasoningEffort.XHIGH) }],
    ["reasoning_effort max", { reasoning_effort: "max" }, { reasoning: effort(ReasoningEffort.MAX) }],
  ])("%s", (_, more, expected) => {
    expect(requestOf(more)).toMatchObject(expected);
    expect(read(more).unrecognized).toEqual([]);
  });

  it.each([{}, { logprobs: false }, { reasoning_effort: null }])("and nothing else is: %j", (more) => {
    const { logprobs, reasoning } = requestOf(more);
    expect([logprobs, reasoning]).toEqual([undefined, undefined]);
  });

  it.each([
    [{}, { stream: false, includeUsage: false }],
    [{ stream: false }, { stream: false, includeUsage: false }],
    [{ stream: true }, { stream: true, includeUsage: false }],
    [
      { stream: true, stream_options: {} },
      { stream: true, includeUsage: false },
    ],
    [
      { stream: true, stream_options: { include_usage: true, include_obfuscation: false } },
      { stream: true, includeUsage: true },
    ],
    [{ stream_options: { include_usage: true } }, { stream: false, includeUsage: true }],
  ])("stream: %j", (more, expected) => {
    expect(read(more)).toMatchObject(expected);
  });
});

const OPTIONAL = [
  "max_tokens max_completion_tokens temperature top_p n stop stream stream_options presence_penalty frequency_penalty",
  "logit_bias logprobs top_logprobs seed tools tool_choice parallel_tool_calls response_format reasoning_effort verbosity",
  "modalities audio prediction metadata store service_tier prompt_cache_key prompt_cache_options prompt_cache_retention",
  "safety_identifier user moderation web_search_options fallback_models image_config parley",
]
  .join(" ")
  .split(" ");

it.each(OPTIONAL)("a null means that %s is not given", (field) => {
  const { nameOf: _, body: _body, ...given } = read({ [field]: null });
  expect(given).toEqual({ ...read({}), nameOf: undefined, body: undefined });
});

describe("a wrong type is refused and named", () => {
  it.each<[string, unknown, string]>([
    ["model", 7, "model"],
    ["model", null, "model"],
    ["messages", "hi", "messages"],
    ["messages", null, "messages"],
    ["messages", [7], "messages[0]"],
    ["max_tokens", "7", "max_tokens"],
    ["max_tokens", 1.5, "max_tokens"],
    ["max_tokens", 2 ** 31, "max_tokens"],
    ["max_completion_tokens", 2 ** 31, "max_completion_tokens"],
    ["temperature", "1", "temperature"],
    ["temperature", true, "temperature"],
    ["top_p", [], "top_p"],
    ["n", 1.5, "n"],
    ["n", -(2 ** 40), "n"],
    ["stop", 7, "stop"],
    ["stop", ["a", 7], "stop[1]"],
    ["stream", "true", "stream"],
    ["stream_options", true, "stream_options"],
    ["stream_options", { include_usage: 1 }, "stream_options.include_usage"],
    ["presence_penalty", "1", "presence_penalty"],
    ["frequency_penalty", {}, "frequency_penalty"],
    ["logit_bias", [], "logit_bias"],
    ["logit_bias", { "7": "x" }, "logit_bias.7"],
    ["logprobs", 1, "logprobs"],
    ["top_logprobs", 2 ** 32, "top_logprobs"],
    ["seed", 1.5, "seed"],
    ["seed", 2 ** 60, "seed"],
    ["tools", {}, "tools"],
    ["tools", [{}], "tools[0].type"],
    ["tools", [{ type: "function" }], "tools[0].function"],
    [
      "tools",
      [
        { type: "function", function: { name: "f" } },
        { type: "function", function: { name: 7 } },
      ],
      "tools[1].function.name",
    ],
    ["tools", [{ type: "function", function: { name: "f", parameters: "{}" } }], "tools[0].function.parameters"],
    ["tools", [{ type: "function", function: { name: "f", parameters: [] } }], "tools[0].function.parameters"],
    ["tools", [{ type: "function", function: { name: "f", strict: "yes" } }], "tools[0].function.strict"],
    ["tools", [{ type: "custom", custom: {} }], "tools[0].custom.name"],
    ["tool_choice", "any", "tool_choice"],
    ["tool_choice", { type: "function" }, "tool_choice.function"],
    [
      "tool_choice",
      { type: "allowed_tools", allowed_tools: { mode: "none", tools: [] } },
      "tool_choice.allowed_tools.mode",
    ],
    ["parallel_tool_calls", "yes", "parallel_tool_calls"],
    ["response_format", "json", "response_format"],
    ["response_format", { type: "yaml" }, "response_format.type"],
    ["response_format", { type: "json_schema" }, "response_format.json_schema"],
    ["response_format", { type: "json_schema", json_schema: { schema: {} } }, "response_format.json_schema.name"],
    ["reasoning_effort", "enormous", "reasoning_effort"],
    ["verbosity", 7, "verbosity"],
    ["modalities", ["text", "smell"], "modalities[1]"],
    ["modalities", "text", "modalities"],
    ["audio", { format: "wav" }, "audio.voice"],
    ["prediction", { type: "content", content: 7 }, "prediction.content"],
    ["metadata", { team: 7 }, "metadata.team"],
    ["store", "no", "store"],
    ["service_tier", 7, "service_tier"],
    ["prompt_cache_key", 7, "prompt_cache_key"],
    ["safety_identifier", 7, "safety_identifier"],
    ["user", 7, "user"],
    ["fallback_models", "b", "fallback_models"],
    ["fallback_models", ["b", 7], "fallback_models[1]"],
    ["image_config", { aspect_ratio: 1 }, "image_config.aspect_ratio"],
    ["parley", { strict: "yes" }, "parley.strict"],
    ["parley", true, "parley"],
  ])("%s: %j", (field, value, param) => {
    const failure = refusalOf({ ...MINIMAL, [field]: value });
    expect(failure.code).toBe("invalid_request");
    expect(failure.param).toBe(param);
    expect(failure.message).toMatch(new RegExp(`^${param.replaceAll(/[.[\]]/g, "\\$&")}: .`));
  });

  it.each([{}, { logprobs: false }, { logprobs: null }])(
    "and so are alternatives without log probabilities: %j",
    (more) => {
      const failure = refusalOf({ ...MINIMAL, ...more, top_logprobs: 2 });
      expect(failure.violations).toEqual([{ field: "top_logprobs", description: "needs logprobs to be true" }]);
    },
  );

  it.each(["5 minutes", "1d", "-5m", "m", "5", "1.5h", "1H", "9999999s"])(
    "and so is a cache mark's time of %j",
    (ttl) => {
      const tools = [{ type: "function", function: { name: "f" }, cache_control: { type: "ephemeral", ttl } }];
      expect(refusalOf({ ...MINIMAL, tools }).violations).toEqual([
        { field: "tools[0].cache_control.ttl", description: "must be a time such as 5m or 1h" },
      ]);
    },
  );

  it.each(["model", "messages"])("and so is a missing %s", (field) => {
    expect(refusalOf({ ...MINIMAL, [field]: undefined }).param).toBe(field);
  });

  it("in every place at once, twenty at most", () => {
    const { violations } = refusalOf({ ...MINIMAL, temperature: "x", top_p: "y" });
    expect(violations.map((violation) => violation.field)).toEqual(["temperature", "top_p"]);
    const many = refusalOf({ ...MINIMAL, messages: Array.from({ length: 2_000 }, () => 7) });
    expect(many.violations).toHaveLength(20);
  });

  it("without repeating what was sent", () => {
    const failure = refusalOf({ ...MINIMAL, user: { secret: "s3cret" }, temperature: "s3cret" });
    expect(JSON.stringify([failure.message, failure.violations])).not.toContain("s3cret");
  });
});

it.each([
  ["max_output_tokens", "max_tokens"],
  ["stop_sequences", "stop"],
  ["stop_sequences[1]", "stop[1]"],
  ["choice_count", "n"],
  ["end_user_id", "user"],
  ["logprobs", "logprobs"],
  ["logprobs.top_count", "top_logprobs"],
  ["reasoning.effort", "reasoning_effort"],
  ["reasoning.max_tokens", "reasoning_effort"],
  ["temperature", "temperature"],
])("the contract's %s is %s to a caller of this format", (path, name) => {
  expect(read({}).nameOf(path)).toBe(name);
});

describe("unknown fields", () => {
  it("are listed with their place, and otherwise ignored", () => {
    const { unrecognized } = read({ frobnicate: 1, top_k: 5, messages: [{ role: "user", content: "hi", weight: 1 }] });
    expect(unrecognized).toEqual(["frobnicate", "top_k", "messages[0].weight"]);
  });

  it("with the names of an object's own workings are harmless", () => {
    const json: unknown = JSON.parse(`{
      "model": "a", "__proto__": {"polluted": true}, "constructor": {"prototype": {"polluted": true}}, "toString": 1,
      "messages": [{"role": "user", "content": "hi", "__proto__": {"polluted": true}, "hasOwnProperty": 1}],
      "logit_bias": {"constructor": 1, "toString": 2}, "metadata": {"constructor": "x", "hasOwnProperty": "y"},
      "tools": [{"type": "function", "function": {"name": "f", "parameters": {"__proto__": {"polluted": true}}}}]
    }`);
    const { request, unrecognized } = readChatRequest(json);
    expect(unrecognized).toEqual(expect.arrayContaining(["constructor", "toString", "messages[0].hasOwnProperty"]));
    expect({ ...request.logitBias }).toEqual({ constructor: 1, toString: 2 });
    expect({ ...request.metadata }).toEqual({ constructor: "x", hasOwnProperty: "y" });
    expect(({} as Record<string, unknown>)["polluted"]).toBeUndefined();
    expect(Object.getPrototypeOf(request.metadata)).toBe(Object.prototype);
    expect((request as unknown as Record<string, unknown>)["polluted"]).toBeUndefined();
  });

  it("are listed only so far, with names of a sane length", () => {
    const many = Object.fromEntries(
      Array.from({ length: 100_000 }, (_, index) => [`field_${index}_${"x".repeat(80)}`, index]),
    );
    const { unrecognized } = read(many);
    expect(unrecognized).toHaveLength(64);
    for (const field of unrecognized) expect(field.length).toBeLessThanOrEqual(64);
  });
});

it.each([[null], [[]], ["text"], [7]])("a body that is %j is not a request", (json) => {
  expect(refusalOf(json)).toMatchObject({
    code: "invalid_request",
    message: expect.stringMatching(/^The request body /),
    violations: [],
  });
});
