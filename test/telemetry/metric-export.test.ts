import { Server, ServerCredentials } from "@grpc/grpc-js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { FleetMetrics } from "../../src/telemetry/fleet-metrics.ts";
import { type MetricExportOptions, openMetricExport } from "../../src/telemetry/metric-export.ts";
import { createMetrics, type MetricsSnapshot } from "../../src/telemetry/metrics.ts";
import { attemptSample, completionSample, QUIET } from "../support/metrics.ts";
import { decodeMetrics, type ReceivedMetric } from "../support/otlp-metrics.ts";
import { startCollector } from "../support/otlp.ts";

const undo: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const step of undo.splice(0).toReversed()) await step();
});

const OPTIONS: Omit<MetricExportOptions, "snapshot"> = {
  protocol: "http/protobuf",
  exportIntervalMillis: 60_000,
  exportTimeoutMillis: 30_000,
  resource: { "service.name": "parley", "service.instance.id": "one" },
  warn: () => undefined,
};

async function startGrpcCollector(): Promise<{ url: string; metrics: ReceivedMetric[] }> {
  const server = new Server();
  const metrics: ReceivedMetric[] = [];
  const asIs = (bytes: Buffer): Buffer => bytes;
  const export_ = (call: { request: Buffer }, reply: (error: null, answer: Buffer) => void): void => {
    metrics.push(...decodeMetrics(call.request));
    reply(null, Buffer.alloc(0));
  };
  server.register("/opentelemetry.proto.collector.metrics.v1.MetricsService/Export", export_, asIs, asIs, "unary");
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  undo.push(() => server.forceShutdown());
  return { url: `http://127.0.0.1:${port}`, metrics };
}

async function startHttpCollector(options = {}) {
  const collector = await startCollector(options);
  undo.push(() => collector.close());
  return collector;
}

/** A process that has served two completions. */
function busy() {
  const metrics = createMetrics({ ...QUIET, activeCalls: () => 3 });
  const attempts = [attemptSample({ durationMs: 70 })];
  metrics.completion(completionSample({ durationMs: 80, costMicroUsd: 1.5, attempts }));
  metrics.completion(completionSample({ durationMs: 400_000, costMicroUsd: 2, attempts }));
  return metrics;
}

/** What Prometheus would show of the same values: names with `_bucket`, `_sum` and `_count`, and their labels. */
function asPrometheus(received: readonly ReceivedMetric[]): string[] {
  const line = (name: string, labels: Readonly<Record<string, unknown>>, value: number): string =>
    `${name} ${Object.entries(labels)
      .map(([key, given]) => `${key}=${String(given)}`)
      .toSorted()
      .join()} ${value}`;
  return received.flatMap(({ name, kind, attributes, value, histogram }) => {
    if (kind !== "histogram") return [line(name, attributes, value!)];
    const { counts, bounds, sum, count } = histogram;
    let upTo = 0;
    return [
      ...counts.map((each, place) => {
        upTo += each;
        return line(`${name}_bucket`, { ...attributes, le: String(bounds[place] ?? "+Inf") }, upTo);
      }),
      line(`${name}_sum`, attributes, sum),
      line(`${name}_count`, attributes, count),
    ];
  });
}

function fromText(text: string): string[] {
  return text.split("\n").flatMap((each) => {
    const [, name = "", labels = "", value = ""] = /^([a-z_]+)(?:\{(.*)\})? (.+)$/.exec(each) ?? [];
    if (name === "") return [];
    const pairs = [...labels.matchAll(/([a-z_]+)="([^"]*)"/g)].map(([, key, given]) => `${key}=${given}`);
    return [`${name} ${pairs.toSorted().join()} ${Number(value)}`];
  });
}

describe("the export of metrics", () => {
  it.each(["http/protobuf", "http/json", "grpc"] as const)("sends the values of /metrics by %s", async (protocol) => {
    const collector = protocol === "grpc" ? await startGrpcCollector() : await startHttpCollector();
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
    vi.stubEnv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
    const metrics = busy();
    // Of the same moment: values of the process change.
    const snapshot = (JSON.parse(JSON.stringify(await metrics.snapshot())) as MetricsSnapshot).filter(({ name }) =>
      name.startsWith("parley_"),
    );
    const text = (await metrics.text()).replaceAll(/^(?!parley_).*$/gm, "");
    const exported = await openMetricExport({ ...OPTIONS, protocol, snapshot: async () => snapshot });
    await exported.close();
    expect(asPrometheus(collector.metrics).toSorted()).toEqual(fromText(text).toSorted());
    const find = (name: string) => collector.metrics.find((one) => one.name === name);
    expect(find("parley_active_calls")).toMatchObject({ kind: "gauge", value: 3, unit: "" });
    expect(find("parley_cost_micro_usd_total")).toMatchObject({
      kind: "sum",
      isCumulative: true,
      isMonotonic: true,
      value: 3.5,
      attributes: { model: "words", target: "words", provider: "local" },
      resource: { "service.name": "parley", "service.instance.id": "one", "deployment.environment.name": "test" },
    });
    const duration = find("parley_completion_seconds")!;
    expect(duration).toMatchObject({ kind: "histogram", isCumulative: true, unit: "s" });
    // The last bucket has what is above all bounds.
    expect(duration.histogram.counts.at(-1)).toBe(1);
    expect(duration.histogram.counts.reduce((sum, count) => sum + count)).toBe(duration.histogram.count);
    expect(duration.startMs).toBeLessThan(duration.endMs);
  });

  it("sends the sums of several workers", async () => {
    const collector = await startHttpCollector();
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
    const fleet = new FleetMetrics({ ready: () => 2, replaced: () => 0 });
    for (const name of ["1", "2"])
      fleet.note(name, JSON.parse(JSON.stringify(await busy().snapshot())) as MetricsSnapshot);
    const exported = await openMetricExport({ ...OPTIONS, snapshot: () => fleet.snapshot() });
    await exported.close();
    const valueOf = (name: string) => collector.metrics.find((one) => one.name === name);
    expect(valueOf("parley_active_calls")?.value).toBe(6);
    expect(valueOf("parley_workers_ready")?.value).toBe(2);
    expect(valueOf("parley_completion_seconds")?.histogram.count).toBe(4);
  });

  it("sends at the interval, and again what it could not send", async () => {
    const collector = await startHttpCollector();
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
    const metrics = busy();
    const exported = await openMetricExport({
      ...OPTIONS,
      exportIntervalMillis: 50,
      exportTimeoutMillis: 50,
      snapshot: () => metrics.snapshot(),
    });
    undo.push(() => exported.close());
    const values = (): unknown[] =>
      collector.metrics.filter(({ name }) => name === "parley_active_calls").map(({ value }) => value);
    await vi.waitFor(() => expect(values().length).toBeGreaterThan(1), 10_000);
  });

  it("says that a collector cannot be reached, and does not wait for one that hangs", async () => {
    const collector = await startCollector();
    await collector.close();
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
    vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "100");
    const warnings: string[] = [];
    const warn = (text: string): void => void warnings.push(text);
    const away = await openMetricExport({ ...OPTIONS, warn, snapshot: () => busy().snapshot() });
    await away.close();
    expect(warnings).toEqual([expect.stringContaining("metrics export failed")]);
    const hanging = await startHttpCollector({ hangs: true });
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", hanging.url);
    const hung = await openMetricExport({ ...OPTIONS, warn, snapshot: () => busy().snapshot() });
    const beganMs = performance.now();
    await hung.close();
    expect(performance.now() - beganMs).toBeLessThan(8_000);
  });
});
