import { readTraceContext, type Trace, TRACEPARENT_HEADER, TRACESTATE_HEADER } from "../core/trace.ts";
import type { EdgeServices } from "./services.ts";

interface Arrived {
  /** By the clock's `monotonic`. */
  readonly arrivedMs: number;
  /** `Arrival.target`. */
  readonly target: () => string;
}

/** Begins the trace of a call, which continues that of its caller. Undefined where the call is not traced. */
export function beginTrace(
  { traces }: Pick<EdgeServices, "traces">,
  headerOf: (name: string) => string | readonly string[] | undefined,
  { arrivedMs, target }: Arrived,
): Trace | undefined {
  if (traces === undefined) return undefined;
  const [parent, state] = [TRACEPARENT_HEADER, TRACESTATE_HEADER].map((name) => headerOf(name)?.toString());
  return traces.begin({ caller: readTraceContext(parent, state), arrivedMs, target: target() });
}
