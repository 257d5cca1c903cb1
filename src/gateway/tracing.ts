import { hostname } from "node:os";
import type { Config } from "../config/config.ts";
import { readVersion } from "../config/version.ts";
import type { Clock } from "../core/clock.ts";
import { newTraceId, Trace, type Traces } from "../core/trace.ts";
import type { Logger } from "../telemetry/logger.ts";
import { hasFailed, toSpans } from "./spans.ts";

interface TracingPorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Identifies this process among those of the service. */
  readonly replica: string;
  readonly find: Parameters<typeof toSpans>[1]["find"];
}

/** The traces of this process, and the function that ends their export. */
export interface Tracing {
  /** Undefined when traces are not configured. */
  readonly traces: Traces | undefined;
  close(): Promise<void>;
}

/** Hands the caller's trace on, of which a front has no span of its own. */
export const passOn: Traces = { begin: ({ caller }) => caller && new Trace(caller) };

/**
 * Opens the export of traces. Its libraries are loaded only where it is configured. Failed and slow calls are exported whatever the
 * sampler decided: their spans are made when they have ended, of what is known of each call.
 */
export async function openTracing({ tracing }: Config, ports: TracingPorts): Promise<Tracing> {
  const { slowMs, export: options } = tracing;
  if (options === undefined) return { traces: undefined, close: async () => undefined };
  const { clock, log, replica, find } = ports;
  const { openTraceExport } = await import("../telemetry/trace-export.ts");
  const exported = await openTraceExport({
    ...options,
    resource: serviceOf(replica),
    warn: (cause) => log.warn({ cause }, "metrics or traces cannot be exported"),
  });
  const originMs = clock.now() - clock.monotonic();
  return {
    traces: {
      begin({ caller, arrivedMs, target }) {
        const traceId = caller?.traceId ?? newTraceId(16);
        const isSampled = exported.samples(traceId, caller);
        const trace: Trace = new Trace(
          { traceId, spanId: newTraceId(8), isSampled, state: caller?.state },
          (record, ending) => {
            if (!isSampled && !hasFailed(record) && record.durationMs < slowMs) return;
            const call = { trace, record, ending, parentSpanId: caller?.spanId, arrivedMs, target };
            for (const span of toSpans(call, { find, originMs })) exported.add(span);
          },
        );
        return trace;
      },
    },
    close: () => exported.close(),
  };
}

/** Attributes of this process in traces and metrics; `replica` identifies it. */
export function serviceOf(replica: string) {
  return {
    "service.name": "parley",
    "service.version": readVersion(),
    "service.instance.id": replica,
    "host.name": hostname(),
  };
}
