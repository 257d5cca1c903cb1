/**
 * The tables after all migrations, the same on both databases. Times are Unix milliseconds, money is micro-USD, booleans are
 * 1 and 0, lists are JSON.
 */
export interface Schema {
  readonly accounts: AccountRow;
  readonly team_members: TeamMemberRow;
  readonly custom_roles: CustomRoleRow;
  readonly administration_keys: AdministrationKeyRow;
  readonly api_keys: KeyRow;
  readonly sessions: SessionRow;
  readonly known_browsers: KnownBrowserRow;
  readonly identities: IdentityRow;
  readonly sign_in_links: SignInLinkRow;
  readonly passkeys: PasskeyRow;
  readonly passkey_challenges: PasskeyChallengeRow;
  readonly totp_secrets: TotpSecretRow;
  readonly recovery_codes: RecoveryCodeRow;
  readonly password_reset_links: SignInLinkRow;
  readonly setup_tokens: SetupTokenRow;
  readonly invitations: InvitationRow;
  readonly throttles: ThrottleRow;
  /** Written by releases before the audit log, which takes over their rows. */
  readonly security_events: SecurityEventRow;
  readonly audit_entries: AuditEntryRow;
  readonly audit_chain: AuditChainRow;
  readonly audit_streams: AuditStreamRow;
  readonly saved_filters: SavedFilterRow;
  readonly completions: CompletionRow;
  readonly ledger_segments: LedgerSegmentRow;
  readonly begun_completions: BegunCompletionRow;
  readonly usage_hours: UsageHourRow;
  readonly usage_minutes: UsageMinuteRow;
  readonly refusals: RefusalRow;
  readonly usage_leaders: UsageLeaderRow;
  readonly spending: SpendingRow;
  readonly budget_holds: BudgetHoldRow;
  readonly rate_states: RateStateRow;
  readonly replicas: ReplicaRow;
  readonly health_notes: HealthNoteRow;
  readonly target_attempts: TargetAttemptsRow;
  readonly target_latencies: TargetLatenciesRow;
  readonly replica_states: ReplicaStateRow;
  readonly kept_responses: SealedRow;
  readonly completion_contents: SealedRow;
  readonly secrets: SecretRow;
  readonly configuration_versions: ConfigurationVersionRow;
  readonly provider_credentials: ProviderCredentialRow;
  readonly alerts: AlertRow;
  readonly alert_channels: AlertChannelRow;
  readonly alert_deliveries: AlertDeliveryRow;
  readonly alert_settings: AlertSettingRow;
}

/** Null: no limit. */
export interface LimitColumns {
  readonly requests_per_minute: number | null;
  readonly tokens_per_minute: number | null;
  readonly concurrent_requests: number | null;
  readonly monthly_budget_micro_usd: number | null;
}

export interface AccountRow extends LimitColumns {
  readonly id: string;
  /** `person`, `team` or `service`. */
  readonly kind: string;
  readonly name: string;
  readonly created_at_ms: number;
  readonly email: string | null;
  /** `administrator` or `member`: what programs before exact roles know. */
  readonly role: string;
  /** `owner` of an administrator, `viewer` or the ID of a custom role of a member; null for an administrator or a developer. */
  readonly exact_role: string | null;
  readonly password_hash: string | null;
  readonly disabled_at_ms: number | null;
  /** A list of `StoredCredential`; null without any. */
  readonly credentials: string | null;
  /** A list of pairs; null without any. */
  readonly aliases: string | null;
  /** A list of `StoredStop`; null without any. */
  readonly stops: string | null;
}

/** A role that an owner has made. */
export interface CustomRoleRow {
  readonly id: string;
  readonly name: string;
  /** A list. */
  readonly permissions: string;
  /** `developer` or `viewer`. */
  readonly base: string;
  readonly created_at_ms: number;
}

