import type { ProviderOption } from "./provider-options.ts";

/** What a key may be used for besides its models. */
export type Capability = "chat" | "images";

/** How much may be used. Undefined means that this is not limited here. */
export interface Limits {
  readonly requestsPerMinute: number | undefined;
  /** Of prompt and answer together. */
  readonly tokensPerMinute: number | undefined;
  /** Completions under way at the same moment. */
  readonly concurrentRequests: number | undefined;
  /** For one calendar month in UTC, in millionths of a US dollar. */
  readonly monthlyBudgetMicroUsd: number | undefined;
}

/** Limits that limit nothing. */
export const NO_LIMITS: Limits = {
  requestsPerMinute: undefined,
  tokensPerMinute: undefined,
  concurrentRequests: undefined,
  monthlyBudgetMicroUsd: undefined,
};

/** Who calls us: an API key, already checked, and what it may do. */
export interface Principal {
  readonly keyId: string;
  /** The first key of its line: those that rotations made one from the other share their limits and budget. */
  readonly keyFamilyId: string;
  readonly keyName: string;
  readonly accountId: string;
  /** The IDs of the models it may use; undefined means all. */
  readonly models: ReadonlySet<string> | undefined;
  readonly capabilities: ReadonlySet<Capability>;
  /** The options that its requests may use; undefined: all without a budget, and none with one. */
  readonly options?: ReadonlySet<ProviderOption> | undefined;
  /** The key's own limits. */
  readonly limits: Limits;
  /** Those of its account, which all its keys share. */
  readonly accountLimits: Limits;
  /** When the key ends, in Unix milliseconds; absent for one that does not expire. */
  readonly expiresAtMs?: number | undefined;
}

/** What a completion needs of its key: every model it names, the fallback models too, and the kind of completion. */
export interface Needs {
  readonly models: readonly string[];
  readonly capability: Capability;
}

/** Whether the key may use the model, by its ID. */
export function mayUse({ models }: Principal, model: string): boolean {
  return models === undefined || models.has(model);
}
