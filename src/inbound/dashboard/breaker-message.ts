import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type BreakerSchema, BreakerState } from "../../../gen/parley/console/v1/model_pb.js";
import type { Opening } from "../../router/upstream-health.ts";

/** A circuit breaker: `rest` is undefined while it is closed. */
export function toBreakerMessage({
  rest,
  nowMs,
}: {
  readonly rest: Opening | undefined;
  readonly nowMs: number;
}): MessageInitShape<typeof BreakerSchema> {
  if (rest === undefined) return { state: BreakerState.CLOSED };
  return {
    state: rest.remainingMs > 0 ? BreakerState.OPEN : BreakerState.HALF_OPEN,
    restStartTime: timestampFromMs(rest.sinceMs),
    restEndTime: timestampFromMs(nowMs + Math.round(rest.remainingMs)),
    probeInFlight: rest.isProbed,
  };
}
