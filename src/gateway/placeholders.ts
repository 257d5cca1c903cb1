import type { Ledger } from "../core/ledger.ts";
import type { Limiter, LimitFacts } from "../core/limiter.ts";

const NOTHING: LimitFacts = { requests: undefined, tokens: undefined };

/** Stands in until the limiter is joined: limits nothing. */
export const noLimiter: Limiter = {
  reserve: async () => ({ facts: NOTHING, release: () => undefined }),
  peek: () => NOTHING,
};

/** Stands in until the ledger is joined: keeps nothing. */
export const noLedger: Ledger = { append: async () => undefined, admit: () => undefined };
