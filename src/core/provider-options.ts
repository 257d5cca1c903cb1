import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import { type Omission, OmissionReason } from "../../gen/parley/v1/report_pb.js";
import type { Call } from "./call.ts";
import type { Model } from "./model.ts";
import { hasNativeTools, makesPictures, type NativeTool, withoutNativeTools } from "./native-tools.ts";
import type { Asked } from "./router.ts";
import { MAX_UNRECOGNIZED } from "./validate.ts";

/**
 * Request options that cost money beyond tokens, or let a provider keep data. Operators permit them per provider and key.
 * - `service_tier` changes the price of all tokens.
 * - `web_search` has a fee per search.
 * - `store` lets the provider keep the conversation.
 * - `prompt_cache_retention` lets the provider keep prefixes of prompts.
 * - `provider_tools` are native tools, which the provider runs itself, among the tools or within native parts.
 * - `other_fields` are fields of the provider's dialect that the contract does not have; they may do any of this.
 */
export const PROVIDER_OPTIONS = [
  "service_tier",
  "web_search",
  "store",
  "prompt_cache_retention",
  "provider_tools",
  "other_fields",
] as const;

export type ProviderOption = (typeof PROVIDER_OPTIONS)[number];

/** Rules for what may be sent for a key. */
export interface SendingRules {
  /** Undefined: all that the provider's configuration permits. */
  readonly options: ReadonlySet<ProviderOption> | undefined;
  /** Whether a budget applies: then a limit of answer tokens is always sent. */
  readonly capped: boolean;
  /** Whether the key may have pictures made: else tools of the provider that make them are not sent. */
  readonly mayDraw: boolean;
}

/** Names of `provider_options_json` that have a meaning in the contract. */
const DIALECT_OPTIONS: ReadonlySet<string> = new Set([
  "openai.moderation",
  "openai.prompt_cache_options",
  "openai.prompt_cache_retention",
  "openai.web_search_options",
  "gemini.safety_settings",
]);
/** Another field of a dialect that accepts the caller's own fields. */
const OTHER_FIELD = /^anthropic\.[a-z][a-z0-9_]{0,63}$/;
/** Characters of an unknown name that a report repeats. */
const MAX_NAME_CHARS = 64;

/** Whether a format may pass a field on in `provider_options_json`. `name` has the dialect, such as `anthropic.thinking`. */
export function isOtherField(name: string): boolean {
  return OTHER_FIELD.test(name) && !DIALECT_OPTIONS.has(name);
}

const isDialectField = (name: string): boolean => DIALECT_OPTIONS.has(name) || OTHER_FIELD.test(name);

/** Removes names of `provider_options_json` that the contract does not have. Returns the call with them in `unrecognized`. */
export function leaveOutUnknownOptions(request: CompletionRequest, call: Call): Call {
  if (isEmpty(request.providerOptionsJson)) return call;
  const unknown = Object.keys(request.providerOptionsJson).filter((name) => !isDialectField(name));
  if (unknown.length === 0) return call;
  const known = Object.entries(request.providerOptionsJson).filter(([name]) => isDialectField(name));
  request.providerOptionsJson = Object.fromEntries(known);
  const fields = unknown.map((name) => `provider_options_json.${name.slice(0, MAX_NAME_CHARS).toWellFormed()}`);
  return { ...call, unrecognized: [...(call.unrecognized ?? []), ...fields].slice(0, MAX_UNRECOGNIZED) };
}

/** Omissions for the fields of a call that the contract does not have. */
export function unknownOmissions({ unrecognized = [] }: Pick<Call, "unrecognized">): Omission[] {
  return unrecognized.map((field) => omission(field, OmissionReason.UNKNOWN));
}

/** The fields of `provider_options_json` that belong to an option. */
const OPTION_FIELDS: ReadonlyMap<string, ProviderOption> = new Map([
  ["openai.web_search_options", "web_search"],
  ["openai.prompt_cache_retention", "prompt_cache_retention"],
  ["openai.prompt_cache_options", "prompt_cache_retention"],
]);

/** The option that a field belongs to; undefined for one that costs nothing. */
const optionOf = (field: string): ProviderOption | undefined =>
  OPTION_FIELDS.get(field) ?? (isOtherField(field) ? "other_fields" : undefined);

/** A request restricted for one model, and the omitted fields. */
export interface Restricted {
  readonly request: CompletionRequest;
  readonly omitted: readonly Omission[];
}

