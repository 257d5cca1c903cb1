import type { Clock } from "../../src/core/clock.ts";
import type { Calls } from "../../src/edge/calls.ts";
import { AdmissionControl } from "../../src/edge/overload/admission-control.ts";

/** An admission control with plenty of room. */
export function roomyAdmission(calls: Pick<Calls, "active">, clock: Clock): AdmissionControl {
  return new AdmissionControl(
    { maxCalls: 10_000, maxWaitMs: 60_000 },
    {
      clock,
      calls,
      memoryShare: () => 0,
      loopUse: () => ({ busyShare: 0, slowdown: 1, waitedMs: 0 }),
      atEndOfTurn: (callback) => void setImmediate(callback),
      changed: () => undefined,
    },
  );
}
