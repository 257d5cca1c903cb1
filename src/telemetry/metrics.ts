import {
  collectDefaultMetrics,
  Counter,
  Gauge,
  Histogram,
  type MetricObjectWithValues,
  type MetricValue,
  Registry,
} from "prom-client";

/**
 * Metrics of one process in Prometheus' format. Label values come from closed sets: the configuration and our own constants.
 */
export interface Metrics {
  /** Records a completion that has ended. */
  completion(of: CompletionSample): void;
  /** Records a request that was refused before it became a completion. */
  refusal(entrance: string, code: string): void;
  /** Records a request that could not be served, by what was unavailable. */
  unavailable(what: string): void;
  /** Records that a completion which had to wait was admitted. */
  admitted(waitedMs: number): void;
  /** Records a write of ledger entries, of which one may have many. */
  ledgerWritten(durationMs: number): void;
  /** The text for `/metrics`. */
  text(): Promise<string>;
  readonly contentType: string;
  /** The same as data, to be merged with those of other processes: see `FleetMetrics`. */
  snapshot(): Promise<MetricsSnapshot>;
}

/** All metrics of one process at one moment; can be serialised as JSON. */
export type MetricsSnapshot = readonly MetricObjectWithValues<MetricValue<string>>[];

export interface CompletionSample {
  readonly entrance: string;
  /** A model of the configuration, or `unknown`. */
  readonly model: string;
  readonly outcome: string;
  readonly streamed: boolean;
  readonly durationMs: number;
  readonly firstContentMs: number | undefined;
  readonly promptTokens: number;
  readonly completionTokens: number;
  readonly costMicroUsd: number;
  readonly attempts: readonly { readonly model: string; readonly outcome: string; readonly durationMs: number }[];
}

/** Values that are read at collection time. */
export interface Gauges {
  readonly activeCalls: () => number;
  /** By `provider/upstream model`: `closed`, `open` or `half_open`. */
  readonly breakers: () => ReadonlyMap<string, string>;
  /** What hedging has done, by name. */
  readonly hedges: () => ReadonlyMap<string, Readonly<Record<"started" | "won" | "refused", number>>>;
  /** Targets that are passed over because they fail more often than the others, by name. */
  readonly outliers: () => ReadonlyMap<string, readonly string[]>;
  /** Ledger entries that are not written yet. */
  readonly ledgerWaiting: () => number;
  /** Whether this process counts rates by itself because the shared store (Redis, database or parent) is unavailable. */
  readonly ratesLocal: () => boolean;
  /** Requests that were decided on by local counts, because the shared store was unavailable or slow. */
  readonly ratesDecidedLocally: () => number;
  /** Failed commands of the shared store of rates, by fault. Default: the metric is omitted. */
  readonly ratesFaults?: () => ReadonlyMap<string, number>;
  /** Number of replicas that share the rates, as last seen. Default: the metric is omitted. */
  readonly replicas?: () => number;
  /** Whether the database is reachable, and whether LISTEN for changed keys works. Default: the metrics are omitted. */
  readonly database?: () => { readonly up: boolean; readonly listening: boolean | undefined };
  /** Versions of the program and the schema, as labels. Default: the metric is omitted. */
  readonly info?: { readonly version: string; readonly schema: string };
  /** Models, with the names of their providers. Default: the metric is omitted. */
  readonly models?: () => readonly { readonly id: string; readonly providerName: string }[];
  /** Completions that wait for admission. */
  readonly admissionWaiting: () => number;
  /** Completions that were refused because of overload, by reason. */
  readonly shed: () => Readonly<Record<string, number>>;
  /** Connections that were closed because too many were open. */
  readonly connectionsRefused: () => number;
}

/** Of what should take milliseconds. */
const SHORT_SECONDS = [0.001, 0.0025, 0.005, 0.01, 0.025, 0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10];
const SECONDS = [0.05, 0.1, 0.25, 0.5, 1, 2.5, 5, 10, 30, 60, 120, 300];

