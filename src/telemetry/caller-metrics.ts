import { Counter, Histogram, type Registry } from "prom-client";
import type { Caller, CompletionSample } from "./completion-metrics.ts";

/** Number of keys and of tags with their own series in a process; 0: no metrics by key or by tag. */
export interface CallerLabels {
  readonly keys: number;
  readonly tags: number;
}

/** Label value of all callers beyond the limit. */
const OTHER = "other";
/** Few buckets, because each key and tag has its own histogram. */
const COARSE_SECONDS = [0.25, 1, 2.5, 10, 30, 120];

interface CallerMetrics {
  completion(of: CompletionSample): void;
  refusal(code: string, caller: Caller): void;
}

/** Registers the metrics by key and by tag. Undefined when both limits are 0. */
export function createCallerMetrics(registry: Registry, { keys, tags }: CallerLabels): CallerMetrics | undefined {
  const ofKeys = keys > 0 ? createDimension(registry, "key", keys) : undefined;
  const ofTags = tags > 0 ? createDimension(registry, "tag", tags) : undefined;
  if (ofKeys === undefined && ofTags === undefined) return undefined;
  return {
    completion(of) {
      ofKeys?.completion(of.caller.key, of);
      if (ofTags !== undefined) for (const tag of of.caller.tags ?? []) ofTags.completion(tag, of);
    },
    refusal(code, caller) {
      ofKeys?.refusal(caller.key, code);
      if (ofTags !== undefined) for (const tag of caller.tags ?? []) ofTags.refusal(tag, code);
    },
  };
}

/** The metrics by one property of callers. At most `max` values of it have their own series. */
function createDimension(registry: Registry, label: "key" | "tag", max: number) {
  const registers = [registry];
  const known = new Set<string>();
  const labelOf = (value: string): string => {
    if (known.has(value)) return value;
    if (known.size >= max) return OTHER;
    known.add(value);
    return value;
  };
  const completions = new Counter({
    name: `parley_${label}_completions_total`,
    help: `Completions by ${label} and outcome.`,
    labelNames: [label, "outcome"],
    registers,
  });
  const refusals = new Counter({
    name: `parley_${label}_refusals_total`,
    help: `Requests of a known ${label} that were refused before they became completions.`,
    labelNames: [label, "code"],
    registers,
  });
  const duration = new Histogram({
    name: `parley_${label}_completion_seconds`,
    help: `From a request's arrival to its end, by ${label}.`,
    labelNames: [label],
    buckets: COARSE_SECONDS,
    registers,
  });
  const tokens = new Counter({
    name: `parley_${label}_tokens_total`,
    help: `Tokens that providers counted, by ${label}.`,
    labelNames: [label, "kind"],
    registers,
  });
  const cost = new Counter({
    name: `parley_${label}_cost_micro_usd_total`,
    help: `Cost by the configured prices, in millionths of a US dollar, by ${label}.`,
    labelNames: [label],
    registers,
  });
  return {
    completion(value: string, of: CompletionSample): void {
      const labels = { [label]: labelOf(value) };
      completions.inc({ ...labels, outcome: of.outcome });
      duration.observe(labels, of.durationMs / 1000);
      if (of.promptTokens > 0) tokens.inc({ ...labels, kind: "prompt" }, of.promptTokens);
      if (of.completionTokens > 0) tokens.inc({ ...labels, kind: "completion" }, of.completionTokens);
      if (of.costMicroUsd > 0) cost.inc(labels, of.costMicroUsd);
    },
    refusal(value: string, code: string): void {
      refusals.inc({ [label]: labelOf(value), code });
    },
  };
}