const NOTHING_OMITTED: readonly Omission[] = [];

/** A request field that is not honoured. */
export function omission(field: string, reason: OmissionReason): Omission {
  return { $typeName: "parley.v1.Omission", field, reason };
}

/** Omits options that are not permitted and adds the token limit. Returns a copy. */
export function restrict(request: CompletionRequest, model: Model, rules: SendingRules): Restricted {
  const { serviceTier, store, providerOptionsJson, maxOutputTokens } = request;
  const isPlain =
    serviceTier === undefined &&
    store !== true &&
    (maxOutputTokens !== undefined || !rules.capped) &&
    !hasNativeTools(request);
  if (isPlain && isEmpty(providerOptionsJson)) return { request, omitted: NOTHING_OMITTED };
  const { capped } = rules;
  const isAllowed = (option: ProviderOption): boolean => isPermitted(option, model, rules);
  const omitted: string[] = [];
  const changes: Partial<CompletionRequest> = {};
  // Providers charge nothing extra for their default tier, and omitting the field selects it.
  if (serviceTier !== undefined && serviceTier !== "default" && !isAllowed("service_tier")) {
    changes.serviceTier = undefined;
    if (serviceTier !== "auto") omitted.push("service_tier");
  }
  if (store === true && !isAllowed("store")) {
    changes.store = undefined;
    omitted.push("store");
  }
  const kept: Record<string, string> = {};
  const before = omitted.length;
  for (const field of Object.keys(providerOptionsJson)) {
    const option = optionOf(field);
    if (option === undefined || isAllowed(option)) kept[field] = providerOptionsJson[field]!;
    else omitted.push(`provider_options_json.${field}`);
  }
  if (omitted.length > before) changes.providerOptionsJson = kept;
  const mayRun = isAllowed("provider_tools");
  const isRefused = (tools: readonly NativeTool[]): boolean =>
    !(mayRun && (rules.mayDraw || !tools.some(makesPictures)));
  const own = withoutNativeTools(request, isRefused);
  omitted.push(...own.paths);
  if (capped && maxOutputTokens === undefined) changes.maxOutputTokens = model.upstream.defaultMaxTokens;
  return {
    request: Object.keys(changes).length === 0 ? own.request : { ...own.request, ...changes },
    omitted: omitted.map((field) => omission(field, OmissionReason.NOT_ALLOWED)),
  };
}

/**
 * The request whose prompt is measured for all candidates. Native tools are left out when no candidate may get them, because their
 * results add an unknown number of tokens.
 */
export function toMeasured(
  request: CompletionRequest,
  candidates: readonly Model[],
  rules: SendingRules,
): CompletionRequest {
  if (candidates.some((model) => isPermitted("provider_tools", model, rules))) return request;
  return withoutNativeTools(request, () => true).request;
}

/** Whether an option may be sent to a model for a key. */
export function isPermitted(option: ProviderOption, model: Model, { options }: SendingRules): boolean {
  return (options?.has(option) ?? true) && (model.options?.has(option) ?? true);
}

/** Whether an option may be sent to a model for a key because the provider's configuration or the key names it. */
export function isNamed(option: ProviderOption, model: Model, rules: SendingRules): boolean {
  return isPermitted(option, model, rules) && (rules.options ?? model.options) !== undefined;
}

/** Options with which a provider still does nothing but answer. */
const EFFECTLESS: ReadonlySet<ProviderOption> = new Set(["service_tier", "prompt_cache_retention"]);

/**
 * Whether a request has no effect at a provider beyond its answer, so that hedging may send it to two providers at the same time:
 * the provider stores, searches and runs nothing for it, and it has no unknown field.
 */
export function onlyAnswers(
  request: CompletionRequest,
  { unknown = NOTHING_OMITTED }: Pick<Asked, "unknown">,
): boolean {
  const hasEffect = (field: string): boolean => {
    const option = optionOf(field);
    return option !== undefined && !EFFECTLESS.has(option);
  };
  if (request.store === true || unknown.length > 0 || hasNativeTools(request)) return false;
  return !Object.keys(request.providerOptionsJson).some(hasEffect);
}

function isEmpty(record: Readonly<Record<string, string>>): boolean {
  for (const key in record) if (Object.hasOwn(record, key)) return false;
  return true;
}
