import { create } from "@bufbuild/protobuf";
import { ImageSchema, Role } from "../../../gen/parley/v1/message_pb.js";
import { Modality } from "../../../gen/parley/v1/modality_pb.js";
import { ReasoningEffort } from "../../../gen/parley/v1/reasoning_pb.js";
import { type Ask, userSays, withUnknownField } from "./ask.ts";
import type { ExpectedFailure, Scenario } from "./scenario.ts";

const plainPicture = create(ImageSchema, { source: { case: "url", value: "http://pictures.example/cat.png" } });
const labels = (count: number): Record<string, string> =>
  Object.fromEntries(Array.from({ length: count }, (_, index) => [`label-${index}`, "x"]));

const RESULT_ID = "messages[1].parts[0].tool_result.tool_call_id";
const toolSays = (text: string, toolCallId?: string): NonNullable<Ask["messages"]>[number] => ({
  role: Role.TOOL,
  parts: [
    {
      kind: {
        case: "toolResult",
        value: { ...(toolCallId !== undefined && { toolCallId }), parts: [{ kind: { case: "text", value: text } }] },
      },
    },
  ],
});

/** One request per rule, with the field in the error. */
const WRONG: readonly (readonly [what: string, param: NonNullable<ExpectedFailure["param"]>, ask: Ask])[] = [
  ["no model", "model", { model: "" }],
  ["no messages", "messages", { messages: [] }],
  ["2,001 messages", "messages", { messages: Array.from({ length: 2001 }, () => userSays("hi")) }],
  ["a user who says nothing", "messages[0].parts", { messages: [{ role: Role.USER }] }],
  ["a tool result without its call's ID", RESULT_ID, { messages: [userSays("hi"), toolSays("1")] }],
  ["a tool result for no call", RESULT_ID, { messages: [userSays("hi"), toolSays("1", "call_1")] }],
  [
    "a picture at an address that is not https",
    "messages[0].parts[0]",
    { messages: [{ role: Role.USER, parts: [{ kind: { case: "image", value: plainPicture } }] }] },
  ],
  ["a temperature below 0", "temperature", { temperature: -0.01 }],
  ["a temperature above 2", "temperature", { temperature: 2.01 }],
  ["a top_p below 0", "top_p", { topP: -0.01 }],
  ["a top_p above 1", "top_p", { topP: 1.01 }],
  ["a frequency_penalty above 2", "frequency_penalty", { frequencyPenalty: 2.01 }],
  ["a presence_penalty below -2", "presence_penalty", { presencePenalty: -2.01 }],
  ["21 alternatives of each token", "logprobs.top_count", { logprobs: { topCount: 21 } }],
  ["no choices", "choice_count", { choiceCount: 0 }],
  ["129 choices", "choice_count", { choiceCount: 129 }],
  ["two choices of a model that gives one", "choice_count", { choiceCount: 2 }],
  ["two choices of another model that gives one", "choice_count", { model: "beta", choiceCount: 2 }],
  ["a logit_bias above 100", "logit_bias.1", { logitBias: { "1": 101 } }],
  ["no max_output_tokens to speak of", "max_output_tokens", { maxOutputTokens: 0 }],
  ["more max_output_tokens than the model has", "max_output_tokens", { maxOutputTokens: 1001 }],
  ["five stop sequences", "stop_sequences", { stopSequences: ["a", "b", "c", "d", "e"] }],
  ["an empty stop sequence", "stop_sequences[0]", { stopSequences: [""] }],
  ["nine fallback models", "fallback_models", { fallbackModels: Array.from({ length: 9 }, () => "beta") }],
  ["17 labels", "metadata", { metadata: labels(17) }],
  ["a label longer than 512 characters", "metadata.note", { metadata: { note: "x".repeat(513) } }],
  ["pictures without text", "modalities", { model: "painter", modalities: [Modality.IMAGE] }],
  ["speech of a model that does not speak", "modalities", { modalities: [Modality.TEXT, Modality.AUDIO] }],
];

/** Well-formed requests that are refused by validation. */
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
    name: "names the image models when images are requested from another model",
    ask: { modalities: [Modality.TEXT, Modality.IMAGE] },
    expected: { failure: "invalid_request", param: "modalities", message: /painter/ },
  },
  {
    name: "names an unknown model",
    ask: { model: "nobody" },
    expected: { failure: "model_not_found", param: "model", message: /'nobody'/ },
  },
  {
    name: "names an unknown fallback model",
    ask: { fallbackModels: ["beta", "nobody"] },
    expected: { failure: "model_not_found", param: "fallback_models[1]", message: /'nobody'/ },
  },
  {
    name: "names a model that the key may not use",
    key: "alpha only",
    ask: { model: "beta" },
    expected: { failure: "permission_denied", message: /"beta"/ },
  },
  {
    name: "names a fallback model that the key may not use, before it is needed",
    key: "alpha only",
    ask: { fallbackModels: ["local"] },
    expected: { failure: "permission_denied", message: /"local"/ },
  },
  {
    name: "names the capability that the key lacks",
    key: "chat only",
    ask: { model: "painter", modalities: [Modality.TEXT, Modality.IMAGE] },
    expected: { failure: "permission_denied", message: /"images"/ },
  },
  {
    name: "reports an unknown model before missing permissions",
    key: "alpha only",
    ask: { model: "beta", fallbackModels: ["nobody"] },
    expected: { failure: "model_not_found", param: "fallback_models[0]" },
  },
  {
    name: "reports missing permissions before invalid values",
    key: "alpha only",
    ask: { model: "beta", temperature: 3 },
    expected: { failure: "permission_denied", message: /"beta"/ },
  },
  {
    name: "reports an unknown model before invalid values",
    ask: { model: "nobody", temperature: 3 },
    expected: { failure: "model_not_found", param: "model" },
  },
  {
    name: "refuses a strict request that would lose a field",
    ask: { strict: true, seed: 7n },
    expected: { failure: "invalid_request", param: "seed", message: /strict/ },
  },
  {
    name: "refuses a strict request with a value that would be clamped",
    ask: { strict: true, temperature: 1.5 },
    expected: { failure: "invalid_request", param: "temperature", message: /strict/ },
  },
  {
    name: "refuses a strict request with an effort that would be clamped",
    ask: { strict: true, reasoning: { effort: ReasoningEffort.MAX } },
    models: { alpha: { capabilities: { reasoning: "level", reasoning_efforts: ["low", "medium", "high"] } } },
    expected: {
      failure: "invalid_request",
      param: "reasoning.effort",
      message: /strict/,
    },
  },
  {
    name: "refuses a strict request with an unknown field, by its name",
    at: "http",
    ask: { model: "local", strict: true },
    fields: { colour: true },
    expected: { failure: "invalid_request", param: "colour", message: /strict/ },
  },
  {
    name: "refuses a strict request with an unknown field, by its number",
    at: "grpc",
    grpcBytes: withUnknownField({ strict: true }),
    expected: { failure: "invalid_request", param: "1999", message: /strict/ },
  },
];
