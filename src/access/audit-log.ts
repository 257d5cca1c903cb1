import { BoundedMap } from "../core/bounded-map.ts";
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
  "content_read",
  "credential_set",
  "credential_removed",
  "credentials_resealed",
  "aliases_changed",
  "calls_stopped",
  "stop_removed",
  "attributed_budget_changed",
  "configuration_changed",
  "provider_credential_set",
  "provider_credential_removed",
  "provider_tested",
  "model_tested",
  "alert_channel_created",
  "alert_channel_updated",
  "alert_channel_removed",
  "alert_channel_tested",
  "alert_thresholds_changed",
  "alert_muted",
  "alert_acknowledged",
  "admin_key_created",
  "admin_key_revoked",
  "role_created",
  "role_updated",
  "role_removed",
  "audit_stream_created",
  "audit_stream_removed",
] as const;
export type AuditAction = (typeof AUDIT_ACTIONS)[number];

/** An entry to record. It must not contain a secret or a plain e-mail address. */
export interface NewEntry {
  readonly action: AuditAction;
  /** The account that acted. */
  readonly actorId?: string | undefined;
  /** Actor in place of an account. Default: the account, or else the log's own actor. */
  readonly actor?: AuditActor | undefined;
  readonly network?: string | undefined;
  /** The caller's program, such as `Firefox on Linux`. */
  readonly client?: string | undefined;
  /** The account that the entry concerns; also its object, unless `object` is set. */
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
type AuditListener = (entry: UnchainedEntry, lost: unknown) => void;

interface AuditLogOptions {
  readonly store: Pick<AuditStore, "append">;
  readonly clock: Pick<Clock, "now">;
  /** Actor of entries that name no account. */
  readonly actor: AuditActor;
  readonly listener: AuditListener;
}

/** Stores entries and passes them to a listener, such as the process's log. */
export function createAuditLog({ store, clock, actor: own, listener }: AuditLogOptions): AuditLog {
  const sampler = new Sampler();
  return {
    async record({ action, actorId, actor, network, client, accountId, object, before, after, details = {} }) {
      const atMs = clock.now();
      let facts = details;
      const attempts = sampler.take(action, accountId, atMs);
      if (attempts === 0) return;
      if (attempts > 1) facts = { ...details, attempts: String(attempts) };
      const entry: UnchainedEntry = {
        atMs,
        action,
        actor: actor ?? (actorId === undefined ? own : { kind: "account", id: actorId }),
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
/** Entries of a sampled action and an account in an hour that are recorded one by one. */
const SINGLE_ENTRIES = 100;
/** Limit of accounts whose entries are counted; the one without an entry for the longest time is evicted. */
const MAX_COUNTED = 10_000;

/** Actions that are sampled: they change nothing, so that no other limit applies to their repetition. */
const SAMPLED: ReadonlySet<AuditAction> = new Set([
  "signed_in",
  "sign_in_failed",
  "sign_in_refused",
  "signed_out",
  "reauthenticated",
  "reauthentication_failed",
]);

interface Counted {
  readonly hour: number;
  readonly count: number;
  readonly recorded: number;
}

/**
 * Samples sign-ins and failed sign-ins: clients can cause any number of them, and entries stay for the whole retention. In
 * each hour of the clock it records the first 100 of an action and an account (all attempts without a known account count
 * together), then the 200th, the 400th and so on, each with the number of attempts since the previous entry.
 */
class Sampler {
  readonly #counted = new BoundedMap<string, Counted>(MAX_COUNTED);

  /** Counts an attempt. Returns the number of attempts that its entry represents; 0 when it is not recorded. */
  take(action: AuditAction, accountId = "", atMs: number): number {
    if (!SAMPLED.has(action)) return 1;
    const key = `${action} ${accountId}`;
    const hour = Math.floor(atMs / HOUR_MS);
    const before = this.#counted.get(key);
    const { count, recorded } = before?.hour === hour ? before : { count: 0, recorded: 0 };
    const isRecorded = count < SINGLE_ENTRIES || count + 1 >= 2 * recorded;
    this.#counted.set(key, { hour, count: count + 1, recorded: isRecorded ? count + 1 : recorded });
    return isRecorded ? count + 1 - recorded : 0;
  }
}
