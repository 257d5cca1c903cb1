import { OverloadFailure } from "../admission/overload-failure.ts";
import type { Failure } from "../core/failure.ts";
import type { CompletionRecord, Recorder } from "../core/ledger.ts";
import type { Refusal } from "../inbound/services.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";

/** Where it is told, and which IDs are models of the configuration. */
export interface ObserverPorts {
  readonly log: Logger;
  readonly metrics: Metrics;
  readonly isModel: (id: string) => boolean;
}

/** Is told how every request has ended. */
export interface Observer extends Recorder {
  /** Is told of a request that was refused before it became a completion. */
  refused(refusal: Refusal): void;
}

/** Tells one after the other, in this order. */
export function joinObservers(observers: readonly Observer[]): Observer {
  return {
    record: (entry) => observers.forEach((observer) => observer.record(entry)),
    refused: (refusal) => observers.forEach((observer) => observer.refused(refusal)),
  };
}

/** Failures that an operator has to do something about. */
const ALARMING: ReadonlySet<string> = new Set(["internal", "upstream_refused_us"]);

/** Writes what happened into the log and the metrics: one line per completion and per refusal, never a prompt or a key. */
export function createObserver({ log, metrics, isModel }: ObserverPorts): Observer {
  return {
    record(entry) {
      metrics.completion(toSample(entry, isModel));
      const { requestId, completionId, principal, entrance, requestedModel, servedModel, outcome, streamed, failure } =
        entry;
      const line = {
        request_id: requestId,
        completion_id: completionId,
        key_id: principal.keyId,
        entrance,
        model: requestedModel.slice(0, 256),
        served_model: servedModel,
        outcome,
        streamed,
        duration_ms: Math.round(entry.durationMs),
        first_content_ms: entry.firstContentMs === undefined ? undefined : Math.round(entry.firstContentMs),
        prompt_tokens: entry.usage?.promptTokens,
        completion_tokens: entry.usage?.completionTokens,
        cost_micro_usd: entry.entry?.costMicroUsd ?? entry.costMicroUsd,
        attempts: entry.attempts.map(({ model, outcome: ended, upstreamStatus, durationMs }) => ({
          model,
          outcome: ended,
          upstream_status: upstreamStatus,
          duration_ms: durationMs,
        })),
        ...(failure !== undefined && explain(failure)),
      };
      const alarms = ALARMING.has(outcome) || entry.attempts.some((attempt) => ALARMING.has(attempt.outcome));
      log.line(alarms ? "error" : "info", line, "completion");
      const costMicroUsd = entry.entry?.costMicroUsd ?? 0;
      const { reservedMicroUsd = Infinity } = entry;
      // Booked in full all the same: the invoice will say so, too.
      if (costMicroUsd > reservedMicroUsd) {
        const facts = {
          completion_id: completionId,
          cost_micro_usd: costMicroUsd,
          reserved_micro_usd: reservedMicroUsd,
        };
        log.warn(facts, "a completion cost more than was reserved for it; check the limits and prices of its models");
      }
    },

    refused({ entrance, requestId, target, failure }) {
      metrics.refusal(entrance, failure.code);
      // There may be thousands a second: the log says when it begins and ends.
      if (failure instanceof OverloadFailure) return;
      const line = { request_id: requestId, entrance, target, outcome: failure.code, ...explain(failure) };
      log.line(ALARMING.has(failure.code) ? "error" : "info", line, "refused");
    },
  };
}

function toSample(entry: CompletionRecord, isModel: ObserverPorts["isModel"]): Parameters<Metrics["completion"]>[0] {
  const { entrance, outcome, streamed, durationMs, firstContentMs, attempts, usage } = entry;
  // As the ledger has it, so that they add up to the same.
  const costMicroUsd = entry.entry?.costMicroUsd ?? entry.costMicroUsd ?? 0;
  // A name that nobody configured must not become a label: callers could make any number of them.
  const asked = isModel(entry.requestedModel) ? entry.requestedModel : "unknown";
  const model = entry.servedModel ?? attempts[0]?.model ?? asked;
  const { promptTokens = 0, completionTokens = 0 } = usage ?? {};
  return {
    entrance,
    model,
    outcome,
    streamed,
    durationMs,
    firstContentMs,
    promptTokens,
    completionTokens,
    costMicroUsd,
    attempts,
  };
}

/** What callers are not told. Causes come from the system and from libraries; upstream bodies are never among them. */
function explain({ code, message, cause }: Failure): object {
  const unexpected = code === "internal" && cause instanceof Error;
  return {
    reason: message,
    cause: cause instanceof Error ? String(cause).slice(0, 500) : undefined,
    stack: unexpected ? cause.stack : undefined,
  };
}
