import { type CompletionRecord, type LedgerEntry, NO_CALLER, NO_TOKENS } from "../core/ledger.ts";
import type { Principal } from "../core/principal.ts";
import { hideKeys } from "../encoding/hide-keys.ts";
import { ownCopy } from "../encoding/own-copy.ts";
import { newCompletionId } from "./calls.ts";
import type { Refusal } from "./services.ts";

/** Record of a refused request. */
export interface RefusedRecord extends Omit<CompletionRecord, "principal"> {
  /** Undefined without a valid key. */
  readonly principal: Principal | undefined;
}

/** The record of a request that was refused before it was read. */
export function toRefusedRecord(refusal: Refusal, nowMs: number): RefusedRecord {
  const { entrance, requestId, failure, principal } = refusal;
  return {
    requestId,
    completionId: newCompletionId(),
    principal,
    entrance,
    requestedModel: "",
    servedModel: undefined,
    streamed: false,
    outcome: failure.code,
    attempts: [],
    startedAtMs: nowMs,
    endedAtMs: nowMs,
    limits: undefined,
    usage: undefined,
    costMicroUsd: undefined,
    durationMs: 0,
    firstContentMs: undefined,
    failure,
    entry: undefined,
  };
}

/** The failure's text for the dashboard and the database: it may repeat a key of the request. Empty without a failure. */
export function messageOf({ failure }: Pick<CompletionRecord, "failure">): string {
  return hideKeys(failure?.message ?? "");
}

/** A refused request was not validated. */
const MAX_MODEL_CHARS = 256;

/** The ledger entry that a refused request would have if it had been admitted. */
export function toRefusedEntry(record: RefusedRecord): LedgerEntry {
  const { principal, requestId, completionId, entrance, requestedModel, streamed, outcome, attempts, limits } = record;
  const { startedAtMs, endedAtMs, durationMs, attribution } = record;
  return {
    completionId,
    requestId,
    accountId: principal?.accountId ?? NO_CALLER,
    keyId: principal?.keyId ?? NO_CALLER,
    entrance,
    startedAtMs,
    endedAtMs,
    requestedModel: hideKeys(ownCopy(requestedModel.slice(0, MAX_MODEL_CHARS))),
    servedModel: undefined,
    streamed,
    outcome,
    attempts,
    tokens: NO_TOKENS,
    costMicroUsd: 0,
    durationMs,
    firstContentMs: undefined,
    partial: false,
    estimated: false,
    limits,
    ...(attribution !== undefined && { attribution }),
  };
}
