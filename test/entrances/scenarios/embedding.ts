import { EmbeddingTask } from "../../../gen/parley/v1/embedding_pb.js";
import { toInputs } from "../../support/embedding-inputs.ts";
import { begins, refuses, says, staysSilent } from "../../support/scripted-upstream.ts";
import { type Embed, embeddingWithUnknownField } from "./ask.ts";
import type { ModelName, Scenario } from "./scenario.ts";

const hello = says("Hello.");
const pair = { inputs: toInputs(["Hello?", "Anybody?"]) };
const fixedLength = { alpha: { capabilities: { embedding_dimensions: false } } };
const invalidVectors = ["alpha upstream_protocol 200", "alpha upstream_protocol 200"];

/** One request per rule, with the field in the error. */
const WRONG: readonly (readonly [what: string, param: string, embed: Embed, model?: ModelName])[] = [
  ["no inputs", "inputs", { inputs: [] }],
  ["an empty input", "inputs[0]", { inputs: toInputs([""]) }],
  ["an empty input after another one", "inputs[1]", { inputs: toInputs(["Hello?", ""]) }],
  ["2,049 inputs", "inputs", { inputs: toInputs(Array<string>(2049).fill("a")) }],
  ["101 inputs for a provider that takes 100", "inputs", { inputs: toInputs(Array<string>(101).fill("a")) }, "beta"],
  ["no dimensions to speak of", "dimensions", { dimensions: 0 }],
];

