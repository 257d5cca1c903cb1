import { toJson } from "@bufbuild/protobuf";
import { ValueSchema } from "@bufbuild/protobuf/wkt";
import { type CompletionRequest, Verbosity } from "../../gen/parley/v1/completion_pb.js";
import { ReasoningEffort } from "../../gen/parley/v1/reasoning_pb.js";
import type { Translation } from "../../src/core/provider.ts";
import { omittedOf } from "../providers/omissions.ts";

type Json = Readonly<Record<string, unknown>>;

/** A parameter in a provider's request, by its path in the contract. Undefined stands for a dialect without it. */
type Names = Readonly<Record<string, string | undefined>>;

const NAMES: Readonly<Record<string, Names>> = {
  anthropic: {
    temperature: "temperature",
    top_p: "top_p",
    top_k: "top_k",
    max_output_tokens: "max_tokens",
    end_user_id: "metadata.user_id",
    "reasoning.effort": "thinking",
    "reasoning.max_tokens": "thinking.budget_tokens",
    response_format: "output_config.format",
  },
  gemini: {
    temperature: "generationConfig.temperature",
    top_p: "generationConfig.topP",
    top_k: "generationConfig.topK",
    max_output_tokens: "generationConfig.maxOutputTokens",
    seed: "generationConfig.seed",
    frequency_penalty: "generationConfig.frequencyPenalty",
    presence_penalty: "generationConfig.presencePenalty",
    logprobs: "generationConfig.responseLogprobs",
    "logprobs.top_count": "generationConfig.logprobs",
    "reasoning.effort": "generationConfig.thinkingConfig",
    "reasoning.max_tokens": "generationConfig.thinkingConfig.thinkingBudget",
    response_format: "generationConfig.responseMimeType",
  },
  openai: {
    temperature: "temperature",
    top_p: "top_p",
    max_output_tokens: "max_tokens",
    seed: "seed",
    frequency_penalty: "frequency_penalty",
    presence_penalty: "presence_penalty",
    logit_bias: "logit_bias",
    logprobs: "logprobs",
    "logprobs.top_count": "top_logprobs",
    parallel_tool_calls: "parallel_tool_calls",
    "reasoning.effort": "reasoning_effort",
    end_user_id: "user",
    metadata: "metadata",
    service_tier: "service_tier",
    store: "store",
    verbosity: "verbosity",
    prompt_cache_key: "prompt_cache_key",
    response_format: "response_format",
  },
  "openai-responses": {
    temperature: "temperature",
    top_p: "top_p",
    max_output_tokens: "max_output_tokens",
    logprobs: "include",
    "logprobs.top_count": "top_logprobs",
    parallel_tool_calls: "parallel_tool_calls",
    "reasoning.effort": "reasoning.effort",
    end_user_id: "user",
    metadata: "metadata",
    service_tier: "service_tier",
    store: "store",
    verbosity: "text.verbosity",
    prompt_cache_key: "prompt_cache_key",
    response_format: "text.format",
  },
};

/** Numbers have to arrive as they are; of the others it is enough that something is said. */
const EXACT = new Set([
  "reasoning.max_tokens",
  "logprobs.top_count",
  "temperature",
  "top_p",
  "top_k",
  "max_output_tokens",
  "seed",
  "frequency_penalty",
  "presence_penalty",
]);

/** Where the word for an effort stands. */
const EFFORTS: Readonly<Record<string, string>> = {
  anthropic: "output_config.effort",
  gemini: "generationConfig.thinkingConfig.thinkingLevel",
  openai: "reasoning_effort",
  "openai-responses": "reasoning.effort",
};

