import type { Clock } from "../core/clock.ts";
import type { AccountStore, SecurityEvent } from "./account-store.ts";

/** Everything that is recorded. */
export type SecurityEventType =
  | "signed_up"
  | "signed_in"
  | "sign_in_failed"
  | "signed_out"
  | "signed_out_elsewhere"
  | "reauthenticated"
  | "reauthentication_failed"
  | "password_changed"
  | "password_reset"
  | "account_created"
  | "account_renamed"
  | "role_changed"
  | "limits_changed"
  | "account_disabled"
  | "account_enabled"
  | "invitation_created"
  | "invitation_accepted"
  | "invitation_revoked"
  | "key_created"
  | "key_updated"
  | "key_rotated"
  | "key_revoked";

/** What happened, without its time. */
export interface NewSecurityEvent {
  readonly type: SecurityEventType;
  readonly actorId?: string | undefined;
  readonly accountId?: string | undefined;
  readonly network?: string | undefined;
  /** IDs and numbers; never a secret, nor an e-mail address as it is. */
  readonly details?: Readonly<Record<string, string>>;
}

/** Writes down what an owner may want to look up later. */
export interface SecurityLog {
  /** Resolves when the event is kept, or when it is sure that it cannot be. Never rejects: what happened has happened. */
  record(event: NewSecurityEvent): Promise<void>;
}

/** Where each event is also told to, with the reason when it could not be kept. */
export type SecurityListener = (event: SecurityEvent, lost: unknown) => void;

/** Keeps events in the store and tells a listener, such as the log of the process. */
export function createSecurityLog(
  store: Pick<AccountStore, "record">,
  clock: Clock,
  listener: SecurityListener,
): SecurityLog {
  return {
    async record({ type, actorId, accountId, network, details = {} }) {
      const event = { atMs: clock.now(), type, actorId, accountId, network, details };
      let lost: unknown;
      try {
        await store.record(event);
      } catch (reason) {
        lost = reason;
      }
      listener(event, lost);
    },
  };
}
