import type { IncomingHttpHeaders } from "node:http";
import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Part, Reasoning } from "../../gen/parley/v1/message_pb.js";
import type { Provider, UpstreamModel } from "../../src/core/provider.ts";
import { toAnthropicRequest } from "../../src/providers/anthropic/request.ts";
import { toGeminiRequest } from "../../src/providers/gemini/request.ts";
import { readResponsesRequest } from "../../src/formats/openai-responses/request.ts";
import { toOpenAiRequest } from "../../src/providers/openai/request.ts";
import { toResponsesRequest } from "../../src/providers/openai-responses/request.ts";
import { readState, writeState } from "../../src/providers/openai-responses/state.ts";
import { parseExactly } from "../../src/encoding/exact-json.ts";
import { anthropic } from "../../src/simulator/anthropic/dialect.ts";
import { sealBlock } from "../../src/simulator/anthropic/thinking.ts";
import type { Order, Dialect as SimulatedDialect } from "../../src/simulator/dialect.ts";
import { gemini } from "../../src/simulator/gemini/dialect.ts";
import { describeCall, sign } from "../../src/simulator/gemini/thinking.ts";
import { openai } from "../../src/simulator/openai/dialect.ts";
import { adaptiveModel, budgetModel, switchableModel } from "../providers/anthropic/model.ts";
import { flash, older } from "../providers/gemini/model.ts";
import { modelThat } from "../providers/openai/model.ts";
import type { MediaKinds, Signatures } from "./conversations.ts";
import { recoverAnthropic, type Recovered, recoverGemini, recoverOpenAi, recoverResponses } from "./recovered.ts";

/** A dialect as the properties see it: our translation into it, and the simulator's own reading of that. */
export interface Dialect {
  readonly name: string;
  /** Kinds of models that need different translations, by what is particular about them. */
  readonly models: Readonly<Record<string, UpstreamModel>>;
  readonly translate: Provider["translate"];
  readonly signatures: Signatures;
  readonly media: MediaKinds;
  /** Kinds of parts of an answer whose order among each other stands in a body. */
  readonly ordered: ReadonlySet<string>;
  /** A piece of reasoning as it stands in a body; undefined for a dialect that is not sent any. */
  readonly writeReasoning?: (part: Part) => unknown;
  /** Throws the refusal of a body that the real service would not take. */
  accept(body: string, model: UpstreamModel): unknown;
  recover(body: unknown): Recovered;
  /** How the arguments of a call stand in a body: as this text. */
  writeArguments(argumentsJson: string): string;
  /** How the schema of a tool does. */
  writeSchema(schemaJson: string): string;
}

/** Reasoning without state, which is not sent back. */
const unsealed: Signatures["sealAll"] = (_, texts) =>
  texts.map((text) => (text === undefined ? { redacted: "sealed" } : { text }));
const NO_STATE: Signatures = { sealAll: unsealed, signCall: () => "", signPart: () => "" };

function read(
  dialect: SimulatedDialect,
  path: string,
  { body, headers }: { body: string; headers: IncomingHttpHeaders },
): Order {
  const head = { method: "POST", path, query: new URLSearchParams(), headers };
  const endpoint = dialect.find(head);
  if (endpoint?.kind !== "completion") throw new Error(`the simulator has no completions at ${path}`);
  dialect.authenticate(head);
  return endpoint.read(JSON.parse(body));
}

const anthropicDialect: Dialect = {
  name: "anthropic",
  models: { "thinking by budget": budgetModel(), adaptive: adaptiveModel(), switchable: switchableModel() },
  translate: toAnthropicRequest,
  signatures: {
    signCall: () => "",
    signPart: () => "",
    sealAll: (answer, texts) =>
      texts.map((text, index) => {
        const signature = sealBlock({ answer, index, count: texts.length }, text ?? "");
        return text === undefined ? { redacted: signature } : { text, signature };
      }),
  },
  media: { user: ["document"], assistant: [], result: ["document"] },
  ordered: new Set(["text", "refusal", "toolCall", "reasoning"]),
  writeReasoning: ({ kind, signature }) => {
    const { text, redacted } = kind.value as Reasoning;
    return redacted === ""
      ? { type: "thinking", thinking: text, signature }
      : { type: "redacted_thinking", data: redacted };
  },
  accept: (body, { capabilities }) =>
    read(anthropic, "/v1/messages", {
      body,
      headers: {
        "x-api-key": "any",
        "anthropic-version": "2023-06-01",
        // As the provider sends it.
        ...(capabilities.preservedReasoning && { "anthropic-beta": "thinking-binding-controls-2026-08-01" }),
      },
    }),
  recover: recoverAnthropic,
  writeArguments: (text) => `"input":${text}`,
  writeSchema: (text) => `"input_schema":${text}`,
};