export function createMetrics(gauges: Gauges): Metrics {
  const {
    activeCalls,
    breakers,
    hedges,
    outliers,
    ledgerWaiting,
    ratesLocal,
    ratesDecidedLocally,
    admissionWaiting,
    shed,
    connectionsRefused,
  } = gauges;
  const registry = new Registry();
  const registers = [registry];
  collectDefaultMetrics({ register: registry });
  const completions = new Counter({
    name: "parley_completions_total",
    help: "Completions, by outcome.",
    labelNames: ["entrance", "model", "outcome", "streamed"],
    registers,
  });
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
  const duration = new Histogram({
    name: "parley_completion_seconds",
    help: "From a request's arrival to its end.",
    labelNames: ["model", "streamed"],
    buckets: SECONDS,
    registers,
  });
  const firstContent = new Histogram({
    name: "parley_first_content_seconds",
    help: "From a request's arrival to a stream's first content.",
    labelNames: ["model"],
    buckets: SECONDS,
    registers,
  });
  const tokenTime = new Histogram({
    name: "parley_output_token_seconds",
    help: "Average time of one output token of a stream, after its first content.",
    labelNames: ["model"],
    buckets: SHORT_SECONDS,
    registers,
  });
  const admissionTime = new Histogram({
    name: "parley_admission_wait_seconds",
    help: "Time that completions waited for admission; only of those that had to wait and were admitted.",
    buckets: SHORT_SECONDS,
    registers,
  });
  const ledgerTime = new Histogram({
    name: "parley_ledger_write_seconds",
    help: "Duration of a write of ledger entries, which answers wait for.",
    buckets: SHORT_SECONDS,
    registers,
  });
  const tokens = new Counter({
    name: "parley_tokens_total",
    help: "Tokens that providers counted.",
    labelNames: ["model", "kind"],
    registers,
  });
  const cost = new Counter({
    name: "parley_cost_micro_usd_total",
    help: "Cost by the configured prices, in millionths of a US dollar.",
    labelNames: ["model"],
    registers,
  });
  const attempts = new Counter({
    name: "parley_attempts_total",
    help: "Calls of upstream models, by outcome.",
    labelNames: ["model", "outcome"],
    registers,
  });
  const attemptDuration = new Histogram({
    name: "parley_attempt_seconds",
    help: "Duration of calls of upstream models.",
    labelNames: ["model"],
    buckets: SECONDS,
    registers,
  });
  const calls = new Gauge({
    name: "parley_active_calls",
    help: "Calls in flight.",
    registers: [],
    collect() {
      this.set(activeCalls());
    },
  });
  const breakerStates = new Gauge({
    name: "parley_breaker_open",
    help: "Circuit breaker of an upstream model: 1 open, 0.5 half-open (the next call is a probe), 0 closed.",
    labelNames: ["upstream"],
    aggregator: "max",
    registers: [],
    collect() {
      this.reset();
      for (const [upstream, state] of breakers())
        this.set({ upstream }, state === "open" ? 1 : state === "half_open" ? 0.5 : 0);
    },
  });
  const hedgeEvents = new Counter({
    name: "parley_hedges_total",
    help: "Second attempts beside slow first ones: started, won (with content first), refused (by their budget).",
    labelNames: ["model", "event"],
    registers: [],
    collect() {
      this.reset();
      for (const [model, counts] of hedges())
        for (const [event, count] of Object.entries(counts)) this.inc({ model, event }, count);
    },
  });
  const outlierTargets = new Gauge({
    name: "parley_target_outlier",
    help: "1 while a target of a name is passed over because it fails more often than the others.",
    labelNames: ["model", "target"],
    aggregator: "max",
    registers: [],
    collect() {
      this.reset();
      for (const [model, targets] of outliers()) for (const target of targets) this.set({ model, target }, 1);
    },
  });
  const waiting = new Gauge({
    name: "parley_ledger_waiting",
    help: "Ledger entries that are not written yet.",
    registers: [],
    collect() {
      this.set(ledgerWaiting());
    },
  });
  const local = new Gauge({
    name: "parley_rates_local",
    help: "1 while this process enforces its share of the rate limits locally, because Redis or the database is unavailable.",
    aggregator: "max",
    registers: [],
    collect() {
      this.set(Number(ratesLocal()));
    },
  });
  const decidedLocally = new Counter({
    name: "parley_rates_local_decisions_total",
    help: "Requests that were decided on by this process's local share of the rate limits, because the shared store was unavailable or slow.",
    registers: [],
    collect() {
      this.reset();
      this.inc(ratesDecidedLocally());
    },
  });
  const entering = new Gauge({
    name: "parley_admission_waiting",
    help: "Completions that wait for admission.",
    registers: [],
    collect() {
      this.set(admissionWaiting());
    },
  });
  const refusedByLoad = new Counter({
    name: "parley_overload_refusals_total",
    help: "Completions that were refused because of overload.",
    labelNames: ["reason"],
    registers: [],
    collect() {
      this.reset();
      for (const [reason, count] of Object.entries(shed())) this.inc({ reason }, count);
    },
  });
  const refusedConnections = new Counter({
    name: "parley_connections_refused_total",
    help: "Connections that were closed because too many were open, in total or from one address.",
    registers: [],
    collect() {
      this.reset();
      this.inc(connectionsRefused());
    },
  });
  registry.registerMetric(refusedConnections);
  const { replicas, database, info, models, ratesFaults } = gauges;
  if (ratesFaults !== undefined) {
    const faults = new Counter({
      name: "parley_rates_store_faults_total",
      help: "Failed commands of the shared store of rates (Redis, PostgreSQL, the parent process): disconnected, late, busy, or an error.",
      labelNames: ["fault"],
      registers: [],
      collect() {
        this.reset();
        for (const [fault, count] of ratesFaults()) this.inc({ fault }, count);
      },
    });
    registry.registerMetric(faults);
  }
  if (models !== undefined) {
    const providers = new Gauge({
      name: "parley_model_info",
      help: "1, with the provider of a model; a name with several has none.",
      labelNames: ["model", "provider"],
      aggregator: "max",
      registers: [],
      collect() {
        this.reset();
        for (const { id, providerName } of models()) this.set({ model: id, provider: providerName }, 1);
      },
    });
    registry.registerMetric(providers);
  }
  if (replicas !== undefined) {
    const seen = new Gauge({
      name: "parley_replicas",
      help: "Processes that share the rate limits, as last seen; each enforces its fraction while the shared store is unavailable.",
      aggregator: "max",
      registers: [],
      collect() {
        this.set(replicas());
      },
    });
    registry.registerMetric(seen);
  }
  if (database !== undefined) {
    const up = new Gauge({
      name: "parley_database_up",
      help: "1 when the last statement reached the database.",
      aggregator: "min",
      registers: [],
      collect() {
        this.set(Number(database().up));
      },
    });
    const listening = new Gauge({
      name: "parley_key_changes_heard",
      help: "0 while PostgreSQL's LISTEN is lost: changed keys take effect within five seconds instead of at once.",
      aggregator: "min",
      registers: [],
      collect() {
        this.set(Number(database().listening ?? true));
      },
    });
    registry.registerMetric(up);
    registry.registerMetric(listening);
  }
  if (info !== undefined) {
    const program = new Gauge({
      name: "parley_info",
      help: "1, with the version of the program and of the database's schema.",
      labelNames: ["version", "schema"],
      aggregator: "max",
      registers: [],
    });
    program.set(info, 1);
    registry.registerMetric(program);
  }
  registry.registerMetric(entering);
  registry.registerMetric(refusedByLoad);
  registry.registerMetric(decidedLocally);
  registry.registerMetric(waiting);
  registry.registerMetric(local);
  registry.registerMetric(calls);
  registry.registerMetric(breakerStates);
  registry.registerMetric(hedgeEvents);
  registry.registerMetric(outlierTargets);
  return {
    completion(of) {
      const { entrance, model, outcome } = of;
      const streamed = String(of.streamed);
      completions.inc({ entrance, model, outcome, streamed });
      duration.observe({ model, streamed }, of.durationMs / 1000);
      if (of.firstContentMs !== undefined) firstContent.observe({ model }, of.firstContentMs / 1000);
      if (of.firstContentMs !== undefined && of.completionTokens > 1)
        tokenTime.observe({ model }, (of.durationMs - of.firstContentMs) / 1000 / (of.completionTokens - 1));
      if (of.promptTokens > 0) tokens.inc({ model, kind: "prompt" }, of.promptTokens);
      if (of.completionTokens > 0) tokens.inc({ model, kind: "completion" }, of.completionTokens);
      if (of.costMicroUsd > 0) cost.inc({ model }, of.costMicroUsd);
      for (const attempt of of.attempts) {
        attempts.inc({ model: attempt.model, outcome: attempt.outcome });
        if (attempt.outcome !== "skipped") attemptDuration.observe({ model: attempt.model }, attempt.durationMs / 1000);
      }
    },
    refusal: (entrance, code) => refusals.inc({ entrance, code }),
    unavailable: (what) => unavailable.inc({ what }),
    admitted: (waitedMs) => admissionTime.observe(waitedMs / 1000),
    ledgerWritten: (durationMs) => ledgerTime.observe(durationMs / 1000),
    text: () => registry.metrics(),
    contentType: registry.contentType,
    snapshot: () => registry.getMetricsAsJSON(),
  };
}
