import type { Environment } from "./environment.ts";

/** Protocols of OTLP. */
export const OTLP_PROTOCOLS = ["http/protobuf", "http/json", "grpc"] as const;

/** Which new traces are exported; `parentbased_…`: a caller's decision comes first. */
export const SAMPLERS = [
  "always_on",
  "always_off",
  "traceidratio",
  "parentbased_always_on",
  "parentbased_always_off",
  "parentbased_traceidratio",
] as const;

/**
 * How traces are exported, by the variables of "OpenTelemetry Environment Variable Specification" 1.56.0. Address, headers,
 * certificates, compression and time limit of the exporter, and the names of the service, are read by OpenTelemetry's own
 * libraries.
 */
export interface TraceExportConfig {
  readonly protocol: (typeof OTLP_PROTOCOLS)[number];
  readonly sampler: (typeof SAMPLERS)[number];
  /** Of `…traceidratio`: from 0 to 1. */
  readonly ratio: number;
  /** Spans that wait at most, are sent together at most, and how long they wait. */
  readonly maxQueueSize: number;
  readonly maxExportBatchSize: number;
  readonly scheduledDelayMillis: number;
}

const ENDPOINT = "OTEL_EXPORTER_OTLP_ENDPOINT";
const TRACES_ENDPOINT = "OTEL_EXPORTER_OTLP_TRACES_ENDPOINT";

type ReportVariable = (variable: string, text: string) => void;

/** Reads the variables. Undefined when nothing is to be exported. An empty variable counts as unset, as that specification says. */
export function readTraceExport(env: Environment, report: ReportVariable): TraceExportConfig | undefined {
  const textOf = (variable: string): string | undefined => env[variable]?.trim() || undefined;
  const firstOf = (...variables: string[]): string =>
    variables.find((one) => textOf(one) !== undefined) ?? variables[0]!;
  const choiceOf = <T extends string>(variable: string, choices: readonly T[], standard: T): T => {
    const text = textOf(variable) ?? standard;
    const found = choices.find((choice) => choice === text);
    if (found === undefined) report(variable, `it must be one of ${choices.join(", ")}`);
    return found ?? standard;
  };
  const numberOf = (variable: string, standard: number, { min = 1, max = 1_000_000 } = {}): number => {
    const value = Number(textOf(variable) ?? standard);
    if (value >= min && value <= max) return value;
    report(variable, `it must be a number from ${min} to ${max}`);
    return standard;
  };

  if (textOf("OTEL_SDK_DISABLED")?.toLowerCase() === "true") return undefined;
  const endpoint = firstOf(TRACES_ENDPOINT, ENDPOINT);
  const hasEndpoint = textOf(endpoint) !== undefined;
  if (choiceOf("OTEL_TRACES_EXPORTER", ["otlp", "none"], hasEndpoint ? "otlp" : "none") === "none") return undefined;
  const protocol = choiceOf(
    firstOf("OTEL_EXPORTER_OTLP_TRACES_PROTOCOL", "OTEL_EXPORTER_OTLP_PROTOCOL"),
    OTLP_PROTOCOLS,
    "http/protobuf",
  );
  // Over gRPC an address needs no scheme. The library would replace one that it cannot read by its default.
  if (hasEndpoint && protocol !== "grpc" && !/^https?:$/.test(URL.parse(textOf(endpoint)!)?.protocol ?? ""))
    report(endpoint, "it must be an address such as http://127.0.0.1:4318");
  const maxQueueSize = numberOf("OTEL_BSP_MAX_QUEUE_SIZE", 2048);
  return {
    protocol,
    sampler: choiceOf("OTEL_TRACES_SAMPLER", SAMPLERS, "parentbased_always_on"),
    ratio: numberOf("OTEL_TRACES_SAMPLER_ARG", 1, { min: 0, max: 1 }),
    maxQueueSize,
    maxExportBatchSize: Math.min(numberOf("OTEL_BSP_MAX_EXPORT_BATCH_SIZE", 512), maxQueueSize),
    scheduledDelayMillis: numberOf("OTEL_BSP_SCHEDULE_DELAY", 5000),
  };
}