export interface AdministrationKeyRow {
  readonly id: string;
  /** SHA-256 of the key, in hexadecimal. */
  readonly hash: string;
  readonly display: string;
  readonly name: string;
  /** The account that made the key. */
  readonly account_id: string;
  /** A list. */
  readonly permissions: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number | null;
  readonly revoked_at_ms: number | null;
  readonly last_used_at_ms: number | null;
}

/** A receiver of the audit log with its position. */
export interface AuditStreamRow {
  readonly id: string;
  /** For people, without secrets. */
  readonly target: string;
  /** Its address and key, encrypted, in base64. */
  readonly sealed: string;
  /** Sequence number of the last entry that the receiver has accepted. */
  readonly sequence: number;
  readonly created_at_ms: number;
  /** Null for the command line. */
  readonly created_by: string | null;
  /** The process that sends; null: none. */
  readonly claimed_by: string | null;
  /** Until then no other process sends. */
  readonly claimed_until_ms: number;
  /** Failed sendings since the last one that succeeded. */
  readonly failures: number;
  readonly next_at_ms: number;
  readonly sent_at_ms: number | null;
  /** Why the latest sending failed; empty otherwise. */
  readonly problem: string;
}

interface TeamMemberRow {
  readonly team_id: string;
  readonly account_id: string;
  readonly role: string;
  readonly added_at_ms: number;
}

export interface KeyRow extends LimitColumns {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  /** SHA-256 of the key, in hexadecimal. */
  readonly hash: string;
  readonly display: string;
  /** A list of model IDs; null for all. */
  readonly models: string | null;
  readonly capabilities: string;
  /** A list of provider options; null for the default. */
  readonly options: string | null;
  /** An object of lists; null without any. */
  readonly required_labels: string | null;
  /** A list; null without any. */
  readonly tags: string | null;
  /** Whether prompts and answers are stored; null: no. */
  readonly stores_content: number | null;
  readonly created_at_ms: number;
  readonly expires_at_ms: number | null;
  readonly revoked_at_ms: number | null;
  /** The key that replaced it in a rotation. */
  readonly replaced_by: string | null;
  readonly last_used_at_ms: number | null;
  /** The first key of its family; null for the first key itself. */
  readonly line_id: string | null;
  /** Whether an administrator has restricted it; a developer cannot lift that. */
  readonly limited_by_administrator: number;
  /** `AttributionLimits`; null without any. */
  readonly attribution_limits: string | null;
}

export interface SessionRow {
  readonly hash: string;
  readonly account_id: string;
  readonly created_at_ms: number;
  readonly last_seen_at_ms: number;
  readonly authenticated_at_ms: number;
  readonly network: string | null;
  readonly browser: string | null;
  /** Null: `password`. */
  readonly method: string | null;
  readonly id_token: string | null;
  /** 1 for a session with a second factor, else null. */
  readonly second_factor: number | null;
}

export interface PasskeyRow {
  readonly id: string;
  readonly account_id: string;
  readonly name: string;
  readonly public_key: string;
  readonly counter: number;
  readonly transports: string;
  readonly created_at_ms: number;
  readonly used_at_ms: number | null;
}

/** A used challenge; an unused one has no row. */
interface PasskeyChallengeRow {
  readonly hash: string;
  readonly expires_at_ms: number;
}

interface TotpSecretRow {
  readonly account_id: string;
  readonly sealed: string;
  readonly last_step: number;
  readonly created_at_ms: number;
}

interface RecoveryCodeRow {
  readonly account_id: string;
  readonly hash: string;
}

/** An account has at most one of an issuer. */
interface IdentityRow {
  readonly issuer: string;
  readonly subject: string;
  readonly account_id: string;
  readonly linked_at_ms: number;
}

interface SignInLinkRow {
  readonly hash: string;
  readonly account_id: string;
  readonly expires_at_ms: number;
}

interface KnownBrowserRow {
  readonly hash: string;
  readonly account_id: string;
  readonly signed_in_at_ms: number;
}

