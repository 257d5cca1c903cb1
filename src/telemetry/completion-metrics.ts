import { Counter, Histogram, type Registry } from "prom-client";

/** The caller of a completion, as the labels of metrics show it. */
export interface Caller {
  /** ID of the first key of its family. */
  readonly key: string;
  /** Tags of the key; undefined: none. */
  readonly tags: ReadonlySet<string> | undefined;
}

/** The facts of an ended completion that metrics use. */
export interface CompletionSample {
  readonly entrance: string;
  /** The requested name if it is configured, else `unknown`. */
  readonly model: string;
  readonly outcome: string;
  readonly streamed: boolean;
  readonly durationMs: number;
  /** From the request's arrival; undefined for a completion that is no stream, or had no content. */
  readonly firstContentMs: number | undefined;
  readonly promptTokens: number;
  /** Part of the prompt that was read from the provider's cache. */
  readonly cachedTokens: number;
  readonly completionTokens: number;
  readonly costMicroUsd: number;
  /** Whether the provider sent no token count, so that the cost is an estimate. */
  readonly isEstimated: boolean;
  /** Whether it cost more than was reserved for it. */
  readonly isOverReserved: boolean;
  /** In the order in which they ended. */
  readonly attempts: readonly AttemptSample[];
  readonly caller: Caller;
}

/** The facts of an attempt, or of a skipped one, that metrics use. */
export interface AttemptSample {
  /** ID of the configured model, which may be the target of a route. */
  readonly target: string;
  /** As configured; `unknown` when a reload has removed it. */
  readonly provider: string;
  readonly outcome: string;
  readonly durationMs: number;
  /** From its beginning to the first content of a stream; undefined for an attempt without. */
  readonly firstContentMs: number | undefined;
}

/** Buckets for durations that should be milliseconds. */
export const SHORT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
/** Buckets of durations of completions and attempts. */
export const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

const NONE = { target: "none", provider: "none" };

/** Registers the metrics of completions and attempts. Returns the function that records one. */
export function createCompletionMetrics(registry: Registry): (of: CompletionSample) => void {
  const registers = [registry];
  const counter = <L extends string>(name: string, help: string, labelNames: readonly L[]): Counter<L> =>
    new Counter({ name, help, labelNames, registers });
  const histogram = <L extends string>(
    name: string,
    help: string,
    { labels, buckets = SECONDS }: { readonly labels: readonly L[]; readonly buckets?: number[] },
  ): Histogram<L> => new Histogram({ name, help, labelNames: labels, buckets, registers });

  const completions = counter("parley_completions_total", "Completions, by outcome.", [
    "entrance",
    "model",
    "outcome",
    "streamed",
  ]);
  const duration = histogram("parley_completion_seconds", "From a request's arrival to its end.", {
    labels: ["model", "streamed"],
  });
  const firstContent = histogram(
    "parley_first_content_seconds",
    "From a request's arrival to a stream's first content.",
    { labels: ["model"] },
  );
  const tokenTime = histogram(
    "parley_output_token_seconds",
    "Average time of one output token of a stream, after its first content.",
    { labels: ["model", "target", "provider"], buckets: SHORT_SECONDS },
  );
  const tokens = counter("parley_tokens_total", "Tokens that providers counted.", [
    "model",
    "target",
    "provider",
    "kind",
  ]);
  const cached = counter(
    "parley_cached_tokens_total",
    "Prompt tokens that providers read from their caches; part of parley_tokens_total.",
    ["model", "target", "provider"],
  );
  const cost = counter("parley_cost_micro_usd_total", "Cost by the configured prices, in millionths of a US dollar.", [
    "model",
    "target",
    "provider",
  ]);
  const estimated = counter(
    "parley_estimated_completions_total",
    "Completions without the provider's token count, whose cost is an upper bound.",
    ["target", "provider"],
  );
  const overReserved = counter(
    "parley_reservation_overruns_total",
    "Completions that cost more than was reserved for them.",
    ["target", "provider"],
  );
  const attempts = counter("parley_attempts_total", "Calls of upstream models, by outcome.", [
    "target",
    "provider",
    "outcome",
  ]);
  const attemptDuration = histogram("parley_attempt_seconds", "Duration of calls of upstream models.", {
    labels: ["target", "provider"],
  });
  const attemptFirstContent = histogram(
    "parley_attempt_first_content_seconds",
    "From the beginning of a call of an upstream model to its stream's first content.",
    { labels: ["target", "provider"] },
  );

  return (of) => {
    const { entrance, model, outcome, durationMs, firstContentMs, completionTokens } = of;
    const streamed = of.streamed ? "true" : "false";
    completions.inc({ entrance, model, outcome, streamed });
    duration.observe({ model, streamed }, durationMs / 1000);
    // The attempt that served; for a failed completion the last one that ended.
    const { target, provider } = of.attempts.find((one) => one.outcome === "served") ?? of.attempts.at(-1) ?? NONE;
    if (firstContentMs !== undefined) {
      firstContent.observe({ model }, firstContentMs / 1000);
      if (completionTokens > 1) {
        const perTokenMs = (durationMs - firstContentMs) / (completionTokens - 1);
        tokenTime.observe({ model, target, provider }, perTokenMs / 1000);
      }
    }
    if (of.promptTokens > 0) tokens.inc({ model, target, provider, kind: "prompt" }, of.promptTokens);
    if (completionTokens > 0) tokens.inc({ model, target, provider, kind: "completion" }, completionTokens);
    if (of.cachedTokens > 0) cached.inc({ model, target, provider }, of.cachedTokens);
    if (of.costMicroUsd > 0) cost.inc({ model, target, provider }, of.costMicroUsd);
    if (of.isEstimated) estimated.inc({ target, provider });
    if (of.isOverReserved) overReserved.inc({ target, provider });
    for (const attempt of of.attempts) {
      const labels = { target: attempt.target, provider: attempt.provider };
      attempts.inc({ ...labels, outcome: attempt.outcome });
      if (attempt.outcome !== "skipped") attemptDuration.observe(labels, attempt.durationMs / 1000);
      if (attempt.firstContentMs !== undefined) attemptFirstContent.observe(labels, attempt.firstContentMs / 1000);
    }
  };
}
