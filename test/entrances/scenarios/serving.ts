import { ImageSchema, Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { create } from "@bufbuild/protobuf";
import { says, sends } from "../../support/scripted-upstream.ts";
import { openAiWire } from "../../support/upstream-dialects.ts";
import { toRequest, withUnknownField } from "./ask.ts";
import type { Scenario } from "./scenario.ts";

/** A PNG of one pixel. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const hello = says("Hello.");
const wantsPictures = { model: "painter", modalities: [Modality.TEXT, Modality.IMAGE] };
const picture = create(ImageSchema, {
  source: { case: "data", value: Buffer.from(PICTURE, "base64") },
  mediaType: "image/png",
});

/** Requests that are served by the requested model. */
export const SERVING: readonly Scenario[] = [
  { name: "serves from a provider with the Anthropic format", upstream: { alpha: [hello] }, expected: { answer: {} } },
  {
    name: "serves from a provider with the Gemini format",
    ask: { model: "beta" },
    upstream: { beta: [hello] },
    expected: { answer: { model: "beta" } },
  },
  {
    name: "serves from a provider with the OpenAI format",
    ask: { model: "local" },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" } },
  },
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `returns the finish reason length when ${model} reaches its token limit`,
    ask: { model, maxOutputTokens: 3 },
    upstream: { [model]: [says("Hello.", { finish: "length" })] },
    expected: { answer: { model, finishReasons: ["length"] } },
  })),
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `returns content_filter when ${model} refuses, without calling another model`,
    ask: { model, fallbackModels: ["alpha", "beta", "local"] },
    upstream: { [model]: [says("I would rather not.", { finish: "refused" })] },
    expected: { answer: { model, text: "I would rather not.", finishReasons: ["content_filter"] } },
  })),
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `returns tool_calls for a tool call of ${model}, whatever the provider's finish reason`,
    ask: { model },
    upstream: { [model]: [says("Hello.", { call: { name: "look", arguments: '{"at":"me"}' } })] },
    expected: { answer: { model, finishReasons: ["tool_calls"] } },
  })),
  {
    name: "returns the text and the image of an image model",
    ask: wantsPictures,
    upstream: { painter: [says("Here it is:", { picture: PICTURE })] },
    expected: { answer: { model: "painter", text: "Here it is:", pictures: [PICTURE] } },
  },
  {
    name: "serves a text conversation with an image model when no image is requested",
    ask: { model: "painter" },
    upstream: { painter: [hello] },
    expected: { answer: { model: "painter" } },
  },
  {
    name: "forwards an image in a message",
    ask: { messages: [{ role: Role.USER, parts: [{ kind: { case: "image", value: picture } }] }] },
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
  {
    name: "returns the requested number of choices if the provider supports it",
    ask: { model: "local", choiceCount: 2 },
    upstream: { local: [says("Hello.", { choices: 2 })] },
    expected: { answer: { model: "local", text: "Hello.Hello.", finishReasons: ["stop", "stop"] } },
  },
  {
    name: "streams no usage to a client that did not request it",
    at: "http",
    mode: "stream",
    http: { fields: { stream_options: undefined } },
    upstream: { alpha: [hello] },
    expected: { answer: { usage: undefined } },
  },
  {
    name: "treats null as an omitted field",
    at: "http",
    http: { fields: { temperature: null, stop: null, tools: null, fallback_models: null, max_tokens: null } },
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
  {
    name: "streams an answer that the provider sent whole",
    ask: { model: "local" },
    mode: "stream",
    upstream: { local: [sends(200, "application/json", JSON.stringify(openAiWire.whole({ text: "Hello." })))] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "accepts the upper bound of every range",
    ask: {
      model: "local",
      temperature: 2,
      topP: 1,
      frequencyPenalty: 2,
      presencePenalty: 2,
      logprobs: { topCount: 20 },
      maxOutputTokens: 32_768,
      logitBias: { "1": 100 },
      stopSequences: ["a", "b", "c", "d"],
      metadata: Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`label-${index}`, "x".repeat(512)])),
    },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "accepts the lower bound of every range",
    ask: {
      model: "local",
      temperature: 0,
      topP: 0,
      frequencyPenalty: -2,
      presencePenalty: -2,
      maxOutputTokens: 1,
      choiceCount: 1,
      logitBias: { "1": -100 },
    },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "serves a conversation of 2,000 messages",
    ask: { messages: Array.from({ length: 2000 }, () => toRequest().messages[0]!) },
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
  {
    name: "lists a field that the provider does not support",
    ask: { seed: 7n, frequencyPenalty: 1 },
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["seed", "frequency_penalty"] } },
  },
  {
    name: "lists a value that was clamped to the provider's range",
    ask: { temperature: 1.5 },
    upstream: { alpha: [hello] },
    expected: { answer: { clamped: ["temperature 1.5>1"] } },
  },
  {
    name: "lists an effort that was clamped to the nearest one that the model has",
    ask: { reasoning: { effort: ReasoningEffort.MAX } },
    upstream: { alpha: [hello] },
    models: { alpha: { capabilities: { reasoning: "level", reasoning_efforts: ["low", "medium", "high"] } } },
    expected: {
      answer: {
        clamped: {
          http: ["reasoning_effort max>high"],
          grpc: ["reasoning.effort REASONING_EFFORT_MAX>REASONING_EFFORT_HIGH"],
        },
      },
    },
  },
  {
    name: "ignores an unknown field and lists it by its name",
    at: "http",
    http: { fields: { colour: true } },
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["colour"] } },
  },
  {
    name: "ignores an unknown field and lists it by its number",
    at: "grpc",
    grpcBytes: withUnknownField(),
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["1999"] } },
  },
  {
    name: "ignores a key called __proto__",
    at: "http",
    mode: "whole",
    http: { body: '{"model":"alpha","messages":[{"role":"user","content":"hi"}],"__proto__":{"model":"beta"}}' },
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["__proto__"] } },
  },
  {
    name: "serves a strict request that loses nothing",
    ask: { strict: true, temperature: 0.5 },
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
  {
    name: "records an answer as served when its caller closes the connection after the end",
    leaves: "after the end",
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
];
