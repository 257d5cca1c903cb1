import { setTimeout as sleep } from "node:timers/promises";
import { type Attributes, diag, DiagLogLevel } from "@opentelemetry/api";
import {
  defaultResource,
  detectResources,
  envDetector,
  type Resource,
  resourceFromAttributes,
} from "@opentelemetry/resources";

/** Protocols of OTLP, by OpenTelemetry's names. */
export type Protocol = "http/protobuf" | "http/json" | "grpc";

/** Milliseconds for the last export at the end of the process. */
const CLOSING_MS = 2_000;
/** Shortest time in milliseconds between two warnings. An unreachable collector would cause one for each batch. */
const WARNING_MS = 60_000;

/** The service: `attributes`, which OTEL_SERVICE_NAME and OTEL_RESOURCE_ATTRIBUTES replace. */
export function resourceOf(attributes: Attributes): Resource {
  return defaultResource()
    .merge(resourceFromAttributes(attributes))
    .merge(detectResources({ detectors: [envDetector] }));
}

/** Sends diagnostics of OpenTelemetry's libraries to `warn`, at most one message in WARNING_MS. They have one receiver per process. */
export function sendDiagnostics(warn: (message: string) => void): void {
  let warnedMs = -Infinity;
  const report = (message: string): void => {
    if (performance.now() - warnedMs < WARNING_MS) return;
    warnedMs = performance.now();
    // Errors come as JSON, with their stacks.
    warn((/"message":"((?:[^"\\]|\\.)*)"/.exec(message)?.[1] ?? message).slice(0, 500));
  };
  const ignore = (): void => undefined;
  const logger = { error: report, warn: report, info: ignore, debug: ignore, verbose: ignore };
  diag.setLogger(logger, { logLevel: DiagLogLevel.WARN, suppressOverrideMessage: true });
}

/** Waits for the last export, for CLOSING_MS at most. A batch that cannot be sent is reported as a warning. */
export async function closeWithin(shutdown: Promise<void>): Promise<void> {
  const cut = new AbortController();
  const flushed = shutdown.catch(() => undefined);
  await Promise.race([flushed, sleep(CLOSING_MS, undefined, { signal: cut.signal }).catch(() => undefined)]);
  cut.abort();
}
