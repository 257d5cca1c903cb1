import { ImageSchema, Role } from "../../../gen/parley/v1/message_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { create } from "@bufbuild/protobuf";
import { says, sends } from "../../support/scripted-upstream.ts";
import { openAiWire } from "../../support/upstream-dialects.ts";
import { toRequest, withUnknownField } from "./ask.ts";
import { PICTURE } from "./pictures.ts";
import type { Scenario } from "./scenario.ts";

const hello = says("Hello.");
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
    isRepeat: model !== "alpha",
    ask: { model, maxOutputTokens: 3 },
    upstream: { [model]: [says("Hello.", { finish: "length" })] },
    expected: { answer: { model, finishReasons: ["length"] } },
  })),
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `returns content_filter when ${model} refuses, without calling another model`,
    isRepeat: model !== "alpha",
    ask: { model, fallbackModels: ["alpha", "beta", "local"] },
    upstream: { [model]: [says("I would rather not.", { finish: "refused" })] },
    expected: { answer: { model, text: "I would rather not.", finishReasons: ["content_filter"] } },
  })),
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `returns tool_calls for a tool call of ${model}, whatever the provider's finish reason`,
    isRepeat: model !== "alpha",
    ask: { model },
    upstream: { [model]: [says("Hello.", { call: { name: "look", arguments: '{"at":"me"}' } })] },
    expected: { answer: { model, finishReasons: ["tool_calls"], calls: ['look {"at":"me"}'] } },
  })),
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
    name: "streams an answer that the provider sent whole",
    ask: { model: "local" },
    mode: "stream",
    upstream: { local: [sends(200, "application/json", JSON.stringify(openAiWire.whole({ text: "Hello." })))] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "accepts the upper bound of the ranges that every format has",
    ask: { model: "local", temperature: 2, topP: 1, maxOutputTokens: 32_768 },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "accepts the upper bound of every other range",
    ask: {
      model: "local",
      frequencyPenalty: 2,
      presencePenalty: 2,
      logprobs: { topCount: 20 },
      logitBias: { "1": 100 },
      stopSequences: ["a", "b", "c", "d"],
      metadata: Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`label-${index}`, "x".repeat(512)])),
    },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "accepts the lower bound of the ranges that every format has",
    ask: { model: "local", temperature: 0, topP: 0, maxOutputTokens: 1 },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "accepts the lower bound of every other range",
    ask: { model: "local", frequencyPenalty: -2, presencePenalty: -2, choiceCount: 1, logitBias: { "1": -100 } },
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
        clamped: ["reasoning.effort max>high"],
      },
    },
  },
  {
    name: "ignores an unknown field and lists it by its name",
    at: "http",
    ask: { model: "local" },
    fields: { colour: true },
    upstream: { local: [hello] },
    expected: { answer: { model: "local", omitted: ["colour"] } },
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
    ask: { model: "local" },
    fields: JSON.parse('{"__proto__":{"model":"beta"}}') as Record<string, unknown>,
    upstream: { local: [hello] },
    expected: { answer: { model: "local", omitted: ["__proto__"] } },
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
