import { type CompletionRequest, Verbosity } from "../../../gen/parley/v1/completion_pb.js";
import { invalidField } from "../../core/failure.ts";
import type { CallersBody } from "../../core/provider.ts";
import { MAX_UNRECOGNIZED } from "../../core/validate.ts";
import type { NameOf } from "../format.ts";
import { shapeReader } from "../shape.ts";
import { fieldNames } from "./field-names.ts";
import { FunctionNames } from "./function-names.ts";
import { readGenerationConfig } from "./generation-config.ts";
import { type Conversation, toMessages } from "./messages.ts";
import {
  countTokensRequest,
  type GeminiRequest,
  generateContentRequest,
  KNOWN_CONFIG_KEYS,
  KNOWN_IMAGE_KEYS,
  KNOWN_REQUEST_KEYS,
  KNOWN_THINKING_KEYS,
  KNOWN_TOOL_CONFIG_KEYS,
} from "./schema.ts";
import { spellingOf } from "./spelling.ts";
import { readTools } from "./tools.ts";

/** A request, and the facts on which its answer depends. */
export interface ReadRequest {
  readonly request: CompletionRequest;
  /** Names of fields that the contract does not have, for `Call.unrecognized`. */
  readonly unrecognized: readonly string[];
  /** The caller's names of the request's fields. */
  readonly nameOf: NameOf;
  /** Whether the answer includes the thoughts. */
  readonly includeThoughts: boolean;
  readonly functionNames: FunctionNames;
  readonly body: CallersBody;
}

const spellRequest = spellingOf(generateContentRequest);
const readShape = shapeReader(generateContentRequest, "a request for content");
const spellCount = spellingOf(countTokensRequest);
const readCountShape = shapeReader(countTokensRequest, "a request to count tokens");

/** Converts the JSON of a request. Renames its fields in place (`spelling.ts`). Throws `invalid_request` that names the field. */
export function readGeminiRequest(json: unknown, model: string): ReadRequest {
  return toRead(readShape(spellRequest(json)), model);
}

/** Converts the JSON of a request to count tokens. */
export function readCountRequest(json: unknown, model: string): ReadRequest {
  const { generateContentRequest: inner, ...outer } = readCountShape(spellCount(json));
  if (inner != null) {
    const read = toRead(inner, model);
    return { ...read, nameOf: (path) => `generateContentRequest.${read.nameOf(path)}` };
  }
  if (outer.contents == null) throw invalidField("contents", "is required");
  return toRead({ ...outer, contents: outer.contents }, model);
}

function toRead(given: GeminiRequest, model: string): ReadRequest {
  if (given.cachedContent) throw invalidField("cachedContent", "is not offered: the gateway keeps no content");
  const functionNames = new FunctionNames();
  const { messages, places } = toMessages(given, functionNames);
  const request = newRequest(model, messages);
  const unrecognized = unrecognizedFields(given);
  const tools = readTools(given, request, functionNames);
  if (given.generationConfig != null) readGenerationConfig(given.generationConfig, request, unrecognized);
  readOptions(given, request);
  return {
    request,
    unrecognized,
    nameOf: fieldNames({ given, places, tools, unrecognized }),
    includeThoughts: given.generationConfig?.thinkingConfig?.includeThoughts === true,
    functionNames,
    // Unknown fields in the contents are not collected.
    body: { dialect: "gemini", mayHaveMore: true, json: toBody(given) },
  };
}

/** The request without the fields for the gateway itself. */
function toBody(given: GeminiRequest): Readonly<Record<string, unknown>> {
  const body: Record<string, unknown> = { ...given };
  delete body["parley"];
  delete body["fallbackModels"];
  return body;
}

/** A plain object of the shape that `create` returns, at a fraction of its cost; the compiler reports a missing field. */
function newRequest(model: string, messages: Conversation["messages"]): CompletionRequest {
  return {
    $typeName: "parley.v1.CompletionRequest",
    model: model.replace(/^models\//, ""),
    messages,
    stopSequences: [],
    fallbackModels: [],
    modalities: [],
    logitBias: {},
    tools: [],
    verbosity: Verbosity.UNSPECIFIED,
    metadata: {},
    strict: false,
    providerOptionsJson: {},
  };
}

function readOptions(given: GeminiRequest, request: CompletionRequest): void {
  if (given.fallbackModels != null) request.fallbackModels = given.fallbackModels;
  if (given.labels != null) request.metadata = given.labels;
  if (given.store != null) request.store = given.store;
  if (given.safetySettings != null && given.safetySettings.length > 0)
    request.providerOptionsJson["gemini.safety_settings"] = JSON.stringify(given.safetySettings);
  const tier = given.serviceTier?.toLowerCase().replace(/^service_tier_/, "");
  if (tier !== undefined && tier !== "" && tier !== "unspecified")
    request.serviceTier = tier === "standard" ? "default" : tier;
  if (given.parley?.strict === true) request.strict = true;
}

/** The first MAX_UNRECOGNIZED unknown fields. */
function unrecognizedFields(given: GeminiRequest): string[] {
  const { generationConfig: config, toolConfig } = given;
  const unknown: string[] = [];
  const add = (object: object | null | undefined, known: ReadonlySet<string>, path: string): void => {
    for (const key in object) {
      if (known.has(key)) continue;
      if (unknown.length >= MAX_UNRECOGNIZED) return;
      unknown.push(`${path}${key.slice(0, 64)}`);
    }
  };
  add(given, KNOWN_REQUEST_KEYS, "");
  add(config, KNOWN_CONFIG_KEYS, "generationConfig.");
  add(config?.thinkingConfig, KNOWN_THINKING_KEYS, "generationConfig.thinkingConfig.");
  add(config?.imageConfig, KNOWN_IMAGE_KEYS, "generationConfig.imageConfig.");
  add(toolConfig, KNOWN_TOOL_CONFIG_KEYS, "toolConfig.");
  add(given.parley, KNOWN_PARLEY_KEYS, "parley.");
  return unknown;
}

const KNOWN_PARLEY_KEYS: ReadonlySet<string> = new Set(["strict"]);
