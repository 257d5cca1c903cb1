import { Server, ServerCredentials } from "@grpc/grpc-js";
import { afterEach, describe, expect, it, vi } from "vitest";
import { type EndedSpan, openTraceExport, type TraceExportOptions } from "../../src/telemetry/trace-export.ts";
import { decodeSpans, type ReceivedSpan, startCollector } from "../support/otlp.ts";

const undo: (() => Promise<void> | void)[] = [];
afterEach(async () => {
  vi.unstubAllEnvs();
  for (const step of undo.splice(0).toReversed()) await step();
});

const OPTIONS: TraceExportOptions = {
  protocol: "http/protobuf",
  sampler: "parentbased_always_on",
  ratio: 1,
  maxQueueSize: 2048,
  maxExportBatchSize: 512,
  scheduledDelayMillis: 60_000,
  resource: { "service.name": "parley" },
  warn: () => undefined,
};

const SPAN: EndedSpan = {
  name: "ledger",
  kind: "internal",
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  parentSpanId: "00f067aa0ba902b7",
  state: "vendor=value",
  startMs: 1_700_000_000_000.25,
  endMs: 1_700_000_001_000.5,
  attributes: { text: "words", number: 7, fraction: 0.5, flag: true, missing: undefined },
  events: [{ name: "event", atMs: 1_700_000_000_500 }],
  isError: true,
};

async function startGrpcCollector(): Promise<{ url: string; spans: ReceivedSpan[] }> {
  const server = new Server();
  const spans: ReceivedSpan[] = [];
  const asIs = (bytes: Buffer): Buffer => bytes;
  const path = "/opentelemetry.proto.collector.trace.v1.TraceService/Export";
  server.register(
    path,
    (call: { request: Buffer }, reply: (error: null, answer: Buffer) => void) => {
      spans.push(...decodeSpans(call.request));
      reply(null, Buffer.alloc(0));
    },
    asIs,
    asIs,
    "unary",
  );
  const port = await new Promise<number>((resolve, reject) => {
    server.bindAsync("127.0.0.1:0", ServerCredentials.createInsecure(), (error, bound) =>
      error === null ? resolve(bound) : reject(error),
    );
  });
  undo.push(() => server.forceShutdown());
  return { url: `http://127.0.0.1:${port}`, spans };
}

async function startHttpCollector(options = {}) {
  const collector = await startCollector(options);
  undo.push(() => collector.close());
  return collector;
}

describe("the export of traces", () => {
  it.each(["http/protobuf", "http/json", "grpc"] as const)(
    "sends what waits when it is closed, by %s",
    async (protocol) => {
      const collector = protocol === "grpc" ? await startGrpcCollector() : await startHttpCollector();
      vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
      vi.stubEnv("OTEL_SERVICE_NAME", "gateway");
      vi.stubEnv("OTEL_RESOURCE_ATTRIBUTES", "deployment.environment.name=test");
      const exported = await openTraceExport({ ...OPTIONS, protocol });
      exported.add(SPAN);
      await exported.close();
      expect(collector.spans).toMatchObject([
        {
          name: "ledger",
          kind: 1,
          traceId: SPAN.traceId,
          spanId: SPAN.spanId,
          parentSpanId: SPAN.parentSpanId,
          traceState: "vendor=value",
          isError: true,
          attributes: { text: "words", number: 7, fraction: 0.5, flag: true },
          events: [{ name: "event" }],
          resource: { "service.name": "gateway", "deployment.environment.name": "test" },
        },
      ]);
      expect(collector.spans[0]!.endMs - collector.spans[0]!.startMs).toBeCloseTo(1000.25, 1);
      expect(collector.spans[0]!.attributes).not.toHaveProperty("missing");
    },
  );

  it("holds a bounded number of spans for a collector that hangs, and does not wait for it at its end", async () => {
    const collector = await startHttpCollector({ hangs: true });
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
    const exported = await openTraceExport(OPTIONS);
    for (let count = 0; count < 20_000; count++) exported.add(SPAN);
    const beganMs = performance.now();
    await exported.close();
    expect(performance.now() - beganMs).toBeLessThan(8_000);
    // The queue, and the batch that was on its way.
    expect(collector.spans.length).toBeLessThanOrEqual(2048 + 512);
  });

  it("says once a minute that a collector cannot be reached", async () => {
    const collector = await startCollector();
    await collector.close();
    vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
    vi.stubEnv("OTEL_EXPORTER_OTLP_TIMEOUT", "100");
    const warnings: string[] = [];
    const options = { ...OPTIONS, maxExportBatchSize: 1, warn: (text: string) => void warnings.push(text) };
    const exported = await openTraceExport(options);
    exported.add(SPAN);
    exported.add(SPAN);
    await vi.waitFor(() => expect(warnings).toHaveLength(1), 5_000);
    await exported.close();
    expect(warnings).toEqual([expect.stringMatching(/^connect ECONNREFUSED 127\.0\.0\.1:\d+$/)]);
  });

  it.each([
    ["always_on", 1, undefined, true],
    ["always_on", 1, false, true],
    ["always_off", 1, true, false],
    ["traceidratio", 1, undefined, true],
    ["traceidratio", 0, true, false],
    ["parentbased_always_on", 1, undefined, true],
    ["parentbased_always_on", 1, false, false],
    ["parentbased_always_off", 1, true, true],
    ["parentbased_always_off", 1, undefined, false],
    ["parentbased_traceidratio", 0, undefined, false],
    ["parentbased_traceidratio", 0, true, true],
  ])("decides by %s %d when the caller's decision is %s", async (sampler, ratio, isSampled, decision) => {
    const exported = await openTraceExport({ ...OPTIONS, sampler, ratio });
    undo.push(() => exported.close());
    const parent = isSampled === undefined ? undefined : { spanId: SPAN.spanId, isSampled };
    expect(exported.samples(SPAN.traceId, parent)).toBe(decision);
  });
});
