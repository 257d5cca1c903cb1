import type { Clock } from "../core/clock.ts";
import type { AccountStore } from "./account-store.ts";
import type { PasswordHasher } from "./password-hash.ts";
import type { SecurityLog } from "./security-log.ts";
import type { Throttle } from "./throttle.ts";

/** Who may make an account once there is an administrator. */
export type SignUpMode = "open" | "invited" | "closed";

/** What everything about accounts stands on. */
export interface AccessContext {
  readonly store: AccountStore;
  readonly throttle: Throttle;
  readonly passwords: PasswordHasher;
  readonly log: SecurityLog;
  readonly clock: Clock;
  readonly signUp: SignUpMode;
}

/** Where a request comes from. */
export interface Origin {
  /** As `networkOf` says it; undefined for the command line, which nothing throttles. */
  readonly network: string | undefined;
  /** What the request comes from, in a few words, such as `Firefox on Linux`. */
  readonly browser?: string | undefined;
}
