import type { Clock } from "../../src/core/clock.ts";
import { Connections } from "../../src/inbound/connections.ts";
import { AdmissionControl } from "../../src/admission/admission-control.ts";

/** Memory for the bodies of a test. */
export const ROOMY_BYTES = { key: 1e9, account: 1e9, process: 1e9, held: 1e12 };

/** An admission control with high limits, or for this number of calls and bytes. */
export function roomyAdmission(clock: Clock, maxCalls = 10_000, arrivingBytes = ROOMY_BYTES): AdmissionControl {
  return new AdmissionControl(
    { maxCalls, maxWaitMs: 60_000, accountConcurrency: () => undefined, arrivingBytes },
    {
      clock,
      memoryShare: () => 0,
      load: () => ({ busyShare: 0, delayMs: 0 }),
      atEndOfTurn: (callback) => void setImmediate(callback),
      changed: () => undefined,
    },
  );
}

/** No connection limit. */
export function anyConnections(): Connections {
  return new Connections({ max: Infinity, maxPerAddress: Infinity, clientOf: () => undefined });
}
