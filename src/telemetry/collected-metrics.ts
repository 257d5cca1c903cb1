import { Counter, Gauge, type Registry } from "prom-client";

/** Values that are read at collection time. */
export interface Gauges {
  readonly activeCalls: () => number;
  /** By `provider/upstream model`: `closed`, `open` or `half_open`. */
  readonly breakers: () => ReadonlyMap<string, string>;
  /** Counts of hedges by requested name. */
  readonly hedges: () => ReadonlyMap<string, Readonly<Record<"started" | "won" | "refused", number>>>;
  /** Counts of the retry budgets by provider; `inFlight`: permits that are taken now. */
  readonly retries: () => ReadonlyMap<string, Readonly<Record<"granted" | "refused" | "inFlight", number>>>;
  /** Targets that are passed over because they fail more often than the others, by name. */
  readonly outliers: () => ReadonlyMap<string, readonly string[]>;
  /** Ledger entries that are not written yet. */
  readonly ledgerWaiting: () => number;
  /** How long the oldest unwritten entry has waited. */
  readonly ledgerLagMs: () => number;
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
  /** Age of the file of known keys; undefined without one. Default: the metric is omitted. */
  readonly keyFileAgeMs?: () => number | undefined;
  /** Versions of the program and the schema, as labels. Default: the metric is omitted. */
  readonly info?: { readonly version: string; readonly schema: string };
  /** Completions that wait for admission, the limit of completions in flight, and refusals because of overload by reason. */
  readonly admission: () => {
    readonly waiting: number;
    readonly limit: number;
    readonly memoryIsShort: boolean;
    readonly refused: Readonly<Record<string, number>>;
  };
  /** Bytes of large answers in memory, and counts of answers that wait or ended for it. Default: the metrics are omitted. */
  readonly answers?: () => { readonly bytes: number; readonly waiting: number; readonly ended: number };
  /** Counts of prompts and answers to store, by result. Default: the metric is omitted. */
  readonly contents?: () => Readonly<Record<"stored" | "dropped" | "failed", number>> | undefined;
  /** Connections that were closed because too many were open. */
  readonly connectionsRefused: () => number;
}

type Reading = readonly [labels: Readonly<Record<string, string>>, value: number];

interface Collected {
  readonly name: string;
  readonly help: string;
  readonly type: "counter" | "gauge";
  /** Default: none. */
  readonly labels?: readonly string[];
  /** How the values of several workers are merged. Default: `sum`. */
  readonly merge?: "sum" | "max" | "min";
  /** Returns all values; earlier values are removed. */
  readonly read: () => readonly Reading[];
}

/** Registers the metrics that are read from other parts at collection. */
export function registerCollected(registry: Registry, gauges: Gauges): void {
  for (const { name, help, type, labels: labelNames = [], merge: aggregator = "sum", read } of listCollected(gauges)) {
    const options = { name, help, labelNames, aggregator, registers: [] };
    const metric =
      type === "gauge"
        ? new Gauge({
            ...options,
            collect() {
              this.reset();
              for (const [labels, value] of read()) this.set(labels, value);
            },
          })
        : new Counter({
            ...options,
            collect() {
              this.reset();
              for (const [labels, value] of read()) this.inc(labels, value);
            },
          });
    registry.registerMetric(metric);
  }
}

const one = (read: () => number): Collected["read"] => {
  return () => [[{}, read()]];
};

