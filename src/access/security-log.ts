import type { Clock } from "../core/clock.ts";
import type { AccountStore, SecurityEvent } from "./account-store.ts";

/** All types of security events. */
export type SecurityEventType =
  | "signed_up"
  | "signed_in"
  | "sign_in_refused"
  | "sign_in_link_created"
  | "identity_linked"
  | "identity_removed"
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
  | "role_by_groups"
  | "limits_changed"
  | "account_disabled"
  | "account_enabled"
  | "invitation_created"
  | "invitation_accepted"
  | "invitation_revoked"
  | "team_created"
  | "member_added"
  | "member_changed"
  | "member_removed"
  | "key_created"
  | "key_updated"
  | "key_rotated"
  | "key_revoked"
  | "key_transferred"
  | "account_offboarded"
  | "credential_set"
  | "credential_removed"
  | "aliases_changed"
  | "configuration_changed"
  | "provider_credential_set"
  | "provider_credential_removed"
  | "alert_channel_created"
  | "alert_channel_removed"
  | "alert_thresholds_changed"
  | "alert_muted";

/** A security event without its time. */
export interface NewSecurityEvent {
  readonly type: SecurityEventType;
  readonly actorId?: string | undefined;
  readonly accountId?: string | undefined;
  readonly network?: string | undefined;
  /** IDs and numbers; never a secret or a plain e-mail address. */
  readonly details?: Readonly<Record<string, string>>;
}

/** Records security events for the owner. */
export interface SecurityLog {
  /** Resolves when the event is stored or storing has failed. Never rejects: the action has already happened. */
  record(event: NewSecurityEvent): Promise<void>;
}

/** Called with each event, and with the reason when it could not be stored. */
export type SecurityListener = (event: SecurityEvent, lost: unknown) => void;

/** Stores events and passes them to a listener, such as the process's log. */
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
