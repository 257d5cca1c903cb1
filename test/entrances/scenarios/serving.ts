import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import { ImageSchema, Role } from "../../../gen/parley/v1/message_pb.js";
import { create } from "@bufbuild/protobuf";
import { says, sends } from "../../support/scripted-upstream.ts";
import { openAiWire } from "../../support/upstream-dialects.ts";
import { toRequest } from "./ask.ts";
import type { Scenario } from "./scenario.ts";

/** One pixel. */
const PICTURE = "iVBORw0KGgoAAAANSUhEUgAAAAEAAAABCAYAAAAfFcSJAAAADUlEQVR42mNk+M9QDwADhgGAWjR9awAAAABJRU5ErkJggg==";
const hello = says("Hello.");
const wantsPictures = { model: "painter", modalities: [Modality.TEXT, Modality.IMAGE] };
const picture = create(ImageSchema, {
  source: { case: "data", value: Buffer.from(PICTURE, "base64") },
  mediaType: "image/png",
});

/** Requests that are served by the model they ask for. */
export const SERVING: readonly Scenario[] = [
  { name: "answers from a provider on the Anthropic wire", upstream: { alpha: [hello] }, expected: { answer: {} } },
  {
    name: "answers from a provider on the Gemini wire",
    ask: { model: "beta" },
    upstream: { beta: [hello] },
    expected: { answer: { model: "beta" } },
  },
  {
    name: "answers from a provider on the OpenAI wire",
    ask: { model: "local" },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" } },
  },
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `says length when ${model} has used up its tokens`,
    ask: { model, maxTokens: 3 },
    upstream: { [model]: [says("Hello.", { finish: "length" })] },
    expected: { answer: { model, finishReasons: ["length"] } },
  })),
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `takes a refusal by ${model} for an answer that was filtered, and asks no other model`,
    ask: { model, fallbackModels: ["alpha", "beta", "local"] },
    upstream: { [model]: [says("I would rather not.", { finish: "refused" })] },
    expected: { answer: { model, text: "I would rather not.", finishReasons: ["content_filter"] } },
  })),
  ...(["alpha", "beta", "local"] as const).map((model): Scenario => ({
    name: `says tool_calls when ${model} calls a tool, whatever the provider's word for it`,
    ask: { model },
    upstream: { [model]: [says("Hello.", { call: { name: "look", arguments: '{"at":"me"}' } })] },
    expected: { answer: { model, finishReasons: ["tool_calls"] } },
  })),
  {
    name: "returns the text and the picture of an image model",
    ask: wantsPictures,
    upstream: { painter: [says("Here it is:", { picture: PICTURE })] },
    expected: { answer: { model: "painter", text: "Here it is:", pictures: [PICTURE] } },
  },
  {
    name: "has an ordinary conversation with an image model when no picture is asked for",
    ask: { model: "painter" },
    upstream: { painter: [hello] },
    expected: { answer: { model: "painter" } },
  },
  {
    name: "passes a picture in a message on",
    ask: { messages: [{ role: Role.USER, content: [{ content: { case: "image", value: picture } }] }] },
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
  {
    name: "returns as many choices as were asked for where the provider can make them",
    ask: { model: "local", n: 2 },
    upstream: { local: [says("Hello.", { choices: 2 })] },
    expected: { answer: { model: "local", text: "Hello.Hello.", finishReasons: ["stop", "stop"] } },
  },
  {
    name: "streams no usage to a client that did not ask for it",
    at: "http",
    mode: "stream",
    http: { fields: { stream_options: undefined } },
    upstream: { alpha: [hello] },
    expected: { answer: { usage: undefined } },
  },
  {
    name: "takes null for a field that is not given",
    at: "http",
    http: { fields: { temperature: null, stop: null, tools: null, fallback_models: null, max_tokens: null } },
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
  {
    name: "streams an answer that the provider did not care to stream",
    ask: { model: "local" },
    mode: "stream",
    upstream: { local: [sends(200, "application/json", JSON.stringify(openAiWire.whole({ text: "Hello." })))] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "serves a request at the upper bound of every range",
    ask: {
      model: "local",
      temperature: 2,
      topP: 1,
      frequencyPenalty: 2,
      presencePenalty: 2,
      logprobs: true,
      topLogprobs: 20,
      maxTokens: 32_768,
      logitBias: { "1": 100 },
      stop: ["a", "b", "c", "d"],
      metadata: Object.fromEntries(Array.from({ length: 16 }, (_, index) => [`label-${index}`, "x".repeat(512)])),
    },
    upstream: { local: [hello] },
    expected: { answer: { model: "local" } },
  },
  {
    name: "serves a request at the lower bound of every range",
    ask: {
      model: "local",
      temperature: 0,
      topP: 0,
      frequencyPenalty: -2,
      presencePenalty: -2,
      maxTokens: 1,
      n: 1,
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
    name: "lists a field that the provider cannot honour",
    ask: { seed: 7n, frequencyPenalty: 1 },
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["seed", "frequency_penalty"] } },
  },
  {
    name: "lists a value that was moved into the provider's range",
    ask: { temperature: 1.5 },
    upstream: { alpha: [hello] },
    expected: { answer: { clamped: ["temperature 1.5>1"] } },
  },
  {
    name: "ignores an unknown field and lists it",
    ask: { unrecognizedFields: ["colour"] },
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["colour"] } },
  },
  {
    name: "is not led astray by a key called __proto__",
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
    name: "keeps an answer when its caller leaves after the end",
    leaves: "after the end",
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
];