interface SetupTokenRow {
  readonly hash: string;
  readonly expires_at_ms: number;
}

export interface InvitationRow {
  readonly id: string;
  readonly hash: string;
  readonly email: string | null;
  /** As of an account. */
  readonly role: string;
  readonly exact_role: string | null;
  readonly created_by: string;
  readonly created_at_ms: number;
  readonly expires_at_ms: number;
  readonly used_at_ms: number | null;
  /** Team that the new account joins, with its role there; null for none. */
  readonly team_id: string | null;
  readonly team_role: string | null;
}

export interface ThrottleRow {
  readonly subject: string;
  readonly count: number;
  readonly blocked_until_ms: number;
  readonly changed_at_ms: number;
}

export interface SecurityEventRow {
  readonly id: string;
  readonly at_ms: number;
  readonly type: string;
  readonly actor_id: string | null;
  readonly account_id: string | null;
  readonly network: string | null;
  /** A JSON object of texts. */
  readonly details: string;
}

/** An entry of the audit log, by `AuditEntry`. */
export interface AuditEntryRow {
  readonly sequence: number;
  readonly at_ms: number;
  readonly action: string;
  readonly actor_kind: string;
  readonly actor_id: string | null;
  readonly network: string | null;
  readonly client: string | null;
  readonly object_kind: string | null;
  readonly object_id: string | null;
  readonly account_id: string | null;
  readonly result: string;
  readonly before_json: string | null;
  readonly after_json: string | null;
  readonly details: string | null;
  readonly hash: string;
}

/** Both ends of the audit log's chain; the only row has the ID 1. Transactions that append or prune lock it. */
interface AuditChainRow {
  readonly id: number;
  readonly anchor_sequence: number;
  readonly anchor_hash: string;
  readonly head_sequence: number;
  readonly head_hash: string;
}

/** A filter of the page of requests. */
interface SavedFilterRow {
  readonly account_id: string;
  readonly name: string;
  /** Query of the page's address. */
  readonly query: string;
}

/** An entry of the ledger. */
export interface CompletionRow {
  readonly id: string;
  readonly request_id: string;
  readonly account_id: string;
  readonly key_id: string;
  readonly entrance: string;
  readonly started_at_ms: number;
  readonly ended_at_ms: number;
  readonly requested_model: string;
  readonly served_model: string | null;
  readonly streamed: number;
  readonly outcome: string;
  readonly attempts: string;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly completion_tokens: number;
  readonly reasoning_tokens: number;
  readonly image_tokens: number;
  readonly cost_micro_usd: number;
  /** Part of the cost. */
  readonly own_cost_micro_usd: number;
  readonly duration_ms: number;
  readonly first_content_ms: number | null;
  readonly partial: number;
  readonly estimated: number;
  /** Null without a limit, and in rows older than this column. */
  readonly request_limit: number | null;
  readonly request_limit_remaining: number | null;
  readonly request_limit_reset_ms: number | null;
  readonly token_limit: number | null;
  readonly token_limit_remaining: number | null;
  readonly token_limit_reset_ms: number | null;
  /** The other counts of `TokenCounts` as a JSON object; null without any, and in rows older than this column. */
  readonly other_counts: string | null;
  /** Month of spending of an entry of a lost process, and of the one that has replaced it; null: that of its hold or start. */
  readonly spending_month: string | null;
  /** An `EntryDetails` as JSON; null without any, and in rows older than this column. */
  readonly details: string | null;
  /** An `Attribution`, its tags as a JSON list; null without one, and in rows older than these columns. */
  readonly end_user: string | null;
  readonly session: string | null;
  readonly agent: string | null;
  readonly tags: string | null;
}

/** Durable entries that are not in the tables yet, as JSON, because they are never queried one by one. */
export interface LedgerSegmentRow {
  readonly id: number;
  readonly entries: string;
}