/** Requests for embeddings: what only they have, and rows of the common table whose requests name fallback models. */
export const EMBEDDING: readonly Scenario[] = [
  ...(["alpha", "beta"] as const).map((model): Scenario => ({
    name: `returns a vector of ${model} for each input, in order`,
    ask: { model },
    embed: pair,
    upstream: { [model]: [says("Hello.", { choices: 2 })] },
    expected: { answer: { model, text: "Hello.Hello." } },
  })),
  {
    name: "serves a strict request for embeddings that loses nothing",
    ask: { strict: true },
    embed: { dimensions: 6 },
    upstream: { alpha: [hello] },
    expected: { answer: {} },
  },
  {
    name: "lists dimensions for a model of one length",
    embed: { dimensions: 6 },
    upstream: { alpha: [hello] },
    models: fixedLength,
    expected: { answer: { omitted: ["dimensions"] } },
  },
  {
    name: "refuses a strict request with dimensions for a model of one length",
    ask: { strict: true },
    embed: { dimensions: 6 },
    models: fixedLength,
    expected: { failure: "invalid_request", param: "dimensions", message: /strict/ },
  },
  {
    name: "lists the task for a provider that has none",
    embed: { task: EmbeddingTask.QUERY },
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["task"] } },
  },
  {
    name: "lists the end user for a provider that has none",
    ask: { model: "beta" },
    embed: { endUserId: "user-1" },
    upstream: { beta: [hello] },
    expected: { answer: { model: "beta", omitted: ["end_user_id"] } },
  },
  {
    name: "lists an unknown field of a request for embeddings by its number",
    at: "grpc",
    grpcBytes: embeddingWithUnknownField(),
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["1999"] } },
  },
  {
    name: "refuses a strict request for embeddings with an unknown field, by its number",
    at: "grpc",
    grpcBytes: embeddingWithUnknownField({ strict: true }),
    expected: { failure: "invalid_request", param: "1999", message: /strict/ },
  },
  {
    name: "reports that bytes are not a request for embeddings",
    at: "grpc",
    grpcBytes: Buffer.from([0xff, 0xff, 0xff]),
    expected: { failure: "invalid_request", refused: true, param: "request", message: /parley\.v1\.EmbeddingRequest/ },
  },
  ...WRONG.map(([what, param, embed, model = "alpha"]): Scenario => ({
    name: `names the field when a request for embeddings has ${what}`,
    ask: { model },
    embed,
    expected: { failure: "invalid_request", param },
  })),
  {
    name: "names the models of embeddings when another one is asked",
    ask: { model: "painter" },
    expected: { failure: "invalid_request", param: "model", message: /alpha/ },
  },
  {
    name: "names the capability of embeddings that the key lacks",
    key: "chat only",
    expected: { failure: "permission_denied", message: /"embeddings"/ },
  },
  {
    name: "returns context_length_exceeded for an input beyond the context window",
    upstream: { alpha: [refuses(400, "This model's maximum context length is 8192 tokens, you requested 9000.")] },
    expected: {
      failure: "upstream_rejected",
      detail: "context_length_exceeded",
      param: "inputs",
      attempts: ["alpha upstream_rejected 400"],
    },
  },
  {
    name: "returns a failure when a provider returns no vectors",
    upstream: { alpha: [begins("Hello.", "end")] },
    expected: { failure: "upstream_protocol", attempts: invalidVectors },
  },
  {
    name: "returns a failure when a provider returns fewer vectors than there are inputs",
    embed: pair,
    upstream: { alpha: [hello] },
    expected: { failure: "upstream_protocol", attempts: invalidVectors },
  },
  {
    name: "calls no fallback model for embeddings, whose vectors could not be compared",
    at: "http",
    fields: { fallback_models: ["beta"], fallbackModels: ["beta"] },
    upstream: { alpha: [refuses(400)], beta: [hello] },
    expected: { failure: "upstream_rejected", attempts: ["alpha upstream_rejected 400"] },
  },
  {
    name: "lists fallback models that a request for embeddings has",
    at: "http",
    fields: { fallback_models: ["beta"] },
    upstream: { alpha: [hello] },
    expected: { answer: { omitted: ["fallback_models"] } },
  },
  {
    name: "times out when all attempts at embeddings together exceed the total timeout",
    upstream: { alpha: [staysSilent] },
    models: { alpha: { timeouts: { total_ms: 60 } } },
    expected: {
      failure: "upstream_timeout",
      message: /longer than this gateway allows/,
      attempts: ["alpha upstream_timeout"],
    },
  },
  {
    name: "closes the upstream connection when the caller of embeddings cancels",
    upstream: { alpha: [staysSilent] },
    leaves: "in the first call",
    expected: { failure: "cancelled", attempts: ["alpha cancelled"], breaker: "closed" },
  },
  {
    name: "responds in time when the deadline of embeddings passes",
    upstream: { alpha: [staysSilent] },
    deadlineMs: 1_000,
    expected: { failure: "deadline_exceeded", attempts: ["alpha deadline_exceeded"], breaker: "closed" },
  },
  {
    name: "returns overloaded when it stops before the vectors",
    upstream: { alpha: [staysSilent] },
    stops: "in the first call",
    expected: { failure: "overloaded", attempts: ["alpha overloaded"], breaker: "closed" },
  },
];

/** Rows of the common table that ask for no more than an answer, and are about completions nevertheless. */
const OF_COMPLETIONS: ReadonlySet<string> = new Set([
  "serves from a provider with the Anthropic format",
  "serves a text conversation with an image model when no image is requested",
  ...["alpha", "beta", "local"].flatMap((model) => [
    `returns tool_calls for a tool call of ${model}, whatever the provider's finish reason`,
    `treats a whole answer of ${model} without a finish reason as a failure`,
  ]),
  "keeps the breaker closed for tool calls without a name, which a request may cause",
  "ignores an unknown field and lists it by its number",
  "refuses a strict request with an unknown field, by its number",
  "reports that bytes are not a message",
  "returns context_length_exceeded for a prompt beyond the context window",
]);

/** Whether callers of embeddings play a row of the common table: those whose requests have only what theirs have too. */
export function isOfEmbeddings({ name, ask = {}, mode }: Scenario): boolean {
  const isPlain = Object.keys(ask).every((field) => field === "model" || field === "strict");
  return isPlain && mode !== "stream" && !OF_COMPLETIONS.has(name);
}
