import type { Clock } from "../core/clock.ts";
import type { AccountStore } from "./account-store.ts";
import type { AuditLog } from "./audit-log.ts";
import type { PasswordHasher } from "./password-hash.ts";
import type { SignInRules } from "./sign-in-rules.ts";
import type { Throttle } from "./throttle.ts";
import type { SignInQueue } from "./sign-in-queue.ts";

/** Rule for making an account. While there is no owner, the first person may, unless sign-up is closed. */
export type SignUpMode = "open" | "invited" | "closed";

/** Encryption of second factors, and the key of challenges. */
export interface FactorSecrets {
  /** Encrypts the secret of an account's authenticator app. */
  seal(secret: string, accountId: string): string;
  /** Undefined for a secret that was encrypted with another key or for another account. */
  open(sealed: string, accountId: string): string | undefined;
  /** Why this process cannot encrypt; undefined when it can. */
  sealProblem(): string | undefined;
  /** The key of challenges for passkeys, the same for all processes of the database. */
  challengeKey(): Promise<Buffer>;
}

/** Dependencies of everything about accounts. */
export interface AccessContext {
  readonly store: AccountStore;
  readonly throttle: Throttle;
  readonly signInQueue: SignInQueue;
  readonly passwords: PasswordHasher;
  readonly factors: FactorSecrets;
  /** Sends the token of a link for a new password to an address; undefined where no e-mail can be sent. */
  readonly resetMail: () => ((to: string, token: string) => Promise<void>) | undefined;
  readonly log: AuditLog;
  readonly clock: Clock;
  readonly signUp: SignUpMode;
  readonly signIn: SignInRules;
  /** Whether other machines may reach the sign-up page: the first owner then needs a setup token. */
  readonly isExposed: boolean;
}

/** Context of the removal of expired rows. */
export interface PruneContext extends Pick<AccessContext, "store" | "signIn"> {
  /** Unix time; the same clock for all processes. */
  readonly nowMs: number;
}

/** Origin of a request. */
export interface Origin {
  /** As returned by `networkOf`; undefined for the command line, which is not throttled. */
  readonly network: string | undefined;
  /** Short description of the browser, such as `Firefox on Linux`. */
  readonly browser?: string | undefined;
  /** The token in the browser's cookie, valid or not: see `known-browsers.ts`. */
  readonly browserToken?: string | undefined;
  /** Whether a proxy has forwarded the request, so that it may come from another machine. */
  readonly isForwarded?: boolean;
}
