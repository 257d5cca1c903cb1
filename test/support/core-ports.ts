import type { Call } from "../../src/core/call.ts";
import type { Failure } from "../../src/core/failure.ts";
import type { Ledger, LedgerEntry } from "../../src/core/ledger.ts";
import type { Demand, Limiter, LimitFacts } from "../../src/core/limiter.ts";
import type { KeyPrincipal } from "../../src/access/principal.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { createStateSeal } from "../../src/core/provider-state.ts";

/** A key with all permissions and no limits. */
export const somebody: KeyPrincipal = {
  keyId: "key_1",
  keyFamilyId: "key_1",
  keyName: "tests",
  accountId: "acct_1",
  models: undefined,
  capabilities: new Set(["chat", "images", "embeddings"]),
  limits: NO_LIMITS,
  accountLimits: NO_LIMITS,
  expiresAtMs: undefined,
  hash: "0".repeat(64),
  confirmedAtMs: 0,
};

/** Seals the state of providers. */
export const seal = createStateSeal(Buffer.alloc(32, 7));

/** Rate limit facts that `notingLimiter` returns. */
export const FACTS: LimitFacts = { requests: { limit: 60, remaining: 59, resetMs: 1_000 }, tokens: undefined };

/** A limiter that admits everything, or refuses everything with `refusal`, and records its calls. */
export function notingLimiter(refusal?: Failure) {
  const demands: Demand[] = [];
  const releases: number[] = [];
  const extensions: number[] = [];
  let extensionRefusal: Failure | undefined;
  const refused: Failure[] = [];
  const limiter: Limiter = {
    countRefused: (_, failure) => void refused.push(failure),
    requireRequestRate: () => undefined,
    async reserve(demand) {
      demands.push(demand);
      if (refusal !== undefined) throw refusal;
      return {
        facts: FACTS,
        release: (usedTokens) => void releases.push(usedTokens),
        async extend(costMicroUsd) {
          if (extensionRefusal !== undefined) throw extensionRefusal;
          extensions.push(costMicroUsd);
        },
      };
    },
    preview: async () => (refusal === undefined ? [] : [refusal]),
    hasBudget: ({ limits }) => limits.monthlyBudgetMicroUsd !== undefined,
    peek: () => FACTS,
  };
  return {
    limiter,
    demands,
    releases,
    extensions,
    refused,
    refuseExtensions: (failure: Failure) => void (extensionRefusal = failure),
  };
}

interface MemoryLedgerOptions {
  readonly noted?: () => Promise<void>;
  readonly durable?: () => Promise<void>;
  readonly refusal?: Failure;
}

/** An in-memory ledger. Each note waits for `noted`, each append for `durable`; `refusal` refuses new completions. */
export function memoryLedger({ noted, durable, refusal }: MemoryLedgerOptions = {}) {
  const entries: LedgerEntry[] = [];
  const begun: LedgerEntry[] = [];
  const ledger: Ledger = {
    async begin(entry) {
      begun.push(entry);
      await noted?.();
    },
    async append(entry) {
      await durable?.();
      entries.push(entry);
    },
    admit() {
      if (refusal !== undefined) throw refusal;
    },
  };
  return { ledger, entries, begun };
}

/** An HTTP call that starts now. */
export function callOf(facts: Pick<Call, "signal" | "arrivedMs"> & Partial<Call>): Call {
  return {
    principal: somebody,
    requestId: "req_1",
    completionId: "chatcmpl-1",
    entrance: "http",
    admitted: () => undefined,
    ...facts,
  };
}
