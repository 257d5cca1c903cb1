import {
  type Attributes,
  createTraceState,
  type HrTime,
  ROOT_CONTEXT,
  SpanKind,
  SpanStatusCode,
  trace,
  TraceFlags,
} from "@opentelemetry/api";
import {
  AlwaysOffSampler,
  AlwaysOnSampler,
  BatchSpanProcessor,
  ParentBasedSampler,
  type ReadableSpan,
  type Sampler,
  SamplingDecision,
  type SpanExporter,
  TraceIdRatioBasedSampler,
} from "@opentelemetry/sdk-trace";
import { closeWithin, type Protocol, resourceOf, sendDiagnostics } from "./otlp.ts";

/** A span that has ended. Times are Unix milliseconds, with fractions. */
export interface EndedSpan {
  readonly name: string;
  readonly kind: "server" | "client" | "internal";
  readonly traceId: string;
  readonly spanId: string;
  readonly parentSpanId: string | undefined;
  /** Valid `tracestate`. */
  readonly state: string | undefined;
  readonly startMs: number;
  readonly endMs: number;
  /** Undefined ones are left out. */
  readonly attributes: Attributes;
  readonly events: readonly { readonly name: string; readonly atMs: number; readonly attributes?: Attributes }[];
  readonly isError: boolean;
}

export interface TraceExportOptions {
  readonly protocol: Protocol;
  readonly sampler: string;
  readonly ratio: number;
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  readonly scheduledDelayMillis: number;
  /** Attributes of the service, which OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace. */
  readonly resource: Attributes;
  /** Receives problems of the exporter, such as an unreachable collector. */
  readonly warn: (message: string) => void;
}

/** Sends spans by OTLP, in batches from a bounded queue. Spans beyond the queue's limit are dropped. */
export interface TraceExport {
  /** Whether spans of this trace are wanted. `parent`: the caller's span. */
  samples(traceId: string, parent: { readonly spanId: string; readonly isSampled: boolean } | undefined): boolean;
  /** Adds a span to the queue. Never blocks and never throws. */
  add(span: EndedSpan): void;
  /** Sends the queued spans, within two seconds. */
  close(): Promise<void>;
}

const KINDS = { server: SpanKind.SERVER, client: SpanKind.CLIENT, internal: SpanKind.INTERNAL } as const;

/** Connects to the collector of the variables OTEL_EXPORTER_OTLP_…. Returns at once, whether or not it can be reached. */
export async function openTraceExport(options: TraceExportOptions): Promise<TraceExport> {
  const { maxQueueSize, maxExportBatchSize, scheduledDelayMillis } = options;
  sendDiagnostics(options.warn);
  const processor = new BatchSpanProcessor({
    exporter: await openExporter(options.protocol),
    maxQueueSize,
    maxExportBatchSize,
    scheduledDelayMillis,
  });
  const sampler = toSampler(options);
  const resource = resourceOf(options.resource);
  const instrumentationScope = { name: "parley" };
  return {
    samples(traceId, parent) {
      const context =
        parent === undefined
          ? ROOT_CONTEXT
          : trace.setSpanContext(ROOT_CONTEXT, {
              traceId,
              spanId: parent.spanId,
              traceFlags: parent.isSampled ? TraceFlags.SAMPLED : TraceFlags.NONE,
              isRemote: true,
            });
      const { decision } = sampler.shouldSample(context, traceId, "", SpanKind.SERVER, {}, []);
      return decision === SamplingDecision.RECORD_AND_SAMPLED;
    },
    add: (span) => processor.onEnd({ ...toReadable(span), resource, instrumentationScope }),
    close: () => closeWithin(processor.shutdown()),
  };
}

async function openExporter(protocol: Protocol): Promise<SpanExporter> {
  switch (protocol) {
    case "http/protobuf":
      return new (await import("@opentelemetry/exporter-trace-otlp-proto")).OTLPTraceExporter();
    case "http/json":
      return new (await import("@opentelemetry/exporter-trace-otlp-http")).OTLPTraceExporter();
    case "grpc":
      return new (await import("@opentelemetry/exporter-trace-otlp-grpc")).OTLPTraceExporter();
  }
}

function toSampler({ sampler, ratio }: Pick<TraceExportOptions, "sampler" | "ratio">): Sampler {
  const name = sampler.replace(/^parentbased_/, "");
  const root =
    name === "always_on"
      ? new AlwaysOnSampler()
      : name === "always_off"
        ? new AlwaysOffSampler()
        : new TraceIdRatioBasedSampler(ratio);
  return name === sampler ? root : new ParentBasedSampler({ root });
}

function toReadable({
  traceId,
  spanId,
  parentSpanId,
  state,
  ...span
}: EndedSpan): Omit<ReadableSpan, "resource" | "instrumentationScope"> {
  // `samples` has already decided; the processor would drop spans without this flag.
  const traceFlags = TraceFlags.SAMPLED;
  const traceState = state === undefined ? undefined : createTraceState(state);
  const context = { traceId, spanId, traceFlags, ...(traceState !== undefined && { traceState }) };
  return {
    name: span.name,
    kind: KINDS[span.kind],
    spanContext: () => context,
    ...(parentSpanId !== undefined && {
      parentSpanContext: { traceId, spanId: parentSpanId, traceFlags, isRemote: span.kind === "server" },
    }),
    startTime: toTime(span.startMs),
    endTime: toTime(span.endMs),
    duration: toTime(Math.max(span.endMs - span.startMs, 0)),
    status: { code: span.isError ? SpanStatusCode.ERROR : SpanStatusCode.UNSET },
    attributes: withoutUndefined(span.attributes),
    events: span.events.map(({ name, atMs, attributes = {} }) => ({ name, time: toTime(atMs), attributes })),
    links: [],
    ended: true,
    droppedAttributesCount: 0,
    droppedEventsCount: 0,
    droppedLinksCount: 0,
  };
}

function withoutUndefined(attributes: Attributes): Attributes {
  return Object.fromEntries(Object.entries(attributes).filter(([, value]) => value !== undefined));
}

function toTime(ms: number): HrTime {
  const micros = Math.round(ms * 1000);
  const seconds = Math.floor(micros / 1_000_000);
  return [seconds, (micros - seconds * 1_000_000) * 1000];
}
