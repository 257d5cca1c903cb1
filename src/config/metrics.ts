import type { Environment } from "./environment.ts";
import { type OtlpProtocol, OtelVariables, type ReportVariable } from "./otel.ts";

/**
 * How metrics are exported by OTLP. Address, headers, certificates, compression and time limit of a request, and the names of the
 * service, are read by OpenTelemetry's own libraries.
 */
export interface MetricExportConfig {
  readonly protocol: OtlpProtocol;
  /** Time between two exports, and the longest time of one. */
  readonly exportIntervalMillis: number;
  readonly exportTimeoutMillis: number;
}

/** Reads the variables. Undefined when metrics are not exported. */
export function readMetricExport(env: Environment, report: ReportVariable): MetricExportConfig | undefined {
  const variables = new OtelVariables(env, report);
  const protocol = variables.protocolOf("METRICS");
  if (protocol === undefined) return undefined;
  // Prometheus' counters and histograms are cumulative, and these are the same. The specification has the words in any case.
  const preference = "OTEL_EXPORTER_OTLP_METRICS_TEMPORALITY_PREFERENCE";
  if ((variables.textOf(preference) ?? "cumulative").toLowerCase() !== "cumulative")
    report(preference, "it must be cumulative; a collector can convert metrics (its processor cumulativetodelta)");
  const exportIntervalMillis = variables.numberOf("OTEL_METRIC_EXPORT_INTERVAL", 60_000, {
    min: 1_000,
    max: 3_600_000,
  });
  const exportTimeoutMillis = variables.numberOf("OTEL_METRIC_EXPORT_TIMEOUT", 30_000, { max: 3_600_000 });
  return { protocol, exportIntervalMillis, exportTimeoutMillis: Math.min(exportTimeoutMillis, exportIntervalMillis) };
}
