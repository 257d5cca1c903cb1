import { AggregatorRegistry, collectDefaultMetrics, Counter, Gauge, Registry } from "prom-client";
import type { MetricsSnapshot } from "./metrics.ts";

/** The processes that serve, as numbers. */
export interface FleetGauges {
  /** Workers that serve now. */
  readonly ready: () => number;
  /** Workers that had to be replaced so far. */
  readonly replaced: () => number;
}

/**
 * The numbers of several processes as if they were one: counts and sizes are added up; what is high when something is wrong
 * is the highest. A process that is gone keeps its counts, as they were last asked for: a sum that fell would be read as a
 * restart of everything. The asking process is in the sums of `nodejs_*` and `process_*`.
 */
export class FleetMetrics {
  readonly #own = new Registry();
  /** As last heard of each process that is there, by its name. */
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
      help: "Worker processes that ended unasked and were replaced.",
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

  /** What a process says of itself, until it says something else or is gone. */
  note(name: string, snapshot: MetricsSnapshot): void {
    this.#last.set(name, snapshot);
  }

  /** The process has ended. */
  async forget(name: string): Promise<void> {
    const last = this.#last.get(name);
    if (last === undefined) return;
    this.#last.delete(name);
    const counts = last.filter(({ type }) => COUNTS.has(String(type)));
    const before = this.#gone;
    // At once, so that a question that comes in between misses nothing.
    this.#gone = [...before, ...counts];
    this.#gone = await sum([before, counts]).getMetricsAsJSON();
  }

  /** The text for `/metrics`. */
  async text(): Promise<string> {
    const own = (await this.#own.getMetricsAsJSON()).map((metric) =>
      // When it began says something of the asking process only.
      metric.name === "process_start_time_seconds" ? { ...metric, aggregator: "first" as const } : metric,
    );
    return sum([own, this.#gone, ...this.#last.values()]).metrics();
  }
}

/** The library's words for what only ever grows. */
const COUNTS: ReadonlySet<string> = new Set(["counter", "histogram"]);

function sum(snapshots: readonly MetricsSnapshot[]): Registry {
  return AggregatorRegistry.aggregate(snapshots.map((snapshot) => [...snapshot]));
}
