import type { AccessContext } from "../../src/access/context.ts";
import type { SecurityEvent } from "../../src/access/account-store.ts";
import { createPasswordHasher, type HashCost } from "../../src/access/password-hash.ts";
import { createSecurityLog } from "../../src/access/security-log.ts";
import { createThrottle } from "../../src/access/throttle.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { type MemoryAccounts, memoryAccountStore, memoryThrottleStore } from "./memory-accounts.ts";

/** As cheap as argon2id can be: what it is worth is the business of its own tests. */
export const CHEAP: HashCost = { memoryKib: 8, passes: 1, parallelism: 1 };

/** A password that may be one. */
export const PASSWORD = "four unrelated words";

export interface AccessUnderTest extends AccessContext {
  readonly store: MemoryAccounts;
  readonly throttles: ReturnType<typeof memoryThrottleStore>;
  readonly clock: FakeClock;
  /** What the log was told. */
  readonly logged: SecurityEvent[];
}

/** Everything about accounts on memory, a clock that stands still and cheap hashes, unless told otherwise. */
export function setUpAccess(
  changes: Partial<Pick<AccessContext, "signUp" | "isExposed" | "passwords">> = {},
): AccessUnderTest {
  const clock = new FakeClock();
  const store = memoryAccountStore();
  const throttles = memoryThrottleStore();
  const logged: SecurityEvent[] = [];
  return {
    store,
    throttles,
    clock,
    logged,
    throttle: createThrottle(throttles, clock),
    passwords: createPasswordHasher(CHEAP),
    log: createSecurityLog(store, clock, (event) => logged.push(event)),
    signUp: "open",
    isExposed: false,
    ...changes,
  };
}

/** The `index`th of as many networks as one likes. */
export function networkNumber(index: number): string {
  return `10.${index >> 8}.${index & 255}.0/24`;
}
