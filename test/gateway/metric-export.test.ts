import { execFile } from "node:child_process";
import { join } from "node:path";
import { promisify } from "node:util";
import { expect, it } from "vitest";

const SOURCES = join(import.meta.dirname, "../../src");

/**
 * Opens both exports with this environment in a process of its own, and returns the packages of OpenTelemetry that were loaded, without
 * its API, which prom-client has for itself.
 */
async function loadedWith(env: Readonly<Record<string, string>>, first = "gateway/tracing.ts"): Promise<string[]> {
  const program = `
    import { registerHooks } from "node:module";
    const packages = new Set();
    registerHooks({
      resolve(specifier, context, next) {
        packages.add(specifier);
        return next(specifier, context);
      },
    });
    await import("${SOURCES}/${first}");
    const { parseConfig } = await import("${SOURCES}/config/parse.ts");
    const { exportMetrics } = await import("${SOURCES}/gateway/metric-export.ts");
    const { openTracing } = await import("${SOURCES}/gateway/tracing.ts");
    const config = parseConfig({ file: undefined, text: "", env: process.env });
    const clock = { now: () => 0, monotonic: () => 0 };
    const log = { warn() {} };
    const ports = { clock, log, replica: "one", find: () => undefined, metrics: { snapshot: async () => [] } };
    await exportMetrics(config, ports);
    await openTracing(config, ports);
    console.log([...packages].filter((name) => name.startsWith("@opentelemetry/")).join(" "));
    process.exit();`;
  const { stdout } = await promisify(execFile)(process.execPath, ["--input-type=module", "--eval", program], {
    env: { PATH: process.env["PATH"], ...env },
  });
  return stdout
    .trim()
    .split(" ")
    .filter((name) => name !== "" && name !== "@opentelemetry/api");
}

it("loads nothing of OpenTelemetry without a collector, and only what is exported with one", async () => {
  const endpoint = { OTEL_EXPORTER_OTLP_ENDPOINT: "http://127.0.0.1:9" };
  const [off, both, tracesOnly] = await Promise.all([
    loadedWith({}, "gateway/gateway.ts"),
    loadedWith(endpoint),
    loadedWith({ ...endpoint, OTEL_METRICS_EXPORTER: "none" }),
  ]);
  expect(off).toEqual([]);
  expect(both).toContain("@opentelemetry/sdk-metrics");
  expect(both).toContain("@opentelemetry/sdk-trace");
  expect(tracesOnly).not.toContain("@opentelemetry/exporter-metrics-otlp-proto");
}, 60_000);
