import type { Completion, CompletionStart } from "../../gen/parley/v1/completion_pb.js";
import type { Failure } from "../core/failure.ts";
import type { Attempt } from "../../gen/parley/v1/report_pb.js";

/** Who answered and at what cost in time: sent as HTTP headers and as gRPC metadata alike. */
export type RoutingFacts = readonly (readonly [name: string, value: string])[];

/** Facts of a whole completion. `elapsedMs` is the time since the request arrived. */
export function routingOfCompletion({ model, report }: Completion, requested: string, elapsedMs: number): RoutingFacts {
  return facts({
    requested,
    served: model,
    tried: countTried(report?.attempts ?? []),
    overheadMs: elapsedMs - (report?.upstreamMs ?? 0),
  });
}

/** Facts of a stream at its first content: the attempt that serves is not among `start.attempts` yet. */
export function routingOfStart(
  { model, attempts, upstreamMs }: CompletionStart,
  requested: string,
  elapsedMs: number,
): RoutingFacts {
  return facts({ requested, served: model, tried: countTried(attempts) + 1, overheadMs: elapsedMs - upstreamMs });
}

/** Facts of a completion that failed: nobody served it. */
export function routingOfFailure({ attempts }: Failure, requested: string): RoutingFacts {
  return [
    ["parley-requested-model", headerSafe(requested)],
    ["parley-attempts", String(countTried(attempts))],
  ];
}

/** A model's name as callers may have written it: what a header cannot hold is left out. */
function headerSafe(text: string): string {
  return text.slice(0, 256).replace(/[^\x20-\x7e]/g, "");
}

function countTried(attempts: readonly Attempt[]): number {
  return attempts.filter((attempt) => attempt.outcome !== "skipped").length;
}

function facts(of: { requested: string; served: string; tried: number; overheadMs: number }): RoutingFacts {
  return [
    ["parley-requested-model", headerSafe(of.requested)],
    ["parley-served-model", of.served],
    ["parley-attempts", String(of.tried)],
    ["parley-overhead-ms", Math.max(of.overheadMs, 0).toFixed(1)],
  ];
}
