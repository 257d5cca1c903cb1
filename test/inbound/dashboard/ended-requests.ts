import { Failure } from "../../../src/core/failure.ts";
import type { CompletionRecord, LedgerEntry } from "../../../src/core/ledger.ts";
import { entry } from "../../store/contracts/entries.ts";
import { somebody } from "../../support/core-ports.ts";

/** What core reports of a refused request of this account. */
export function refusal(accountId: string, changes: Partial<CompletionRecord> = {}): CompletionRecord {
  const failure = new Failure("model_not_found", "There is no model <b>nothing</b>.");
  const { completionId, requestId, attempts, startedAtMs, endedAtMs } = entry();
  return {
    completionId,
    requestId,
    attempts,
    startedAtMs,
    endedAtMs,
    principal: { ...somebody, accountId, keyName: "ci" },
    entrance: "grpc",
    requestedModel: "<b>nothing</b>",
    servedModel: undefined,
    streamed: false,
    outcome: failure.code,
    limits: undefined,
    usage: undefined,
    costMicroUsd: undefined,
    durationMs: 0.5,
    firstContentMs: undefined,
    failure,
    entry: undefined,
    ...changes,
  };
}

/** What core reports of one that the ledger keeps. */
export function kept(written: LedgerEntry, failure?: Failure): CompletionRecord {
  const { completionId, accountId, keyId, requestedModel, servedModel } = written;
  // Only the process that ran a completion reports it.
  const outcome = written.outcome as CompletionRecord["outcome"];
  const principal = { ...somebody, accountId, keyId, keyName: "ci" };
  const changes = { completionId, principal, requestedModel, servedModel, outcome, failure, entry: written };
  return refusal(accountId, changes);
}
