import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { decodeMetrics, type MetricsJson, metricsOf, type ReceivedMetric } from "./otlp-metrics.ts";
import { fromBinary, toJson } from "@bufbuild/protobuf";
import { FieldDescriptorProto_Type as Type } from "@bufbuild/protobuf/wkt";
import { type AttributesJson, COMMON, describe, valuesOf } from "./otlp-messages.ts";

/** A span as a collector got it. */
export interface ReceivedSpan {
  readonly name: string;
  /** 2 server, 3 client, 1 internal. */
  readonly kind: number;
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string;
  readonly traceState: string;
  readonly startMs: number;
  readonly endMs: number;
  readonly isError: boolean;
  readonly attributes: Readonly<Record<string, unknown>>;
  readonly events: readonly { readonly name: string; readonly attributes: Readonly<Record<string, unknown>> }[];
  readonly resource: Readonly<Record<string, unknown>>;
}

/** A collector for traces and metrics over HTTP, with JSON and protobuf. */
export interface Collector {
  readonly url: string;
  readonly spans: readonly ReceivedSpan[];
  /** All values of metrics so far, in the order in which they came. */
  readonly metrics: readonly ReceivedMetric[];
  /** All bodies so far. */
  readonly bytes: () => Buffer;
  /** Resolves when `condition` holds of the spans. */
  until(condition: (spans: readonly ReceivedSpan[]) => boolean): Promise<void>;
  close(): Promise<void>;
}

/** Starts a collector. `hangs`: it reads requests and never answers. */
export async function startCollector({ hangs = false } = {}): Promise<Collector> {
  const spans: ReceivedSpan[] = [];
  const metrics: ReceivedMetric[] = [];
  const bodies: Buffer[] = [];
  let arrived = Promise.withResolvers<void>();
  const server = createServer((request, response) => {
    const pieces: Buffer[] = [];
    request.on("data", (piece: Buffer) => pieces.push(piece));
    request.once("end", () => {
      const body = Buffer.concat(pieces);
      bodies.push(body);
      const isJson = request.headers["content-type"] === "application/json";
      if (request.url?.endsWith("/v1/metrics") === true)
        metrics.push(...(isJson ? metricsOf(JSON.parse(body.toString()) as MetricsJson) : decodeMetrics(body)));
      else spans.push(...(isJson ? spansOf(JSON.parse(body.toString()) as ExportJson, (id) => id) : decodeSpans(body)));
      if (!hangs) response.writeHead(200, { "content-type": request.headers["content-type"]! }).end();
      arrived.resolve();
      arrived = Promise.withResolvers();
    });
  });
  await once(server.listen(0, "127.0.0.1"), "listening");
  return {
    url: `http://127.0.0.1:${(server.address() as AddressInfo).port}`,
    spans,
    metrics,
    bytes: () => Buffer.concat(bodies),
    async until(condition) {
      while (!condition(spans)) await arrived.promise;
    },
    async close() {
      server.closeAllConnections();
      await new Promise((resolve) => server.close(resolve));
    },
  };
}

/** The spans of an `ExportTraceServiceRequest`. */
export function decodeSpans(body: Uint8Array): ReceivedSpan[] {
  const toHex = (base64: string): string => Buffer.from(base64, "base64").toString("hex");
  return spansOf(toJson(REQUEST, fromBinary(REQUEST, body)) as unknown as ExportJson, toHex);
}

interface ExportJson {
  readonly resourceSpans: readonly {
    readonly resource: { readonly attributes: AttributesJson };
    readonly scopeSpans: readonly {
      readonly spans: readonly {
        readonly name: string;
        readonly kind: number | string;
        readonly traceId: string;
        readonly spanId: string;
        readonly parentSpanId?: string;
        readonly traceState?: string;
        readonly startTimeUnixNano: string;
        readonly endTimeUnixNano: string;
        readonly status?: { readonly code?: number };
        readonly attributes?: AttributesJson;
        readonly events?: readonly { readonly name: string; readonly attributes?: AttributesJson }[];
      }[];
    }[];
  }[];
}

function spansOf({ resourceSpans }: ExportJson, toHex: (id: string) => string): ReceivedSpan[] {
  return resourceSpans.flatMap(({ resource, scopeSpans }) =>
    scopeSpans.flatMap(({ spans }) =>
      spans.map((span) => ({
        name: span.name,
        kind: Number(span.kind),
        traceId: toHex(span.traceId),
        spanId: toHex(span.spanId),
        parentSpanId: toHex(span.parentSpanId ?? ""),
        traceState: span.traceState ?? "",
        startMs: Number(span.startTimeUnixNano) / 1e6,
        endMs: Number(span.endTimeUnixNano) / 1e6,
        isError: span.status?.code === 2,
        attributes: valuesOf(span.attributes),
        events: (span.events ?? []).map(({ name, attributes }) => ({ name, attributes: valuesOf(attributes) })),
        resource: valuesOf(resource.attributes),
      })),
    ),
  );
}

/**
 * The messages of OTLP that are read here, with the numbers of its `trace/v1/trace.proto` (opentelemetry-proto 1.9.0): enums are
 * read as their numbers.
 */
const REQUEST = describe({
  Request: { resourceSpans: [1, ["ResourceSpans"]] },
  ResourceSpans: { resource: [1, "Resource"], scopeSpans: [2, ["ScopeSpans"]] },
  ...COMMON,
  ScopeSpans: { spans: [2, ["Span"]] },
  Span: {
    traceId: [1, Type.BYTES],
    spanId: [2, Type.BYTES],
    traceState: [3, Type.STRING],
    parentSpanId: [4, Type.BYTES],
    name: [5, Type.STRING],
    kind: [6, Type.INT32],
    startTimeUnixNano: [7, Type.FIXED64],
    endTimeUnixNano: [8, Type.FIXED64],
    attributes: [9, ["KeyValue"]],
    events: [11, ["Event"]],
    status: [15, "Status"],
  },
  Event: { timeUnixNano: [1, Type.FIXED64], name: [2, Type.STRING], attributes: [3, ["KeyValue"]] },
  Status: { message: [2, Type.STRING], code: [3, Type.INT32] },
});
