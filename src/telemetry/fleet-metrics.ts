import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import type { MetricsSnapshot } from "./metrics.ts";

/** Counts of the fleet's worker processes. */
export interface FleetGauges {
  /** Workers that serve now. */
  readonly ready: () => number;
  /** Workers that ended unexpectedly and were replaced so far. */
  readonly replaced: () => number;
}

/**
 * Metrics of several processes merged into one set: counters and sizes are summed; gauges where high means trouble take the
 * maximum. A process that ended keeps its last collected counters: a falling sum would be read as a counter reset. The
 * collecting process is included in the sums of `nodejs_*` and `process_*`.
 */
export class FleetMetrics {
  readonly #own = new Registry();
  /** Last snapshot of each live process, by its name. */
  readonly #last = new Map<string, MetricsSnapshot>();
  #gone: MetricsSnapshot = [];

  constructor({ ready, replaced }: FleetGauges) {
    collectDefaultMetrics({ register: this.#own });
    const serving = new Gauge({
      name: "parley_workers_ready",
      help: "Worker processes that serve.",
      registers: [],
      collect() {
        this.set(ready());
      },
    });
    const deaths = new Counter({
      name: "parley_workers_replaced_total",
      help: "Worker processes that ended unexpectedly and were replaced.",
      registers: [],
      collect() {
        this.reset();
        this.inc(replaced());
      },
    });
    this.#own.registerMetric(serving);
    this.#own.registerMetric(deaths);
  }

  get contentType(): string {
    return this.#own.contentType;
  }

  /** Stores the latest snapshot of a process; it counts until the next one or until `forget`. */
  note(name: string, snapshot: MetricsSnapshot): void {
    this.#last.set(name, snapshot);
  }

  /** Removes a process that has ended; its counters stay in the sum. */
  async forget(name: string): Promise<void> {
    const last = this.#last.get(name);
    if (last === undefined) return;
    this.#last.delete(name);
    const counts = last.filter(({ type }) => COUNTS.has(String(type)));
    const before = this.#gone;
    // Assigned before the await, so that a collection meanwhile misses nothing.
    this.#gone = [...before, ...counts];
    this.#gone = await sum([before, counts]).getMetricsAsJSON();
  }

  /** The text for `/metrics`. */
  async text(): Promise<string> {
    return (await this.#merged()).metrics();
  }

  /** The merged metrics as data. */
  async snapshot(): Promise<MetricsSnapshot> {
    return (await this.#merged()).getMetricsAsJSON();
  }

  async #merged(): Promise<Registry> {
    // The first process's metric decides the aggregator for all.
    const own = (await this.#own.getMetricsAsJSON()).map((metric) => {
      const aggregator = AGGREGATORS.find(([names]) => names.test(metric.name))?.[1];
      return aggregator === undefined ? metric : { ...metric, aggregator };
    });
    return sum([own, this.#gone, ...this.#last.values()]);
  }
}

/** Replace prom-client's aggregators: the start time is the collecting process's, event loop delays are the maximum, not an average. */
const AGGREGATORS = [
  [/^process_start_time_seconds$/, "first"],
  [/^nodejs_eventloop_lag_(?!min)/, "max"],
] as const;

/** prom-client's types of metrics that only grow. */
const COUNTS: ReadonlySet<string> = new Set(["counter", "histogram"]);

function sum(snapshots: readonly MetricsSnapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots.map((snapshot) => [...snapshot]));
}
