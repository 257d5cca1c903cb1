import { OverloadFailure } from "../admission/overload-failure.ts";
import { BoundedMap } from "../core/bounded-map.ts";
import type { Failure } from "../core/failure.ts";
import type { Clock } from "../core/clock.ts";
import type { CompletionRecord, Recorder } from "../core/ledger.ts";
import type { ListedModel } from "../core/model.ts";
import type { Principal } from "../core/principal.ts";
import type { Refusal } from "../inbound/services.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Caller, CompletionSample } from "../telemetry/completion-metrics.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { LineLimit } from "./line-limit.ts";

/** Destinations of the records, and the models and names of the configuration. */
export interface ObserverPorts {
  readonly log: Logger;
  readonly clock: Pick<Clock, "monotonic">;
  readonly metrics: Metrics;
  /** The model or route with this name; undefined when the configuration has none. */
  readonly find: (name: string) => Pick<ListedModel, "id" | "providerName"> | undefined;
}

/** Receives the outcome of every request. */
export interface Observer extends Recorder {
  /** Records a request that was refused before it became a completion. */
  refused(refusal: Refusal): void;
}

/** Keys whose lines are counted. */
const MAX_KEYS = 10_000;

/** Calls the observers in this order. */
export function joinObservers(observers: readonly Observer[]): Observer {
  return {
    record: (entry) => observers.forEach((observer) => observer.record(entry)),
    refused: (refusal) => observers.forEach((observer) => observer.refused(refusal)),
  };
}

/** Failures that need an operator's action. */
const ALARMING: ReadonlySet<string> = new Set(["internal", "upstream_refused_us"]);

/** Writes outcomes into the log and the metrics: one line per completion and per refusal, never a prompt or a key. */
export function createObserver({ log, metrics, clock, find }: ObserverPorts): Observer {
  const keylessLines = new LineLimit(clock);
  const keyLines = new BoundedMap<string, LineLimit>(MAX_KEYS);
  const linesOf = (principal: Principal | undefined): LineLimit => {
    if (principal === undefined) return keylessLines;
    const known = keyLines.get(principal.keyFamilyId);
    if (known !== undefined) return known;
    const lines = new LineLimit(clock);
    keyLines.set(principal.keyFamilyId, lines);
    return lines;
  };
  return {
    record(entry) {
      metrics.completion(toSample(entry, find));
      const { requestId, completionId, principal, entrance, requestedModel, servedModel, outcome, streamed, failure } =
        entry;
      if (failure?.unavailable !== undefined) metrics.unavailable(failure.unavailable);
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
        prompt_tokens: entry.usage?.inputTokens,
        completion_tokens: entry.usage?.outputTokens,
        cost_micro_usd: entry.entry?.costMicroUsd ?? entry.costMicroUsd,
        attempts: entry.attempts.map(({ model, outcome: ended, upstreamStatus, durationMs, ownCredential }) => ({
          model,
          outcome: ended,
          own_credential: ownCredential,
          upstream_status: upstreamStatus,
          duration_ms: durationMs,
        })),
        trace_id: entry.trace?.context.traceId,
        ...(failure !== undefined && explain(failure)),
      };
      const alarms = isAlarming(entry);
      log.line(alarms ? "error" : "info", line, "completion");
      if (isOverReserved(entry)) {
        const facts = {
          completion_id: completionId,
          trace_id: entry.trace?.context.traceId,
          cost_micro_usd: entry.entry?.costMicroUsd,
          reserved_micro_usd: entry.reservedMicroUsd,
        };
        log.warn(facts, "a completion cost more than was reserved for it; check the limits and prices of its models");
      }
    },

    refused({ entrance, requestId, target, failure, principal }) {
      metrics.refusal(entrance, failure.code, principal && toCaller(principal));
      if (failure.unavailable !== undefined) metrics.unavailable(failure.unavailable);
      // Thousands a second are possible, so the log only says when overload begins and ends.
      if (failure instanceof OverloadFailure) return;
      if (!ALARMING.has(failure.code)) {
        const { isLogged, suppressed } = linesOf(principal).take();
        if (suppressed > 0) {
          if (principal === undefined) log.info({ lines: suppressed }, "refusals without a key were not logged");
          else log.info({ lines: suppressed, key_id: principal.keyId }, "refusals of a key were not logged");
        }
        if (!isLogged) return;
      }
      const line = { request_id: requestId, entrance, target, outcome: failure.code, ...explain(failure) };
      log.line(ALARMING.has(failure.code) ? "error" : "info", line, "refused");
    },
  };
}

/** A refused credential of an account concerns the account, not the operator. */
function isAlarming({ outcome, attempts }: CompletionRecord): boolean {
  if (attempts.some((attempt) => ALARMING.has(attempt.outcome) && attempt.ownCredential !== true)) return true;
  return ALARMING.has(outcome) && (outcome === "internal" || !attempts.some((attempt) => attempt.outcome === outcome));
}

function toSample(entry: CompletionRecord, find: ObserverPorts["find"]): CompletionSample {
  const { entrance, outcome, streamed, durationMs, firstContentMs, usage } = entry;
  // The ledger's cost, so that both sums agree.
  const costMicroUsd = entry.entry?.costMicroUsd ?? entry.costMicroUsd ?? 0;
  const { inputTokens = 0, cachedInputTokens = 0, outputTokens = 0 } = usage ?? {};
  return {
    entrance,
    // Only configured names become labels: callers could send any number of other names.
    model: find(entry.requestedModel)?.id ?? "unknown",
    outcome,
    streamed,
    durationMs,
    firstContentMs,
    promptTokens: inputTokens,
    cachedTokens: cachedInputTokens,
    completionTokens: outputTokens,
    costMicroUsd,
    isEstimated: entry.entry?.estimated === true,
    isOverReserved: isOverReserved(entry),
    attempts: entry.attempts.map((attempt) => ({
      target: attempt.model,
      provider: find(attempt.model)?.providerName ?? "unknown",
      outcome: attempt.outcome,
      durationMs: attempt.durationMs,
      firstContentMs:
        attempt.outcome === "served" && firstContentMs !== undefined
          ? Math.max(firstContentMs - attempt.startMs, 0)
          : undefined,
    })),
    caller: toCaller(entry.principal),
  };
}

/** Whether it cost more than was held. The whole cost is booked: the provider's invoice will contain it, too. */
function isOverReserved({ entry, reservedMicroUsd = Infinity }: CompletionRecord): boolean {
  return (entry?.costMicroUsd ?? 0) > reservedMicroUsd;
}

function toCaller({ keyFamilyId, tags }: Principal): Caller {
  return { key: keyFamilyId, tags };
}

/** Facts that callers do not see. Causes come from the system and from libraries; upstream bodies are never among them. */
function explain({ code, message, unavailable, cause }: Failure): object {
  const unexpected = code === "internal" && cause instanceof Error;
  return {
    reason: message,
    unavailable,
    cause: cause instanceof Error ? String(cause).slice(0, 500) : undefined,
    stack: unexpected ? cause.stack : undefined,
  };
}