/** A note of completions that were begun together. Some of them have their entries; it stays until all have. */
export interface BegunCompletionRow {
  readonly id: string;
  /** Name of their process in `replicas`. */
  readonly replica: string;
  /** The entries that they get when their process ends without them: a list in JSON. */
  readonly entry: string;
}

/** Sums of requests by account, key, model and outcome. */
export interface UsageSumsRow {
  /** Empty, with the key, in the row of all accounts; `none`, with the key, for requests refused without a valid key. */
  readonly account_id: string;
  readonly key_id: string;
  /** The served model, or the requested one when none answered; `unknown` when a refused request named none that exists. */
  readonly model: string;
  readonly outcome: string;
  readonly completions: number;
  readonly partial: number;
  readonly estimated: number;
  readonly prompt_tokens: number;
  readonly cached_tokens: number;
  readonly completion_tokens: number;
  readonly reasoning_tokens: number;
  readonly image_tokens: number;
  readonly cost_micro_usd: number;
  /** Part of the cost. */
  readonly own_cost_micro_usd: number;
  /** Refused requests, which are no completions. */
  readonly refused: number;
}

/** Sums of the completions that started, and the requests that were refused, in one hour. */
export interface UsageHourRow extends UsageSumsRow {
  readonly hour_ms: number;
}

/** Sums of one minute, like `UsageHourRow`. */
export interface UsageMinuteRow extends UsageSumsRow {
  readonly minute_ms: number;
}

/** A sample of the refused requests. */
export interface RefusalRow {
  readonly id: string;
  readonly ended_at_ms: number;
  readonly request_id: string;
  /** `none`, with the key, without a valid key. */
  readonly account_id: string;
  readonly key_id: string;
  readonly requested_model: string;
  readonly outcome: string;
  /** Error message that the caller got. */
  readonly message: string;
  /** A `LedgerEntry` as JSON. */
  readonly entry: string;
}

/**
 * Usage of one of the keys or accounts with the largest cost of a day (UTC), or of all accounts together, when the day was
 * ranked.
 */
export interface UsageLeaderRow {
  readonly day_ms: number;
  readonly kind: "key" | "account" | "all";
  /** ID of the key or account; empty for all. */
  readonly id: string;
  readonly cost_micro_usd: number;
  readonly completions: number;
}

/** Spending of a key family or an account in a month, and money held for completions in flight. */
export interface SpendingRow {
  /** `key:…`, `account:…`, `end_user:…` or `session:…`. */
  readonly subject: string;
  /** The period by `periodAt`: `2026-11`; of an end user also `2026-11-28`, of a session `session`. */
  readonly month: string;
  readonly spent_micro_usd: number;
  readonly held_micro_usd: number;
  /** From then on a row of an end user or a session may be removed; null for a key or an account. */
  readonly kept_until_ms: number | null;
  /** The end user or session, as requests name it; null until its next request where only the digest in `subject` is known. */
  readonly holder_name: string | null;
  /** Its budget in this period in place of the one that its key gives to all. */
  readonly limit_micro_usd: number | null;
}

/** Money that one completion holds of one subject's budget; included in the subject's `held_micro_usd`. */
export interface BudgetHoldRow {
  readonly id: string;
  readonly subject: string;
  readonly month: string;
  readonly amount_micro_usd: number;
  readonly expires_at_ms: number;
  /** Name of its process in `replicas`; null for a hold of an earlier version. */
  readonly replica: string | null;
}

interface RateStateRow {
  readonly subject: string;
  /** JSON; null before the first decision. */
  readonly state: string | null;
  /** From then on the row is equivalent to a missing one. */
  readonly idle_at_ms: number;
}

/** A process and its lease. */
interface ReplicaRow {
  readonly name: string;
  readonly seen_at_ms: number;
}

/** The latest note of a process about upstream models. */
interface HealthNoteRow {
  readonly name: string;
  readonly written_at_ms: number;
  readonly note: string;
}

