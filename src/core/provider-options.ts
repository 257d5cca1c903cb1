import type { CompletionRequest } from "../../gen/parley/v1/completion_pb.js";
import type { Model } from "./model.ts";

/**
 * Fields of a request that cost money beside its tokens, or let a provider keep data: the operator's choice for each provider
 * and each key. `service_tier` is another price for all tokens, `web_search` a fee for each search, `store` lets the provider
 * keep the conversation, `prompt_cache_retention` its prefixes.
 */
export const PROVIDER_OPTIONS = ["service_tier", "web_search", "store", "prompt_cache_retention"] as const;

export type ProviderOption = (typeof PROVIDER_OPTIONS)[number];

/** What a key's requests may ask of providers. */
export interface SendingRules {
  /** Undefined: everything that the provider's configuration allows. */
  readonly options: ReadonlySet<ProviderOption> | undefined;
  /** A budget applies: a cap on the answer's tokens is always sent. */
  readonly capped: boolean;
}

/** The fields of `openai_options_json` that belong to an option. */
const OPENAI_FIELDS: readonly (readonly [field: string, option: ProviderOption])[] = [
  ["web_search_options", "web_search"],
  ["prompt_cache_retention", "prompt_cache_retention"],
  ["prompt_cache_options", "prompt_cache_retention"],
];

/** A request as one model may be sent it, and the fields that were left out. */
export interface Restricted {
  readonly request: CompletionRequest;
  readonly omitted: readonly string[];
}

const NOTHING_OMITTED: readonly string[] = [];

/** Leaves out the options that are not allowed and puts in the cap. The request itself stays as it is. */
export function restrict(request: CompletionRequest, model: Model, rules: SendingRules): Restricted {
  const { serviceTier, store, openaiOptionsJson, maxTokens } = request;
  const isPlain = serviceTier === undefined && store !== true && (maxTokens !== undefined || !rules.capped);
  if (isPlain && isEmpty(openaiOptionsJson)) return { request, omitted: NOTHING_OMITTED };
  const { options, capped } = rules;
  const isAllowed = (option: ProviderOption): boolean =>
    (options?.has(option) ?? true) && (model.options?.has(option) ?? true);
  const omitted: string[] = [];
  const changes: Partial<CompletionRequest> = {};
  // Every provider has a default tier, which nothing is paid for; to leave the choice to it is to say nothing.
  if (serviceTier !== undefined && serviceTier !== "default" && !isAllowed("service_tier")) {
    changes.serviceTier = undefined;
    if (serviceTier !== "auto") omitted.push("service_tier");
  }
  if (store === true && !isAllowed("store")) {
    changes.store = undefined;
    omitted.push("store");
  }
  const refused = OPENAI_FIELDS.filter(([field, option]) => field in openaiOptionsJson && !isAllowed(option));
  if (refused.length > 0) {
    const fields = refused.map(([field]) => field);
    changes.openaiOptionsJson = Object.fromEntries(
      Object.entries(openaiOptionsJson).filter(([field]) => !fields.includes(field)),
    );
    omitted.push(...fields);
  }
  if (capped && maxTokens === undefined) changes.maxTokens = model.upstream.defaultMaxTokens;
  return { request: Object.keys(changes).length === 0 ? request : { ...request, ...changes }, omitted };
}

function isEmpty(record: Readonly<Record<string, string>>): boolean {
  for (const key in record) if (Object.hasOwn(record, key)) return false;
  return true;
}
