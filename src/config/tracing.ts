import type { Environment } from "./environment.ts";
import { type OtlpProtocol, OtelVariables, type ReportVariable } from "./otel.ts";

/** Which new traces are exported; `parentbased_…`: a caller's decision comes first. */
const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/**
 * How traces are exported. Address, headers, certificates, compression and time limit of the exporter, and the names of the
 * service, are read by OpenTelemetry's own libraries.
 */
export interface TraceExportConfig {
  readonly protocol: OtlpProtocol;
  readonly sampler: (typeof SAMPLERS)[number];
  /** Of `…traceidratio`: from 0 to 1. */
  readonly ratio: number;
  /** Spans that wait at most, are sent together at most, and how long they wait. */
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  readonly scheduledDelayMillis: number;
}

/** Reads the variables. Undefined when traces are not exported. */
export function readTraceExport(env: Environment, report: ReportVariable): TraceExportConfig | undefined {
  const variables = new OtelVariables(env, report);
  const protocol = variables.protocolOf("TRACES");
  if (protocol === undefined) return undefined;
  const maxQueueSize = variables.numberOf("OTEL_BSP_MAX_QUEUE_SIZE", 2048);
  return {
    protocol,
    sampler: variables.choiceOf("OTEL_TRACES_SAMPLER", SAMPLERS, "parentbased_always_on"),
    ratio: variables.numberOf("OTEL_TRACES_SAMPLER_ARG", 1, { min: 0, max: 1 }),
    maxQueueSize,
    maxExportBatchSize: Math.min(variables.numberOf("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), maxQueueSize),
    scheduledDelayMillis: variables.numberOf("OTEL_BSP_SCHEDULE_DELAY", 5000),
  };
}
