import {
  collectDefaultMetrics,
  Counter,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";
import { createCallerMetrics, type CallerLabels } from "./caller-metrics.ts";
import { type Gauges, registerCollected } from "./collected-metrics.ts";
import { type Caller, type CompletionSample, createCompletionMetrics, SHORT_SECONDS } from "./completion-metrics.ts";

/**
 * Metrics of one process in Prometheus' format. Label values come from closed sets: the configuration and our own constants. Label
 * values of keys and tags are bounded in number.
 */
export interface Metrics {
  /** Records a completion that has ended. */
  completion(of: CompletionSample): void;
  /** Records a request that was refused before it became a completion. `caller`: undefined before it was authenticated. */
  refusal(entrance: string, code: string, caller?: Caller): void;
  /** Records a request that could not be served, by what was unavailable. */
  unavailable(what: string): void;
  /** Records that a completion which had to wait was admitted. */
  admitted(waitedMs: number): void;
  /** Records a call of the database or of Redis that has ended. */
  stored(call: StoreCall): void;
  /** The text for `/metrics`. */
  text(): Promise<string>;
  readonly contentType: string;
  /** The metrics as data, to be merged with those of other processes (`FleetMetrics`) or exported. */
  snapshot(): Promise<MetricsSnapshot>;
}

/** All metrics of one process at one moment; can be serialised as JSON. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

/** A call of the database or of Redis. */
export interface StoreCall {
  readonly store: "sqlite" | "postgres" | "redis";
  /** From a closed set, such as `key_lookup`. */
  readonly operation: string;
  readonly durationMs: number;
  readonly failed: boolean;
}

/** Default of `callers`: no metrics by key or tag. */
const NO_CALLERS: CallerLabels = { keys: 0, tags: 0 };

/** Creates the metrics of a process. `callers`: number of keys and tags with their own series. */
export function createMetrics(gauges: Gauges, callers = NO_CALLERS): Metrics {
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const completion = createCompletionMetrics(registry);
  const ofCallers = createCallerMetrics(registry, callers);
  const refusals = new Counter({
    name: "parley_refusals_total",
    help: "Requests that were refused before they became completions.",
    labelNames: ["entrance", "code"],
    registers,
  });
  const unavailable = new Counter({
    name: "parley_unavailable_total",
    help: "Requests and completions that ended with a 503 of this service, by what was unavailable.",
    labelNames: ["what"],
    registers,
  });
  const admissionTime = new Histogram({
    name: "parley_admission_wait_seconds",
    help: "Time that completions waited for admission; only of those that had to wait and were admitted.",
    buckets: SHORT_SECONDS,
    registers,
  });
  const storeTime = new Histogram({
    name: "parley_store_seconds",
    help: "Duration of calls of the database and of Redis, with failed ones.",
    labelNames: ["store", "operation"],
    buckets: SHORT_SECONDS,
    registers,
  });
  const storeErrors = new Counter({
    name: "parley_store_errors_total",
    help: "Calls of the database and of Redis that failed.",
    labelNames: ["store", "operation"],
    registers,
  });
  registerCollected(registry, gauges);
  return {
    completion(of) {
      completion(of);
      ofCallers?.completion(of);
    },
    refusal(entrance, code, caller) {
      refusals.inc({ entrance, code });
      if (caller !== undefined) ofCallers?.refusal(code, caller);
    },
    unavailable: (what) => unavailable.inc({ what }),
    admitted: (waitedMs) => admissionTime.observe(waitedMs / 1000),
    stored({ store, operation, durationMs, failed }) {
      storeTime.observe({ store, operation }, durationMs / 1000);
      if (failed) storeErrors.inc({ store, operation });
    },
    text: () => registry.metrics(),
    contentType: registry.contentType,
    snapshot: () => registry.getMetricsAsJSON(),
  };
}
