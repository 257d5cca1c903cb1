import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import type { NewLedgerEntry } from "../../../src/core/ledger.ts";

/** Default start of entries. */
export const NOON = Date.UTC(2026, 10, 21, 12);

let made = 0;

/** An entry with a unique ID and default values. */
export function entry(changes: Partial<NewLedgerEntry> = {}): NewLedgerEntry {
  return {
    completionId: `chatcmpl-${process.pid}-${++made}`,
    requestId: "req",
    accountId: DEFAULT_ACCOUNT_ID,
    keyId: "key_gone",
    entrance: "http",
    startedAtMs: NOON,
    endedAtMs: NOON + 1500,
    requestedModel: "m",
    servedModel: "m",
    streamed: true,
    outcome: "served",
    attempts: [],
    tokens: { prompt: 10, cached: 2, completion: 5, reasoning: 1, image: 0 },
    costMicroUsd: 30,
    durationMs: 1500.25,
    firstContentMs: undefined,
    partial: false,
    estimated: false,
    limits: undefined,
    ...changes,
  };
}

/** An entry of which no version of the program can make rows. */
export const UNREADABLE = null as unknown as NewLedgerEntry;
