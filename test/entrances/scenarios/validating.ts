import { create } from "@bufbuild/protobuf";
import { Modality } from "../../../gen/parley/v1/completion_pb.js";
import { ImageSchema, Role } from "../../../gen/parley/v1/message_pb.js";
import { type Ask, userSays } from "./ask.ts";
import type { Scenario } from "./scenario.ts";

const plainPicture = create(ImageSchema, { source: { case: "url", value: "http://pictures.example/cat.png" } });
const labels = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`label-${index}`, "x"]));

/** One request per rule, and the field that it names. */
const WRONG: readonly (readonly [what: string, param: string, ask: Ask])[] = [
  ["no model", "model", { model: "" }],
  ["no messages", "messages", { messages: [] }],
  ["2,001 messages", "messages", { messages: Array.from({ length: 2001 }, () => userSays("hi")) }],
  ["a user who says nothing", "messages[0].content", { messages: [{ role: Role.USER }] }],
  [
    "a tool result without its call's ID",
    "messages[1].tool_call_id",
    { messages: [userSays("hi"), { role: Role.TOOL, content: [{ content: { case: "text", value: "1" } }] }] },
  ],
  [
    "a tool result for no call",
    "messages[1].tool_call_id",
    {
      messages: [
        userSays("hi"),
        { role: Role.TOOL, toolCallId: "call_1", content: [{ content: { case: "text", value: "1" } }] },
      ],
    },
  ],
  [
    "a picture at an address that is not https",
    "messages[0].content[0]",
    { messages: [{ role: Role.USER, content: [{ content: { case: "image", value: plainPicture } }] }] },
  ],
  ["a temperature below 0", "temperature", { temperature: -0.01 }],
  ["a temperature above 2", "temperature", { temperature: 2.01 }],
  ["a top_p below 0", "top_p", { topP: -0.01 }],
  ["a top_p above 1", "top_p", { topP: 1.01 }],
  ["a frequency_penalty above 2", "frequency_penalty", { frequencyPenalty: 2.01 }],
  ["a presence_penalty below -2", "presence_penalty", { presencePenalty: -2.01 }],
  ["21 top_logprobs", "top_logprobs", { logprobs: true, topLogprobs: 21 }],
  ["top_logprobs without logprobs", "top_logprobs", { topLogprobs: 1 }],
  ["no choices", "n", { n: 0 }],
  ["129 choices", "n", { n: 129 }],
  ["two choices of a model that gives one", "n", { n: 2 }],
  ["two choices of another model that gives one", "n", { model: "beta", n: 2 }],
  ["a logit_bias above 100", "logit_bias.1", { logitBias: { "1": 101 } }],
  ["no max_tokens to speak of", "max_tokens", { maxTokens: 0 }],
  ["more max_tokens than the model has", "max_tokens", { maxTokens: 1001 }],
  ["five stop sequences", "stop", { stop: ["a", "b", "c", "d", "e"] }],
  ["an empty stop sequence", "stop[0]", { stop: [""] }],
  ["nine fallback models", "fallback_models", { fallbackModels: Array.from({ length: 9 }, () => "beta") }],
  ["17 labels", "metadata", { metadata: labels(17) }],
  ["a label longer than 512 characters", "metadata.note", { metadata: { note: "x".repeat(513) } }],
  ["pictures without text", "modalities", { model: "painter", modalities: [Modality.IMAGE] }],
  ["speech of a model that does not speak", "modalities", { modalities: [Modality.TEXT, Modality.AUDIO] }],
];

/** Requests that can be read and are refused for what they mean. */
export const VALIDATING: readonly Scenario[] = [
  ...WRONG.map(([what, param, ask]): Scenario => ({
    name: `names the field when a request has ${what}`,
    ask,
    expected: { failure: "invalid_request", param },
  })),
  {
    name: "refuses a temperature that is not a number",
    at: "grpc",
    ask: { temperature: Number.NaN },
    expected: { failure: "invalid_request", param: "temperature" },
  },
  {
    name: "names the models that make pictures when one is asked that does not",
    ask: { modalities: [Modality.TEXT, Modality.IMAGE] },
    expected: { failure: "invalid_request", param: "modalities", message: /painter/ },
  },
  {
    name: "says which model does not exist",
    ask: { model: "nobody" },
    expected: { failure: "model_not_found", param: "model", message: /'nobody'/ },
  },
  {
    name: "says which fallback model does not exist",
    ask: { fallbackModels: ["beta", "nobody"] },
    expected: { failure: "model_not_found", param: "fallback_models[1]", message: /'nobody'/ },
  },
  {
    name: "says which model the key may not use",
    key: "alpha only",
    ask: { model: "beta" },
    expected: { failure: "permission_denied", message: /"beta"/ },
  },
  {
    name: "says which fallback model the key may not use, though it might never be asked",
    key: "alpha only",
    ask: { fallbackModels: ["local"] },
    expected: { failure: "permission_denied", message: /"local"/ },
  },
  {
    name: "says which capability the key lacks",
    key: "chat only",
    ask: { model: "painter", modalities: [Modality.TEXT, Modality.IMAGE] },
    expected: { failure: "permission_denied", message: /"images"/ },
  },
  {
    name: "looks for the model before it looks at what the key may do",
    key: "alpha only",
    ask: { model: "beta", fallbackModels: ["nobody"] },
    expected: { failure: "model_not_found", param: "fallback_models[0]" },
  },
  {
    name: "looks at what the key may do before it looks at the values of fields",
    key: "alpha only",
    ask: { model: "beta", temperature: 3 },
    expected: { failure: "permission_denied", message: /"beta"/ },
  },
  {
    name: "looks for the model before it looks at the values of fields",
    ask: { model: "nobody", temperature: 3 },
    expected: { failure: "model_not_found", param: "model" },
  },
  {
    name: "refuses a strict request that would lose a field",
    ask: { strict: true, seed: 7n },
    expected: { failure: "invalid_request", param: "seed", message: /strict/ },
  },
  {
    name: "refuses a strict request whose value would be moved",
    ask: { strict: true, temperature: 1.5 },
    expected: { failure: "invalid_request", param: "temperature", message: /strict/ },
  },
  {
    name: "refuses a strict request with an unknown field",
    ask: { strict: true, unrecognizedFields: ["colour"] },
    expected: { failure: "invalid_request", param: "colour", message: /strict/ },
  },
];
