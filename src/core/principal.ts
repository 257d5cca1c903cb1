import type { Attribution, AttributionLimits } from "./attribution.ts";
import type { LabelRequirements, Labels } from "./labels.ts";
import type { ProviderOption } from "./provider-options.ts";
import type { Stop } from "./stops.ts";

/** What a key may be used for besides its models. */
export type Capability = "chat" | "images" | "embeddings";

/** Limits of a key or account. Undefined: not limited here. */
export interface Limits {
  readonly requestsPerMinute: number | undefined;
  /** Prompt and answer tokens together. */
  readonly tokensPerMinute: number | undefined;
  /** Completions in flight at the same time. */
  readonly concurrentRequests: number | undefined;
  /** Per calendar month in UTC, in micro-USD. */
  readonly monthlyBudgetMicroUsd: number | undefined;
}

/** No limits. */
export const NO_LIMITS: Limits = {
  requestsPerMinute: undefined,
  tokensPerMinute: undefined,
  concurrentRequests: undefined,
  monthlyBudgetMicroUsd: undefined,
};

/** A credential that an account has for a provider, encrypted. */
export interface SealedCredential {
  /** Unique: a replaced credential gets a new ID. */
  readonly id: string;
  /** Ciphertext, bound to the account and the provider. */
  readonly sealed: string;
}

/** Routing settings of an account, for the requests of its keys. */
export interface AccountRouting {
  /** Own credentials by the names of providers. */
  readonly credentials: ReadonlyMap<string, SealedCredential>;
  /** Aliases as in `Config.aliases`; they take precedence over those of the configuration. */
  readonly aliases: ReadonlyArray<readonly [name: string, model: string]>;
}

/** An authenticated API key with its permissions. */
export interface Principal {
  readonly keyId: string;
  /** ID of the first key of its family: a key and its rotations share limits and budget. */
  readonly keyFamilyId: string;
  readonly keyName: string;
  readonly accountId: string;
  /** IDs of the permitted models; undefined: all. */
  readonly models: ReadonlySet<string> | undefined;
  readonly capabilities: ReadonlySet<Capability>;
  /** Permitted provider options; undefined: all without a budget, none with one. */
  readonly options?: ReadonlySet<ProviderOption> | undefined;
  /** Labels that a model must have to serve requests of the key. Default: none. */
  readonly requiredLabels?: LabelRequirements | undefined;
  /** Default: none. */
  readonly tags?: ReadonlySet<string> | undefined;
  /** Whether prompts and answers of its completions are stored. Default: no. */
  readonly storesContent?: boolean | undefined;
  /** Routing settings of its account. Default: none. */
  readonly routing?: AccountRouting | undefined;
  /** Sessions and end users of its account that are stopped. Default: none. */
  readonly stops?: readonly Stop[] | undefined;
  /** Limits of the key. */
  readonly limits: Limits;
  /** Limits of each end user and session of the key. Default: none. */
  readonly attributionLimits?: AttributionLimits | undefined;
  /** Limits of its account, shared by all its keys. */
  readonly accountLimits: Limits;
  /** Expiry in Unix milliseconds; absent for a key that does not expire. */
  readonly expiresAtMs?: number | undefined;
}

/** Permissions that a call needs: its models with all fallbacks, the capability, and no stop of its end user or session. */
export interface Needs {
  readonly models: readonly string[];
  readonly capability: Capability;
  /** Labels of the models that may serve the call. Default: they are not known yet. */
  readonly labels?: readonly Labels[] | undefined;
  /** As `Call.attribution`. */
  readonly attribution?: Attribution | undefined;
}

/** Whether the key may use the model, by its ID. */
export function mayUse({ models }: Principal, model: string): boolean {
  return models === undefined || models.has(model);
}
