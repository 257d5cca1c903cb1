import type { AccessContext } from "../access/context.ts";
import { createPasswordHasher } from "../access/password-hash.ts";
import { createSecurityLog } from "../access/security-log.ts";
import { createThrottle } from "../access/throttle.ts";
import { Turns } from "../access/turns.ts";
import type { Config } from "../config/config.ts";
import { isExposed } from "../config/warnings.ts";
import type { Clock } from "../core/clock.ts";
import type { Store } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";

interface AccessPorts {
  readonly store: Store;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Builds the context of accounts and sessions. Security events are stored, and written into the log too. */
export function accessOf(config: Config, { store, clock, log }: AccessPorts): AccessContext {
  return {
    store: store.accounts,
    throttle: createThrottle(store.throttles, clock),
    turns: new Turns(),
    passwords: createPasswordHasher(),
    log: createSecurityLog(store.accounts, clock, (event, lost) => {
      if (lost === undefined) return log.info(event, "security event");
      const cause = lost instanceof Error ? lost.message : "unknown";
      log.error({ ...event, cause }, "security event could not be stored");
    }),
    clock,
    signUp: config.signUp,
    isExposed: isExposed(config),
  };
}