/** What a request asks for, without what asks for nothing: defaults, and rules about tools when there are none. */
function listAsked(request: CompletionRequest): Map<string, unknown> {
  const asked = new Map<string, unknown>();
  const ask = (name: string, value: unknown, isNothing: boolean): void => {
    if (value !== undefined && !isNothing) asked.set(name, value);
  };
  const { responseFormat: format } = request;
  const { effort = ReasoningEffort.UNSPECIFIED, maxTokens } = request.reasoning ?? {};
  const hasEffort = effort !== ReasoningEffort.UNSPECIFIED;
  const topCount = request.logprobs?.topCount;
  ask("temperature", request.temperature, request.temperature === 1);
  ask("top_p", request.topP, request.topP === 1);
  ask("top_k", request.topK, false);
  ask("max_output_tokens", request.maxOutputTokens, false);
  ask("seed", request.seed === undefined ? undefined : Number(request.seed), false);
  ask("frequency_penalty", request.frequencyPenalty, request.frequencyPenalty === 0);
  ask("presence_penalty", request.presencePenalty, request.presencePenalty === 0);
  ask("logit_bias", request.logitBias, Object.keys(request.logitBias).length === 0);
  ask("logprobs", request.logprobs, false);
  ask("logprobs.top_count", topCount, topCount === 0);
  ask("end_user_id", request.endUserId, false);
  ask("metadata", request.metadata, Object.keys(request.metadata).length === 0);
  ask("store", request.store, request.store === false);
  ask(
    "verbosity",
    request.verbosity,
    request.verbosity === Verbosity.UNSPECIFIED || request.verbosity === Verbosity.MEDIUM,
  );
  ask("prompt_cache_key", request.promptCacheKey, false);
  // Of both a model takes the one that it knows, or neither.
  const hasBoth = hasEffort && maxTokens !== undefined;
  ask("reasoning.effort", effort, hasBoth || !hasEffort || effort === ReasoningEffort.NONE);
  ask("reasoning.max_tokens", maxTokens, hasBoth);
  ask("response_format", format, format?.format.case === "text");
  return asked;
}

function look(body: Json, path: string): unknown {
  let value: unknown = body;
  for (const step of path.split(".")) value = (value as Json | undefined)?.[step];
  return value;
}

/** The contract's name of an effort, from a provider's word. */
function toEffortName(word: unknown): string | undefined {
  return typeof word === "string" ? `REASONING_EFFORT_${word.toUpperCase()}` : undefined;
}

/** Whether a dialect can keep a prefix for this time. */
function isLifetime(dialect: string, text: unknown): boolean {
  return dialect === "anthropic" && (text === "300s" || text === "3600s");
}

/** Whether the report names a parameter, or a piece of it. */
function isReported(name: string, { omitted, clamped }: Translation): boolean {
  const isPiece = (field: string): boolean =>
    field === name || field.startsWith(`${name}.`) || field.startsWith(`${name}[`);
  return omitted.some(({ field }) => isPiece(field)) || clamped.some(({ field }) => isPiece(field));
}

/**
 * The parameters of a request that its translation neither says nor reports. A form that the provider does not enforce
 * is said in words, which is enough where the report has it or where there is no schema to enforce.
 */
export function losesParameter(
  dialect: string,
  request: CompletionRequest,
  translation: Translation & { readonly json: Json },
): string[] {
  const { json, body } = translation;
  const lost = [...listAsked(request)].filter(([name, value]) => {
    if (isReported(name, translation)) return false;
    const path = NAMES[dialect]?.[name];
    const said = path === undefined ? undefined : look(json, path);
    if (EXACT.has(name)) return said !== value && !(value === 0 && said === 0);
    if (name === "response_format" && request.responseFormat?.format.case === "jsonObject")
      return !/JSON|json/u.test(body.toString());
    return said === undefined;
  });
  const clamps = translation.clamped.filter(({ field, requested, sent }) => {
    const [asked, said] = [requested, sent].map((value) => value && toJson(ValueSchema, value));
    if (asked === said) return true;
    if (field.endsWith(".cache_mark.ttl")) return !isLifetime(dialect, said);
    if (field === "reasoning.effort") return toEffortName(look(json, EFFORTS[dialect]!)) !== said;
    return look(json, NAMES[dialect]?.[field] ?? "") !== said;
  });
  const stops = request.stopSequences.filter((stop, index) => {
    const omitted = omittedOf(translation);
    const isOmitted = omitted.includes("stop_sequences") || omitted.includes(`stop_sequences[${index}]`);
    return !isOmitted && !body.includes(JSON.stringify(stop));
  });
  return [...lost.map(([name]) => name), ...clamps.map(({ field }) => field), ...stops];
}
