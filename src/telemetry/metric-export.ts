import { type Attributes, type HrTime, ValueType } from "@opentelemetry/api";
import {
  AggregationTemporality,
  type DataPoint,
  DataPointType,
  type Histogram,
  type MetricData,
  PeriodicExportingMetricReader,
  type PushMetricExporter,
} from "@opentelemetry/sdk-metrics";
import type { MetricsSnapshot } from "./metrics.ts";
import { closeWithin, type Protocol, resourceOf, sendDiagnostics } from "./otlp.ts";

export interface MetricExportOptions {
  readonly protocol: Protocol;
  readonly exportIntervalMillis: number;
  /** Not longer than the interval. */
  readonly exportTimeoutMillis: number;
  /** Attributes of the service, which OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace. */
  readonly resource: Attributes;
  /** The metrics of `/metrics` as data. */
  readonly snapshot: () => Promise<MetricsSnapshot>;
  /** Receives problems of the exporter, such as an unreachable collector. */
  readonly warn: (message: string) => void;
}

/** Sends metrics by OTLP at an interval. */
export interface MetricExport {
  /** Sends the last values, within two seconds. */
  close(): Promise<void>;
}

/**
 * Exports the metrics of `/metrics` to the collector of the variables OTEL_EXPORTER_OTLP_…, with the same names and labels. Returns at
 * once, whether or not it can be reached.
 */
export async function openMetricExport(options: MetricExportOptions): Promise<MetricExport> {
  const { protocol, exportIntervalMillis, exportTimeoutMillis, snapshot, warn } = options;
  sendDiagnostics(warn);
  const reader = new PeriodicExportingMetricReader({
    exporter: await openExporter(protocol),
    exportIntervalMillis,
    exportTimeoutMillis,
  });
  const resource = resourceOf(options.resource);
  const startTime = toTime(performance.timeOrigin);
  reader.setMetricProducer({
    async collect() {
      const times = { startTime, endTime: toTime(Date.now()) };
      const metrics = (await snapshot()).flatMap((metric) => toMetricData(metric, times));
      return { resourceMetrics: { resource, scopeMetrics: [{ scope: { name: "parley" }, metrics }] }, errors: [] };
    },
  });
  return { close: () => closeWithin(reader.shutdown()) };
}

async function openExporter(protocol: Protocol): Promise<PushMetricExporter> {
  switch (protocol) {
    case "http/protobuf":
      return new (await import("@opentelemetry/exporter-metrics-otlp-proto")).OTLPMetricExporter();
    case "http/json":
      return new (await import("@opentelemetry/exporter-metrics-otlp-http")).OTLPMetricExporter();
    case "grpc":
      return new (await import("@opentelemetry/exporter-metrics-otlp-grpc")).OTLPMetricExporter();
  }
}

type Metric = MetricsSnapshot[number];
type Times = Pick<DataPoint<unknown>, "startTime" | "endTime">;

/** Converts a metric. Empty without values, and for summaries, which Parley does not have. */
function toMetricData({ name, help, type, values }: Metric, times: Times): MetricData[] {
  if (values.length === 0) return [];
  const base = {
    descriptor: { name, description: help, unit: unitOf(name), valueType: ValueType.DOUBLE },
    aggregationTemporality: AggregationTemporality.CUMULATIVE,
  };
  // prom-client returns strings at run time; its type declares an enum of numbers.
  const kind = String(type);
  if (kind === "histogram")
    return [{ ...base, dataPointType: DataPointType.HISTOGRAM, dataPoints: toHistograms(name, values, times) }];
  const dataPoints = values.map(({ labels, value }) => ({ ...times, attributes: { ...labels } as Attributes, value }));
  if (kind === "counter") return [{ ...base, dataPointType: DataPointType.SUM, isMonotonic: true, dataPoints }];
  if (kind === "gauge") return [{ ...base, dataPointType: DataPointType.GAUGE, dataPoints }];
  return [];
}

/** Units by Prometheus' rule that a name ends with its unit, a counter's before `_total`. */
function unitOf(name: string): string {
  if (/_seconds(_total)?$/.test(name)) return "s";
  return /_bytes(_total)?$/.test(name) ? "By" : "";
}

/** Joins the series of a histogram. Buckets are cumulative in Prometheus, but not in OTLP. */
function toHistograms(name: string, values: Metric["values"], times: Times): DataPoint<Histogram>[] {
  const series = new Map<string, { attributes: Attributes; upTo: [bound: number, count: number][]; sum: number }>();
  for (const { metricName, labels, value } of values as (Metric["values"][number] & { metricName?: string })[]) {
    const { le, ...attributes } = labels as Record<string, string | number>;
    const key = JSON.stringify(Object.entries(attributes).toSorted(([one], [other]) => (one < other ? -1 : 1)));
    let found = series.get(key);
    if (found === undefined) series.set(key, (found = { attributes, upTo: [], sum: 0 }));
    if (metricName === `${name}_bucket`) found.upTo.push([le === "+Inf" ? Infinity : Number(le), value]);
    else if (metricName === `${name}_sum`) found.sum = value;
  }
  return [...series.values()].map(({ attributes, upTo, sum }) => {
    const ordered = upTo.toSorted(([one], [other]) => one - other);
    const counts = ordered.map(([, count], place) => count - (ordered[place - 1]?.[1] ?? 0));
    const boundaries = ordered.map(([bound]) => bound).filter(Number.isFinite);
    return { ...times, attributes, value: { buckets: { boundaries, counts }, sum, count: ordered.at(-1)?.[1] ?? 0 } };
  });
}

function toTime(ms: number): HrTime {
  const micros = Math.round(ms * 1000);
  const seconds = Math.floor(micros / 1_000_000);
  return [seconds, (micros - seconds * 1_000_000) * 1000];
}
