import type { Clock } from "../core/clock.ts";
import type { AuditActor, AuditFields, AuditObject, UnchainedEntry } from "./audit-entry.ts";
import { toFieldText } from "./audit-fields.ts";
import type { AuditStore } from "./audit-store.ts";

/** All actions of the audit log. Those that end with `_failed` or `_refused` have failed. */
export const AUDIT_ACTIONS = [
  "signed_up",
  "signed_in",
  "sign_in_failed",
  "sign_in_refused",
  "sign_in_link_created",
  "identity_linked",
  "identity_removed",
  "signed_out",
  "signed_out_elsewhere",
  "reauthenticated",
  "reauthentication_failed",
  "password_changed",
  "password_reset_requested",
  "password_reset",
  "passkey_added",
  "passkey_removed",
  "totp_enabled",
  "totp_disabled",
  "recovery_codes_renewed",
  "recovery_code_used",
  "second_factor_failed",
  "factors_reset",
  "account_created",
  "account_renamed",
  "role_changed",
  "role_by_groups",
  "limits_changed",
  "account_disabled",
  "account_enabled",
  "account_offboarded",
  "invitation_created",
  "invitation_accepted",
  "invitation_revoked",
  "team_created",
  "member_added",
  "member_changed",
  "member_removed",
  "key_created",
  "key_updated",
  "key_rotated",
  "key_revoked",
  "key_transferred",
  "credential_set",
  "credential_removed",
  "credentials_resealed",
  "aliases_changed",
  "configuration_changed",
  "provider_credential_set",
  "provider_credential_removed",
  "alert_channel_created",
  "alert_channel_removed",
  "alert_thresholds_changed",
  "alert_muted",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** What has happened. Never has a secret or a plain e-mail address. */
export interface NewEntry {
  readonly action: AuditAction;
  /** The account that acted. */
  readonly actorId?: string | undefined;
  /** Who acted without an account. Default: the log's own actor. */
  readonly actor?: AuditActor | undefined;
  readonly network?: string | undefined;
  /** The caller's program, such as `Firefox on Linux`. */
  readonly client?: string | undefined;
  /** The account that it concerns, and the object unless there is another one. */
  readonly accountId?: string | undefined;
  readonly object?: AuditObject | undefined;
  /** The changed fields before and after. */
  readonly before?: AuditFields | undefined;
  readonly after?: AuditFields | undefined;
  /** Further facts: IDs, numbers and words. */
  readonly details?: Readonly<Record<string, string>>;
}

/** Records changes and sign-ins. */
export interface AuditLog {
  /** Resolves when the entry is stored or storing has failed. Never rejects: the action has already happened. */
  record(entry: NewEntry): Promise<void>;
}

/** Called with each entry, and with the reason when it could not be stored. */
export type AuditListener = (entry: UnchainedEntry, lost: unknown) => void;

interface AuditLogOptions {
  readonly store: Pick<AuditStore, "append">;
  readonly clock: Pick<Clock, "now">;
  /** Who acts when an entry names no account. */
  readonly actor: AuditActor;
  readonly listener: AuditListener;
}

/** Stores entries and passes them to a listener, such as the process's log. */
export function createAuditLog({ store, clock, actor: own, listener }: AuditLogOptions): AuditLog {
  const guesses = new GuessSampler();
  return {
    async record({ action, actorId, actor = own, network, client, accountId, object, before, after, details = {} }) {
      const atMs = clock.now();
      let facts = details;
      if (action === "sign_in_failed" && accountId === undefined) {
        const attempts = guesses.take(atMs);
        if (attempts === 0) return;
        if (attempts > 1) facts = { ...details, attempts: String(attempts) };
      }
      const entry: UnchainedEntry = {
        atMs,
        action,
        actor: actorId === undefined ? actor : { kind: "account", id: actorId },
        network,
        client,
        object: object ?? (accountId === undefined ? undefined : { kind: "account", id: accountId }),
        accountId,
        result: /_(failed|refused)$/.test(action) ? "failed" : "done",
        before: before && toFieldText(before),
        after: after && toFieldText(after),
        details: Object.keys(facts).length === 0 ? undefined : toFieldText(facts),
      };
      let lost: unknown;
      try {
        await store.append(entry);
      } catch (reason) {
        lost = reason;
      }
      listener(entry, lost);
    },
  };
}

const HOUR_MS = 60 * 60 * 1000;
/** Failed sign-ins with unknown addresses of an hour that have an entry each. */
const SINGLE_GUESSES = 100;

/**
 * Chooses which failed sign-ins with unknown addresses are recorded: anybody can make them, and entries stay for the whole retention. In
 * each hour of the clock the first 100 are, then the 200th, the 400th and so on, each with the number of attempts since the entry before.
 */
class GuessSampler {
  #hour = 0;
  #count = 0;
  #recorded = 0;

  /** The number of attempts that the entry of this one stands for; 0 for no entry. */
  take(atMs: number): number {
    const hour = Math.floor(atMs / HOUR_MS);
    if (hour !== this.#hour) {
      this.#hour = hour;
      this.#count = this.#recorded = 0;
    }
    this.#count += 1;
    if (this.#count > SINGLE_GUESSES && this.#count < 2 * this.#recorded) return 0;
    const attempts = this.#count - this.#recorded;
    this.#recorded = this.#count;
    return attempts;
  }
}
