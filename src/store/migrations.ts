import { type ColumnDataType, type Kysely, sql } from "kysely";
import { administrationKeys } from "./migrations/administration-keys.ts";
import { alerts } from "./migrations/alerts.ts";
import { audit } from "./migrations/audit.ts";
import { identities } from "./migrations/identities.ts";
import { monthlyPartitions } from "./migrations/monthly-partitions.ts";
import { refusals } from "./migrations/refusals.ts";
import { roles } from "./migrations/roles.ts";
import { secondFactors } from "./migrations/second-factors.ts";
import { targetHistory } from "./migrations/target-history.ts";
import { targetLatencies } from "./migrations/target-latencies.ts";
import { teams } from "./migrations/teams.ts";

/** One migration. A released migration is never changed: a new one follows it. */
export interface Migration {
  /** Description for people. */
  readonly name: string;
  /**
   * The oldest version that a program has to know to use the database afterwards, for a migration that takes away what earlier
   * programs use: the number of a migration of an earlier release. Its own number: all processes have to end for it. Default: programs
   * of the release before can use it.
   */
  readonly usableFrom?: number;
  /** Runs in a transaction, on either database. */
  up(database: Kysely<unknown>, kind: "sqlite" | "postgres"): Promise<void>;
}

const keys: Migration = {
  name: "accounts and API keys",
  async up(database) {
    const { schema } = database;
    await schema
      .createTable("accounts")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema
      .createTable("api_keys")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("hash", "text", (column) => column.notNull().unique())
      .addColumn("display", "text", (column) => column.notNull())
      .addColumn("models", "text")
      .addColumn("capabilities", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("expires_at_ms", "bigint")
      .addColumn("revoked_at_ms", "bigint")
      .addColumn("replaced_by", "text")
      .execute();
    await (database as Kysely<FirstTables>)
      .insertInto("accounts")
      .values({ id: "acct_default", name: "Default", created_at_ms: Date.now() })
      .execute();
  },
};

/** The tables as of this first migration. */
interface FirstTables {
  readonly accounts: { readonly id: string; readonly name: string; readonly created_at_ms: number };
}

const LIMITS = ["requests_per_minute", "tokens_per_minute", "concurrent_requests", "monthly_budget_micro_usd"] as const;

const accounts: Migration = {
  name: "people who sign in, and limits of keys and accounts",
  async up(database) {
    const { schema } = database;
    for (const limit of LIMITS) {
      await addColumn(database, "accounts", [limit, "bigint"]);
      await addColumn(database, "api_keys", [limit, "bigint"]);
    }
    await addColumn(database, "api_keys", ["last_used_at_ms", "bigint"]);
    // Null for a key that is not from a rotation.
    await addColumn(database, "api_keys", ["line_id", "text"]);
    await schema.createIndex("api_keys_account").on("api_keys").column("account_id").execute();

    await addColumn(database, "accounts", ["email", "text"]);
    await schema
      .alterTable("accounts")
      .addColumn("role", "text", (column) => column.notNull().defaultTo("member"))
      .execute();
    await addColumn(database, "accounts", ["password_hash", "text"]);
    await addColumn(database, "accounts", ["disabled_at_ms", "bigint"]);
    await schema.createIndex("accounts_email").unique().on("accounts").column("email").execute();

    await schema
      .createTable("sessions")
      .addColumn("hash", "text", (column) => column.primaryKey())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("last_seen_at_ms", "bigint", (column) => column.notNull())
      .addColumn("authenticated_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema.createIndex("sessions_account").on("sessions").column("account_id").execute();

    await schema
      .createTable("invitations")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("hash", "text", (column) => column.notNull().unique())
      .addColumn("email", "text")
      .addColumn("role", "text", (column) => column.notNull())
      .addColumn("created_by", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .addColumn("used_at_ms", "bigint")
      .execute();

    await schema
      .createTable("throttles")
      .addColumn("subject", "text", (column) => column.primaryKey())
      .addColumn("count", "bigint", (column) => column.notNull())
      .addColumn("blocked_until_ms", "bigint", (column) => column.notNull())
      .addColumn("changed_at_ms", "bigint", (column) => column.notNull())
      .execute();

    await schema
      .createTable("security_events")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("at_ms", "bigint", (column) => column.notNull())
      .addColumn("type", "text", (column) => column.notNull())
      .addColumn("actor_id", "text")
      .addColumn("account_id", "text")
      .addColumn("network", "text")
      .addColumn("details", "text", (column) => column.notNull())
      .execute();
    await schema.createIndex("security_events_time").on("security_events").column("at_ms").execute();
    const byAccount = schema.createIndex("security_events_account").on("security_events");
    await byAccount.columns(["account_id", "at_ms"]).execute();
  },
};

/** Adds one column: SQLite adds only one per statement. */
async function addColumn(
  { schema }: Kysely<unknown>,
  table: string,
  [name, type]: readonly [string, ColumnDataType],
): Promise<void> {
  await schema.alterTable(table).addColumn(name, type).execute();
}

const ledger: Migration = {
  name: "the ledger, what months have spent, and what budgets hold",
  async up({ schema }) {
    // No references: an entry is written even if its key or account no longer exists.
    await schema
      .createTable("completions")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("request_id", "text", (column) => column.notNull())
      .addColumn("account_id", "text", (column) => column.notNull())
      .addColumn("key_id", "text", (column) => column.notNull())
      .addColumn("entrance", "text", (column) => column.notNull())
      .addColumn("started_at_ms", "bigint", (column) => column.notNull())
      .addColumn("ended_at_ms", "bigint", (column) => column.notNull())
      .addColumn("requested_model", "text", (column) => column.notNull())
      .addColumn("served_model", "text")
      .addColumn("streamed", "integer", (column) => column.notNull())
      .addColumn("outcome", "text", (column) => column.notNull())
      .addColumn("attempts", "text", (column) => column.notNull())
      .addColumn("prompt_tokens", "bigint", (column) => column.notNull())
      .addColumn("cached_tokens", "bigint", (column) => column.notNull())
      .addColumn("completion_tokens", "bigint", (column) => column.notNull())
      .addColumn("reasoning_tokens", "bigint", (column) => column.notNull())
      .addColumn("image_tokens", "bigint", (column) => column.notNull())
      .addColumn("cost_micro_usd", "bigint", (column) => column.notNull())
      .addColumn("duration_ms", "double precision", (column) => column.notNull())
      .addColumn("first_content_ms", "double precision")
      .addColumn("partial", "integer", (column) => column.notNull())
      .addColumn("estimated", "integer", (column) => column.notNull())
      .execute();
    await schema.createIndex("completions_time").on("completions").column("started_at_ms").execute();
    const byAccount = schema.createIndex("completions_account").on("completions");
    await byAccount.columns(["account_id", "started_at_ms"]).execute();
    const byKey = schema.createIndex("completions_key").on("completions");
    await byKey.columns(["key_id", "started_at_ms"]).execute();

    await schema
      .createTable("spending")
      .addColumn("subject", "text", (column) => column.notNull())
      .addColumn("month", "text", (column) => column.notNull())
      .addColumn("spent_micro_usd", "bigint", (column) => column.notNull())
      .addColumn("held_micro_usd", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("spending_primary", ["subject", "month"])
      .execute();

    await schema
      .createTable("budget_holds")
      .addColumn("id", "text", (column) => column.notNull())
      .addColumn("subject", "text", (column) => column.notNull())
      .addColumn("month", "text", (column) => column.notNull())
      .addColumn("amount_micro_usd", "bigint", (column) => column.notNull())
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("budget_holds_primary", ["id", "subject"])
      .execute();
    await schema.createIndex("budget_holds_expiry").on("budget_holds").column("expires_at_ms").execute();
  },
};

const rates: Migration = {
  name: "rates and concurrency that replicas share",
  async up({ schema }) {
    await schema
      .createTable("rate_states")
      .addColumn("subject", "text", (column) => column.primaryKey())
      .addColumn("state", "text")
      .addColumn("idle_at_ms", "bigint", (column) => column.notNull())
      .execute();
    await schema.createIndex("rate_states_idle").on("rate_states").column("idle_at_ms").execute();
    await schema
      .createTable("replicas")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("seen_at_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};

const LIMIT_COLUMNS = ["request_limit", "token_limit"] as const;

const requests: Migration = {
  name: "the log of requests by when they ended, with their limits at that moment",
  async up({ schema }) {
    for (const limit of LIMIT_COLUMNS) {
      for (const column of [limit, `${limit}_remaining`, `${limit}_reset_ms`]) {
        await schema.alterTable("completions").addColumn(column, "bigint").execute();
      }
    }
    for (const index of ["completions_time", "completions_account", "completions_key"]) {
      await schema.dropIndex(index).execute();
    }
    // Each index costs time on every completion. The few entries of one millisecond are sorted by ID at query time.
    await schema.createIndex("completions_end").on("completions").column("ended_at_ms").execute();
    const byAccount = schema.createIndex("completions_account_end").on("completions");
    await byAccount.columns(["account_id", "ended_at_ms"]).execute();
    const byKey = schema.createIndex("completions_key_end").on("completions");
    await byKey.columns(["key_id", "ended_at_ms"]).execute();
    const byRequest = schema.createIndex("completions_request").on("completions");
    await byRequest.columns(["request_id", "ended_at_ms"]).execute();
  },
};

export const usage: Migration = {
  name: "sums of usage by the hour",
  async up(database) {
    const { schema } = database;
    await schema
      .createTable("usage_hours")
      .addColumn("hour_ms", "bigint", (column) => column.notNull())
      .addColumn("account_id", "text", (column) => column.notNull())
      .addColumn("key_id", "text", (column) => column.notNull())
      .addColumn("model", "text", (column) => column.notNull())
      .addColumn("outcome", "text", (column) => column.notNull())
      .addColumn("completions", "bigint", (column) => column.notNull())
      .addColumn("partial", "bigint", (column) => column.notNull())
      .addColumn("estimated", "bigint", (column) => column.notNull())
      .addColumn("prompt_tokens", "bigint", (column) => column.notNull())
      .addColumn("cached_tokens", "bigint", (column) => column.notNull())
      .addColumn("completion_tokens", "bigint", (column) => column.notNull())
      .addColumn("reasoning_tokens", "bigint", (column) => column.notNull())
      .addColumn("image_tokens", "bigint", (column) => column.notNull())
      .addColumn("cost_micro_usd", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("usage_hours_primary", ["hour_ms", "account_id", "key_id", "model", "outcome"])
      .execute();
    const byAccount = schema.createIndex("usage_hours_account").on("usage_hours");
    await byAccount.columns(["account_id", "hour_ms"]).execute();
    const byKey = schema.createIndex("usage_hours_key").on("usage_hours");
    await byKey.columns(["key_id", "hour_ms"]).execute();
    // A copy of the summing rule at the time of this migration; later changes of the rule must not affect it.
    await sql`insert into usage_hours
      select started_at_ms - started_at_ms % 3600000, account_id, key_id,
        substr(coalesce(served_model, requested_model), 1, 500), outcome,
        count(*), sum(partial), sum(estimated), sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens),
        sum(reasoning_tokens), sum(image_tokens), sum(cost_micro_usd)
      from completions group by 1, 2, 3, 4, 5`.execute(database);
  },
};

const sessions: Migration = {
  name: "where sessions began, and lists of keys and accounts in pages",
  async up({ schema }) {
    await schema.alterTable("sessions").addColumn("network", "text").execute();
    await schema.alterTable("sessions").addColumn("browser", "text").execute();
    await schema.createIndex("api_keys_created").on("api_keys").columns(["created_at_ms", "id"]).execute();
    await schema.createIndex("accounts_created").on("accounts").columns(["created_at_ms", "id"]).execute();
  },
};

const segments: Migration = {
  name: "entries of the ledger that are durable and not in its tables yet",
  async up({ schema }) {
    await schema
      .createTable("ledger_segments")
      .addColumn("id", "integer", (column) => column.primaryKey())
      .addColumn("entries", "text", (column) => column.notNull())
      .execute();
  },
};

const segmentNumbers: Migration = {
  name: "numbers for the ledger's segments in PostgreSQL",
  async up(database, kind) {
    // SQLite numbers the rows of such a table automatically.
    if (kind === "sqlite") return;
    await sql`alter table ledger_segments alter column id type bigint`.execute(database);
    await sql`alter table ledger_segments alter column id add generated by default as identity`.execute(database);
  },
};

const browsers: Migration = {
  name: "browsers in which accounts have signed in, and tokens for the first administrator",
  async up({ schema }) {
    await schema
      .createTable("known_browsers")
      .addColumn("hash", "text", (column) => column.notNull())
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id"))
      .addColumn("signed_in_at_ms", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("known_browsers_key", ["hash", "account_id"])
      .execute();
    await schema.createIndex("known_browsers_account").on("known_browsers").column("account_id").execute();
    await schema
      .createTable("setup_tokens")
      .addColumn("hash", "text", (column) => column.primaryKey())
      .addColumn("expires_at_ms", "bigint", (column) => column.notNull())
      .execute();
  },
};

const limitedKeys: Migration = {
  name: "keys that an administrator has limited",
  async up({ schema }) {
    // The creators of existing keys are unknown: their members may still change them.
    await schema
      .alterTable("api_keys")
      .addColumn("limited_by_administrator", "integer", (column) => column.notNull().defaultTo(0))
      .execute();
    await schema.createIndex("api_keys_line").on("api_keys").column("line_id").execute();
  },
};

const options: Migration = {
  name: "provider options of keys",
  async up({ schema }) {
    await schema.alterTable("api_keys").addColumn("options", "text").execute();
  },
};

const embeddings: Migration = {
  name: "embeddings for keys with all capabilities",
  async up(database) {
    // The capabilities of earlier versions, in either order. Keys with fewer are restricted and stay so.
    await sql`update api_keys set capabilities = '["chat","images","embeddings"]'
      where capabilities in ('["chat","images"]', '["images","chat"]')`.execute(database);
  },
};

const keptResponses: Migration = {
  name: "answers of the Responses API that are kept",
  async up({ schema }) {
    await schema
      .createTable("kept_responses")
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("id", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("bytes", "bigint", (column) => column.notNull())
      .addColumn("content", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("kept_responses_primary", ["account_id", "id"])
      .execute();
    const byAge = schema.createIndex("kept_responses_account_age").on("kept_responses");
    await byAge.columns(["account_id", "created_at_ms", "id", "bytes"]).execute();
    await schema.createIndex("kept_responses_age").on("kept_responses").column("created_at_ms").execute();
  },
};

const otherCounts: Migration = {
  name: "further counts of providers",
  async up(database) {
    await addColumn(database, "completions", ["other_counts", "text"]);
  },
};

const labels: Migration = {
  name: "labels that keys require, and their tags",
  async up(database) {
    await addColumn(database, "api_keys", ["required_labels", "text"]);
    await addColumn(database, "api_keys", ["tags", "text"]);
  },
};

const healthNotes: Migration = {
  name: "notes of replicas about upstream models",
  async up({ schema }) {
    await schema
      .createTable("health_notes")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("written_at_ms", "bigint", (column) => column.notNull())
      .addColumn("note", "text", (column) => column.notNull())
      .execute();
  },
};

const secrets: Migration = {
  name: "secrets that all processes share",
  async up(database) {
    await database.schema
      .createTable("secrets")
      .addColumn("name", "text", (column) => column.primaryKey())
      .addColumn("value", "text", (column) => column.notNull())
      .execute();
  },
};

const accountRouting: Migration = {
  name: "accounts' own credentials and aliases",
  async up(database) {
    await addColumn(database, "accounts", ["credentials", "text"]);
    await addColumn(database, "accounts", ["aliases", "text"]);
    for (const table of ["completions", "usage_hours"])
      await database.schema
        .alterTable(table)
        .addColumn("own_cost_micro_usd", "bigint", (column) => column.notNull().defaultTo(0))
        .execute();
  },
};

const begunCompletions: Migration = {
  name: "completions in flight, and the processes that hold money",
  async up(database) {
    await database.schema
      .createTable("begun_completions")
      .addColumn("id", "text", (column) => column.primaryKey())
      .addColumn("replica", "text", (column) => column.notNull())
      .addColumn("entry", "text", (column) => column.notNull())
      .execute();
    await addColumn(database, "budget_holds", ["replica", "text"]);
  },
};

const spendingMonth: Migration = {
  name: "the month of spending of entries that may be replaced",
  up: (database) => addColumn(database, "completions", ["spending_month", "text"]),
};

const securityEventsByType: Migration = {
  name: "security events of an account by type",
  async up({ schema }) {
    const byType = schema.createIndex("security_events_type").on("security_events");
    await byType.columns(["account_id", "type", "at_ms"]).execute();
  },
};

const usageLeaders: Migration = {
  name: "the keys and accounts of the largest cost of each day",
  async up({ schema }) {
    await schema
      .createTable("usage_leaders")
      .addColumn("day_ms", "bigint", (column) => column.notNull())
      .addColumn("kind", "text", (column) => column.notNull())
      .addColumn("id", "text", (column) => column.notNull())
      .addColumn("cost_micro_usd", "bigint", (column) => column.notNull())
      .addColumn("completions", "bigint", (column) => column.notNull())
      .addPrimaryKeyConstraint("usage_leaders_primary", ["day_ms", "kind", "id"])
      .execute();
  },
};

const storedConfiguration: Migration = {
  name: "versions of the stored configuration, and credentials of its providers",
  async up({ schema }) {
    await schema
      .createTable("configuration_versions")
      .addColumn("version", "integer", (column) => column.primaryKey())
      .addColumn("at_ms", "bigint", (column) => column.notNull())
      .addColumn("actor_id", "text")
      .addColumn("comment", "text", (column) => column.notNull())
      .addColumn("document", "text", (column) => column.notNull())
      .execute();
    await schema
      .createTable("provider_credentials")
      .addColumn("provider", "text", (column) => column.primaryKey())
      .addColumn("address", "text", (column) => column.notNull())
      .addColumn("sealed", "text", (column) => column.notNull())
      .addColumn("keys", "integer", (column) => column.notNull())
      .addColumn("set_at_ms", "bigint", (column) => column.notNull())
      .addColumn("set_by", "text")
      .execute();
  },
};

const entryDetails: Migration = {
  name: "details of the ledger's entries",
  up: (database) => addColumn(database, "completions", ["details", "text"]),
};

const savedFilters: Migration = {
  name: "saved filters of the page of requests",
  async up({ schema }) {
    await schema
      .createTable("saved_filters")
      .addColumn("account_id", "text", (column) => column.notNull())
      .addColumn("name", "text", (column) => column.notNull())
      .addColumn("query", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("saved_filters_primary", ["account_id", "name"])
      .execute();
  },
};

const attribution: Migration = {
  name: "attribution of completions, and stops of sessions and end users",
  async up(database) {
    for (const column of ["end_user", "session", "agent", "tags"])
      await addColumn(database, "completions", [column, "text"]);
    await addColumn(database, "accounts", ["stops", "text"]);
  },
};

const attributionLimits: Migration = {
  name: "limits of end users and sessions, and how long their spending is kept",
  async up(database) {
    await addColumn(database, "api_keys", ["attribution_limits", "text"]);
    await addColumn(database, "spending", ["kept_until_ms", "bigint"]);
    const byEnd = database.schema.createIndex("spending_kept_until").on("spending").column("kept_until_ms");
    // Rows of keys and accounts are not in it.
    await byEnd.where(sql.ref("kept_until_ms"), "is not", null).execute();
  },
};

const contents: Migration = {
  name: "prompts and answers of keys that store them",
  async up(database) {
    await addColumn(database, "api_keys", ["stores_content", "integer"]);
    const { schema } = database;
    await schema
      .createTable("completion_contents")
      .addColumn("account_id", "text", (column) => column.notNull().references("accounts.id").onDelete("cascade"))
      .addColumn("id", "text", (column) => column.notNull())
      .addColumn("created_at_ms", "bigint", (column) => column.notNull())
      .addColumn("bytes", "bigint", (column) => column.notNull())
      .addColumn("content", "text", (column) => column.notNull())
      .addPrimaryKeyConstraint("completion_contents_primary", ["account_id", "id"])
      .execute();
    const byAge = schema.createIndex("completion_contents_age").on("completion_contents");
    await byAge.column("created_at_ms").execute();
  },
};

const channelFilters: Migration = {
  name: "filters of alert channels",
  async up(database) {
    await addColumn(database, "alert_channels", ["rules", "text"]);
    await addColumn(database, "alert_channels", ["least_severity", "text"]);
  },
};

const attributedBudgets: Migration = {
  name: "names and own budgets of end users and sessions",
  async up(database, kind) {
    await addColumn(database, "spending", ["holder_name", "text"]);
    await addColumn(database, "spending", ["limit_micro_usd", "bigint"]);
    // For lists of a key's end users in a period, whose subjects begin alike. Rows of keys and accounts are not in it.
    const subject = sql.raw(kind === "postgres" ? `subject collate "C"` : "subject");
    await sql`create index spending_attributed on spending (month, ${subject}) where kept_until_ms is not null`.execute(
      database,
    );
  },
};

const invitedMembers: Migration = {
  name: "teams of invited people",
  async up(database) {
    await addColumn(database, "invitations", ["team_id", "text"]);
    await addColumn(database, "invitations", ["team_role", "text"]);
  },
};

const keysByAccount: Migration = {
  name: "keys of an account by the time of their creation",
  async up({ schema }) {
    const byAccount = schema.createIndex("api_keys_account_created").on("api_keys");
    await byAccount.columns(["account_id", "created_at_ms", "id"]).execute();
  },
};

const workingKeys: Migration = {
  name: "indexes of keys that are not revoked",
  async up({ schema }) {
    // An account or a family may have hundreds of thousands of keys that have ended.
    for (const owner of ["account_id", "line_id"]) {
      const index = schema.createIndex(`api_keys_${owner}_working`).on("api_keys").columns([owner, "expires_at_ms"]);
      await index.where("revoked_at_ms", "is", null).execute();
    }
  },
};

/** In order; a database's version is the number of applied migrations. */
export const MIGRATIONS: readonly Migration[] = [
  keys,
  accounts,
  ledger,
  rates,
  requests,
  usage,
  sessions,
  segments,
  segmentNumbers,
  browsers,
  limitedKeys,
  options,
  embeddings,
  keptResponses,
  otherCounts,
  labels,
  healthNotes,
  secrets,
  accountRouting,
  begunCompletions,
  spendingMonth,
  securityEventsByType,
  monthlyPartitions,
  usageLeaders,
  storedConfiguration,
  refusals,
  roles,
  teams,
  entryDetails,
  savedFilters,
  alerts,
  identities,
  audit,
  attribution,
  administrationKeys,
  secondFactors,
  attributionLimits,
  contents,
  channelFilters,
  attributedBudgets,
  invitedMembers,
  targetHistory,
  targetLatencies,
  keysByAccount,
  workingKeys,
];