/** Attempts of one minute or hour at one upstream model that ended alike. */
export interface TargetAttemptsRow {
  /** Length of the minute or the hour. */
  readonly step_ms: number;
  readonly target: string;
  readonly start_ms: number;
  readonly outcome: string;
  readonly attempts: number;
}

/**
 * Latencies of one half hour at one upstream model: the number of attempts in each bucket, named by its upper bound in
 * milliseconds, the last one `more`.
 */
export interface TargetLatenciesRow {
  readonly target: string;
  readonly start_ms: number;
  readonly [firstContent: `first_content_${string}`]: number;
  readonly [duration: `duration_${string}`]: number;
}

/** What a process tells about itself. */
export interface ReplicaStateRow {
  readonly name: string;
  readonly written_at_ms: number;
  /** A `ReplicaState` as JSON. */
  readonly state: string;
}

/** An answer of the Responses API with its conversation. */
export interface SealedRow {
  readonly account_id: string;
  readonly id: string;
  readonly created_at_ms: number;
  /** Length of `content`. */
  readonly bytes: number;
  /** Encrypted, in base64. */
  readonly content: string;
}

/** A key that all processes of the database share. */
interface SecretRow {
  readonly name: string;
  /** In base64. */
  readonly value: string;
}

/** A version of the stored configuration; the one in force has the highest number. */
export interface ConfigurationVersionRow {
  readonly version: number;
  readonly at_ms: number;
  /** The account that made it; null for the command line. */
  readonly actor_id: string | null;
  readonly comment: string;
  /** YAML without credentials; empty for none. */
  readonly document: string;
}

/** The credential of a stored provider. */
export interface ProviderCredentialRow {
  readonly provider: string;
  /** Origin of the only address that it may be sent to. */
  readonly address: string;
  /** A JSON list of API keys, encrypted, in base64. */
  readonly sealed: string;
  readonly keys: number;
  readonly set_at_ms: number;
  /** Null for the command line. */
  readonly set_by: string | null;
}

/** An alert; of those that are not resolved there is one for each rule, subject and period. */
export interface AlertRow {
  readonly id: string;
  readonly rule: string;
  readonly severity: string;
  readonly subject: string;
  readonly period: string;
  /** Its owner; null: for administrators only. */
  readonly account_id: string | null;
  readonly title: string;
  readonly detail: string;
  readonly opened_at_ms: number;
  /** The latest evaluation in which its condition held. */
  readonly seen_at_ms: number;
  readonly resolved_at_ms: number | null;
  readonly acknowledged_at_ms: number | null;
  readonly acknowledged_by: string | null;
  readonly muted_until_ms: number | null;
  readonly muted_by: string | null;
}

/** A channel to which alerts are sent. */
export interface AlertChannelRow {
  readonly id: string;
  readonly kind: string;
  readonly name: string;
  /** For people, without secrets. */
  readonly target: string;
  /** Its address and key, encrypted, in base64. */
  readonly sealed: string;
  readonly created_at_ms: number;
  /** Null for the command line. */
  readonly created_by: string | null;
  /** Those whose alerts are sent to it, as a JSON list; null: all. */
  readonly rules: string | null;
  /** Null: `warning`. */
  readonly least_severity: string | null;
}

/** A message about an alert to one receiver. */
export interface AlertDeliveryRow {
  readonly id: string;
  /** Null for a test. */
  readonly alert_id: string | null;
  readonly kind: string;
  /** Null for an e-mail to an account. */
  readonly channel_id: string | null;
  readonly recipient: string;
  readonly created_at_ms: number;
  readonly attempts: number;
  /** Null when it has ended. */
  readonly next_at_ms: number | null;
  readonly sent_at_ms: number | null;
  readonly problem: string;
}

/** A threshold in JSON, or the time of the latest evaluation. */
interface AlertSettingRow {
  readonly name: string;
  readonly value: string;
}