const geminiDialect: Dialect = {
  name: "gemini",
  models: {
    "third generation": flash({}, { name: "gemini-3-flash-preview" }),
    "without schemas": flash({ jsonSchema: false, penalties: false, seed: false }),
    older: older(),
  },
  translate: toGeminiRequest,
  signatures: {
    sealAll: unsealed,
    signPart: (number) => (number % 3 === 0 ? sign(`part ${number}`) : ""),
    signCall: (name, argumentsJson) => sign(describeCall(name, JSON.parse(argumentsJson))),
  },
  media: {
    user: ["recording", "document", "video", "linked video"],
    assistant: ["recording", "document", "video", "linked video"],
    result: [],
  },
  ordered: new Set(["text", "refusal", "toolCall", "image", "audio", "video", "file"]),
  accept: (body, { name }) =>
    read(gemini, `/v1beta/models/${name}:generateContent`, { body, headers: { "x-goog-api-key": "any" } }),
  recover: (body) => recoverGemini(body, JSON.stringify),
  writeArguments: (text) => `"args":${text}`,
  writeSchema: (text) => `"parametersJsonSchema":${text}`,
};

const openaiDialect: Dialect = {
  name: "openai",
  models: {
    "able to do everything": modelThat({}, { name: "gpt-any" }),
    "of a simple server": modelThat({
      contentParts: false,
      midConversationSystem: false,
      jsonSchema: false,
      sampling: false,
      seed: false,
      forcedTools: false,
    }),
    "without tools": modelThat({ tools: false, reasoning: "none", temperatureWithTopP: false }),
  },
  translate: toOpenAiRequest,
  signatures: NO_STATE,
  media: { user: ["recording", "document"], assistant: ["spoken"], result: ["recording", "document"] },
  ordered: new Set(),
  accept: (body) => read(openai, "/v1/chat/completions", { body, headers: { authorization: "Bearer any" } }),
  recover: recoverOpenAi,
  writeArguments: (text) => `"arguments":${JSON.stringify(text)}`,
  writeSchema: (text) => `"parameters":${text}`,
};

/** What the service says to a body is what Parley's own says, which has to know every field of it. */
const responsesDialect: Dialect = {
  name: "openai-responses",
  models: {
    "able to do everything": modelThat({}, { name: "gpt-any" }),
    "of a simple server": modelThat({
      midConversationSystem: false,
      jsonSchema: false,
      sampling: false,
      logprobs: false,
      forcedTools: false,
    }),
    "without tools": modelThat({ tools: false, temperatureWithTopP: false }),
  },
  translate: toResponsesRequest,
  signatures: {
    signCall: () => "",
    signPart: () => "",
    sealAll: (answer, texts) =>
      texts.map((text = "", index) => {
        const summary = text === "" ? [] : [{ type: "summary_text", text }];
        const state = { id: `rs_${index}`, summary, encrypted_content: `${answer}, sealed` };
        return { text, signature: writeState({ reasoning: state }) };
      }),
  },
  media: {
    user: ["recording", "document"],
    assistant: ["spoken"],
    result: ["recording", "document"],
  },
  ordered: new Set(["text", "refusal", "toolCall", "reasoning", "audio"]),
  writeReasoning: ({ signature }) => ({
    type: "reasoning",
    ...(readState(signature) as { reasoning: object }).reasoning,
  }),
  accept: (body) => {
    const { unrecognized } = readResponsesRequest(JSON.parse(body), { keeps: true });
    // Its own schema has no further fields than those of requests that the gateway takes.
    const unknown = unrecognized.filter((field) => !/^input\[\d+\]$/.test(field));
    if (unknown.length > 0) throw new Error(`unknown fields: ${unknown.join(", ")}`);
  },
  recover: recoverResponses,
  writeArguments: (text) => `"arguments":${JSON.stringify(text)}`,
  writeSchema: (text) => `"parameters":${text}`,
};

/** All of them. */
export const DIALECTS: readonly Dialect[] = [anthropicDialect, geminiDialect, openaiDialect, responsesDialect];

/** One translated request, as text and as it reads. */
export function translated(
  dialect: Dialect,
  request: CompletionRequest,
  model: UpstreamModel,
): ReturnType<Provider["translate"]> & { readonly json: Readonly<Record<string, unknown>> } {
  const translation = dialect.translate(request, model, { mode: "whole" });
  return { ...translation, json: parseExactly(translation.body.toString()) as Readonly<Record<string, unknown>> };
}
