import type { Config } from "../config/config.ts";
import type { Logger } from "../telemetry/logger.ts";
import type { Metrics } from "../telemetry/metrics.ts";
import { serviceOf } from "./tracing.ts";

interface MetricExportPorts {
  readonly log: Logger;
  /** Identifies this process among those of the service. */
  readonly replica: string;
  readonly metrics: Pick<Metrics, "snapshot">;
}

/**
 * Exports what the operations port shows. Its libraries are loaded only where that is configured. Returns the function that
 * ends the export, after the last values were sent.
 */
export async function exportMetrics(
  { metrics: { export: options } }: Pick<Config, "metrics">,
  { log, replica, metrics }: MetricExportPorts,
): Promise<() => Promise<void>> {
  if (options === undefined) return async () => undefined;
  const { openMetricExport } = await import("../telemetry/metric-export.ts");
  const exported = await openMetricExport({
    ...options,
    resource: serviceOf(replica),
    snapshot: () => metrics.snapshot(),
    warn: (cause) => log.warn({ cause }, "metrics or traces cannot be exported"),
  });
  return () => exported.close();
}
