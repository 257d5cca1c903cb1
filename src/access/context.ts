import type { Clock } from "../core/clock.ts";
import type { AccountStore } from "./account-store.ts";
import type { PasswordHasher } from "./password-hash.ts";
import type { SecurityLog } from "./security-log.ts";
import type { Throttle } from "./throttle.ts";

/** Who may make an account. While there is no administrator, the first person may, unless sign-up is closed. */
export type SignUpMode = "open" | "invited" | "closed";

/** What everything about accounts stands on. */
export interface AccessContext {
  readonly store: AccountStore;
  readonly throttle: Throttle;
  readonly passwords: PasswordHasher;
  readonly log: SecurityLog;
  readonly clock: Clock;
  readonly signUp: SignUpMode;
  /** Whether others than users of this machine may reach the sign-up page: the first administrator then needs a setup token. */
  readonly isExposed: boolean;
}

/** Where a request comes from. */
export interface Origin {
  /** As `networkOf` says it; undefined for the command line, which nothing throttles. */
  readonly network: string | undefined;
  /** What the request comes from, in a few words, such as `Firefox on Linux`. */
  readonly browser?: string | undefined;
  /** The token in the browser's cookie, valid or not: see `known-browsers.ts`. */
  readonly browserToken?: string | undefined;
  /** Whether a proxy has forwarded the request, so that others than users of this machine may send some. */
  readonly isForwarded?: boolean;
}