function listCollected(gauges: Gauges): Collected[] {
  const { admission, answers, contents, ratesFaults, replicas, database, keyFileAgeMs, info } = gauges;
  return [
    { name: "parley_active_calls", help: "Calls in flight.", type: "gauge", read: one(gauges.activeCalls) },
    {
      name: "parley_breaker_open",
      help: "Circuit breaker of an upstream model: 1 open, 0.5 half-open (the next call is a probe), 0 closed.",
      type: "gauge",
      labels: ["upstream"],
      merge: "max",
      read: () =>
        [...gauges.breakers()].map(([upstream, state]) => [
          { upstream },
          state === "open" ? 1 : state === "half_open" ? 0.5 : 0,
        ]),
    },
    {
      name: "parley_hedges_total",
      help: "Second attempts beside slow first ones: started, won (with content first), refused (by their budget).",
      type: "counter",
      labels: ["model", "event"],
      read: () =>
        [...gauges.hedges()].flatMap(([model, counts]) =>
          Object.entries(counts).map(([event, count]): Reading => [{ model, event }, count]),
        ),
    },
    {
      name: "parley_retry_permits_total",
      help: "Retries and second attempts that the retry budget of a provider granted or refused.",
      type: "counter",
      labels: ["provider", "event"],
      read: () =>
        [...gauges.retries()].flatMap(([provider, { granted, refused }]): Reading[] => [
          [{ provider, event: "granted" }, granted],
          [{ provider, event: "refused" }, refused],
        ]),
    },
    {
      name: "parley_retries_in_flight",
      help: "Retries and second attempts that hold a permit of the retry budget of a provider.",
      type: "gauge",
      labels: ["provider"],
      read: () => [...gauges.retries()].map(([provider, { inFlight }]) => [{ provider }, inFlight]),
    },
    {
      name: "parley_target_outlier",
      help: "1 while a target of a name is passed over because it fails more often than the others.",
      type: "gauge",
      labels: ["model", "target"],
      merge: "max",
      read: () =>
        [...gauges.outliers()].flatMap(([model, targets]) => targets.map((target): Reading => [{ model, target }, 1])),
    },
    {
      name: "parley_ledger_waiting",
      help: "Ledger entries that are not written yet.",
      type: "gauge",
      read: one(gauges.ledgerWaiting),
    },
    {
      name: "parley_ledger_lag_seconds",
      help: "How long the oldest ledger entry that is not written yet has waited; 0 without one.",
      type: "gauge",
      merge: "max",
      read: one(() => gauges.ledgerLagMs() / 1000),
    },
    {
      name: "parley_rates_local",
      help: "1 while this process enforces its share of the rate limits locally, because Redis or the database is unavailable.",
      type: "gauge",
      merge: "max",
      read: one(() => Number(gauges.ratesLocal())),
    },
    {
      name: "parley_rates_local_decisions_total",
      help: "Requests that were decided on by this process's local share of the rate limits, because the shared store was unavailable or slow.",
      type: "counter",
      read: one(gauges.ratesDecidedLocally),
    },
    {
      name: "parley_admission_waiting",
      help: "Completions that wait for admission.",
      type: "gauge",
      read: one(() => admission().waiting),
    },
    {
      name: "parley_admission_limit",
      help: "Limit of completions in flight, which follows the load of the event loop.",
      type: "gauge",
      read: one(() => admission().limit),
    },
    {
      name: "parley_memory_short",
      help: "1 while memory is so short that keys with the largest requests in flight begin no completion.",
      type: "gauge",
      merge: "max",
      read: one(() => Number(admission().memoryIsShort)),
    },
    {
      name: "parley_overload_refusals_total",
      help: "Completions that were refused because of overload.",
      type: "counter",
      labels: ["reason"],
      read: () => Object.entries(admission().refused).map(([reason, count]) => [{ reason }, count]),
    },
    {
      name: "parley_connections_refused_total",
      help: "Connections that were closed because too many were open, in total or from one address.",
      type: "counter",
      read: one(gauges.connectionsRefused),
    },
    ...(answers === undefined ? [] : answersOf(answers)),
    ...(contents === undefined ? [] : [contentsOf(contents)]),
    ...(ratesFaults === undefined ? [] : [faultsOf(ratesFaults)]),
    ...(replicas === undefined ? [] : [replicasOf(replicas)]),
    ...(database === undefined ? [] : databaseOf(database)),
    ...(keyFileAgeMs === undefined ? [] : [keyFileOf(keyFileAgeMs)]),
    ...(info === undefined ? [] : [infoOf(info)]),
  ];
}

function answersOf(answers: NonNullable<Gauges["answers"]>): Collected[] {
  return [
    {
      name: "parley_large_answers_bytes",
      help: "Bytes of large answers of providers in memory, as they were read.",
      type: "gauge",
      read: one(() => answers().bytes),
    },
    {
      name: "parley_large_answers_waiting",
      help: "Large answers of providers that are not read on, because there is no memory for them.",
      type: "gauge",
      read: one(() => answers().waiting),
    },
    {
      name: "parley_large_answers_ended_total",
      help: "Large answers that ended because their provider or caller was too slow while others waited for memory.",
      type: "counter",
      read: one(() => answers().ended),
    },
  ];
}

function contentsOf(contents: NonNullable<Gauges["contents"]>): Collected {
  return {
    name: "parley_contents_total",
    help: "Prompts and answers of completions that were to be stored: stored, dropped (too many waited to be written), failed (by the database, or for want of space).",
    type: "counter",
    labels: ["outcome"],
    read: () => Object.entries(contents() ?? {}).map(([outcome, count]) => [{ outcome }, count]),
  };
}

function faultsOf(faults: NonNullable<Gauges["ratesFaults"]>): Collected {
  return {
    name: "parley_rates_store_faults_total",
    help: "Failed commands of the shared store of rates (Redis, PostgreSQL, the parent process): disconnected, late, busy, or an error.",
    type: "counter",
    labels: ["fault"],
    read: () => [...faults()].map(([fault, count]) => [{ fault }, count]),
  };
}

function replicasOf(replicas: NonNullable<Gauges["replicas"]>): Collected {
  return {
    name: "parley_replicas",
    help: "Processes that share the rate limits, as last seen; each enforces its fraction while the shared store is unavailable.",
    type: "gauge",
    merge: "max",
    read: one(replicas),
  };
}

function databaseOf(database: NonNullable<Gauges["database"]>): Collected[] {
  return [
    {
      name: "parley_database_up",
      help: "1 when the last statement reached the database.",
      type: "gauge",
      merge: "min",
      read: one(() => Number(database().up)),
    },
    {
      name: "parley_key_changes_heard",
      help: "0 while PostgreSQL's LISTEN is lost: changed keys take effect within five seconds instead of at once.",
      type: "gauge",
      merge: "min",
      read: one(() => Number(database().listening ?? true)),
    },
  ];
}

function keyFileOf(ageMs: NonNullable<Gauges["keyFileAgeMs"]>): Collected {
  return {
    name: "parley_known_keys_file_age_seconds",
    help: "Time since this process has written its known keys to data_dir, for a start without the database, or since its own start. Without a value: it keeps none.",
    type: "gauge",
    merge: "max",
    read() {
      const age = ageMs();
      return age === undefined ? [] : [[{}, age / 1000]];
    },
  };
}

function infoOf(info: NonNullable<Gauges["info"]>): Collected {
  return {
    name: "parley_info",
    help: "1, with the version of the program and of the database's schema.",
    type: "gauge",
    labels: ["version", "schema"],
    merge: "max",
    read: () => [[info, 1]],
  };
}
