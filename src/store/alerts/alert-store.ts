import { type Kysely, sql } from "kysely";
import { type AlertStore, MAX_OPEN, type Openings } from "../../alerts/alert-store.ts";
import type { Thresholds } from "../../alerts/thresholds.ts";
import type { Database } from "../database.ts";
import type { Schema } from "../schema.ts";
import { chunksOf } from "../statements.ts";
import { retryWhileBusy } from "../store-error.ts";
import { toAlert } from "./alert-rows.ts";
import { applyChanges } from "./apply-changes.ts";
import { createChannelRows } from "./channels.ts";
import { createDeliveryRows } from "./deliveries.ts";

/** Name of the row with the time of the latest evaluation. */
const EVALUATED = "evaluated_at_ms";
/** Alerts per removal. */
const MAX_PRUNED = 1_000;
/** Limit of administrators who get messages. */
const MAX_ADMINISTRATORS = 50;

/** The AlertStore in the database. */
export function createAlertStore(database: Database): AlertStore {
  const { query } = database;
  return {
    nowMs: () => retryWhileBusy(() => database.nowMs(query)),

    async claimEvaluation(nowMs, everyMs) {
      const first = query
        .insertInto("alert_settings")
        .values({ name: EVALUATED, value: "0" })
        .onConflict((on) => on.doNothing());
      await retryWhileBusy(() => first.execute());
      // Later times are from before the clock was set back.
      const claim = sql`update alert_settings set value = ${String(nowMs)}
        where name = ${EVALUATED} and cast(value as bigint) not between ${nowMs - everyMs + 1} and ${nowMs + everyMs}`;
      const { numAffectedRows } = await retryWhileBusy(() => claim.execute(query));
      return numAffectedRows === 1n;
    },

    async open() {
      const rows = query.selectFrom("alerts").selectAll().where("resolved_at_ms", "is", null).limit(MAX_OPEN);
      return (await retryWhileBusy(() => rows.execute())).map(toAlert);
    },

    async openings(accountIds, sinceMs) {
      const found = new Map<string, Openings>();
      for (const chunk of chunksOf(accountIds)) {
        const rows = query
          .selectFrom("accounts")
          .leftJoin("alerts", (join) =>
            join
              .onRef("alerts.account_id", "=", "accounts.id")
              .on("opened_at_ms", ">=", sinceMs)
              .on("rule", "<>", "more_alerts"),
          )
          .select(({ fn }) => ["accounts.id", "accounts.name", fn.count<number>("alerts.id").as("count")])
          .where("accounts.id", "in", chunk)
          .groupBy(["accounts.id", "accounts.name"]);
        for (const { id, name, count } of await retryWhileBusy(() => rows.execute())) found.set(id, { name, count });
      }
      return found;
    },

    apply: (changes) => database.transaction((transaction) => applyChanges(transaction, changes)),

    async list({ accountIds, isOpen, limit, before }) {
      let found = query
        .selectFrom("alerts")
        .selectAll()
        .where("resolved_at_ms", isOpen ? "is" : "is not", null)
        .orderBy("opened_at_ms", "desc")
        .orderBy("id", "desc")
        .limit(limit);
      if (accountIds !== undefined) found = found.where("account_id", "in", [...accountIds]);
      if (before !== undefined)
        found = found.where((where) =>
          where(where.refTuple("opened_at_ms", "id"), "<", where.tuple(before.openedAtMs, before.id)),
        );
      return (await retryWhileBusy(() => found.execute())).map(toAlert);
    },

    async find(id) {
      const found = query.selectFrom("alerts").selectAll().where("id", "=", id);
      const row = await retryWhileBusy(() => found.executeTakeFirst());
      return row && toAlert(row);
    },

    async countActive({ accountIds, nowMs }) {
      let count = query
        .selectFrom("alerts")
        .select(({ fn }) => fn.countAll<number>().as("count"))
        .where("resolved_at_ms", "is", null)
        .where("acknowledged_at_ms", "is", null)
        .where((where) => where.or([where("muted_until_ms", "is", null), where("muted_until_ms", "<=", nowMs)]));
      if (accountIds !== undefined) count = count.where("account_id", "in", [...accountIds]);
      return (await retryWhileBusy(() => count.executeTakeFirstOrThrow())).count;
    },

    async acknowledge(id, { accountId, atMs }) {
      const change = query
        .updateTable("alerts")
        .set({ acknowledged_at_ms: atMs, acknowledged_by: accountId })
        .where("id", "=", id)
        .where("resolved_at_ms", "is", null)
        .where("acknowledged_at_ms", "is", null);
      return (await retryWhileBusy(() => change.executeTakeFirst())).numUpdatedRows === 1n;
    },

    mute: (id, { accountId, untilMs }) =>
      database.transaction(async (transaction) => {
        const alert = transaction.selectFrom("alerts").select(["rule", "subject"]).where("id", "=", id);
        const { rule, subject } = await alert.executeTakeFirstOrThrow();
        const isSame = <Q extends { where(column: "rule" | "subject", is: "=", value: string): Q }>(of: Q): Q =>
          of.where("rule", "=", rule).where("subject", "=", subject);
        // Earlier alerts of the same rule and subject, too: their mutes would go on.
        await isSame(transaction.updateTable("alerts").set({ muted_until_ms: null, muted_by: null }))
          .where("muted_until_ms", "is not", null)
          .execute();
        if (untilMs === undefined) return;
        const mute = { muted_until_ms: untilMs, muted_by: accountId };
        await transaction.updateTable("alerts").set(mute).where("id", "=", id).execute();
        const muted = isSame(transaction.selectFrom("alerts").select("id"));
        await transaction
          .updateTable("alert_deliveries")
          .set({ next_at_ms: null, problem: "The alert was muted." })
          .where("next_at_ms", "is not", null)
          .where("alert_id", "in", muted)
          .execute();
      }),

    async addresses(accountIds) {
      const enabled = query
        .selectFrom("accounts")
        .select(["id", "email"])
        .where("disabled_at_ms", "is", null)
        .where("email", "is not", null);
      const all = await retryWhileBusy(() =>
        enabled.where("role", "=", "administrator").orderBy("created_at_ms").limit(MAX_ADMINISTRATORS).execute(),
      );
      const owners =
        accountIds.length === 0
          ? []
          : await retryWhileBusy(() => enabled.where("id", "in", [...new Set(accountIds)]).execute());
      return {
        administrators: all.map(({ email }) => email!),
        owners: new Map(owners.map(({ id, email }) => [id, email!])),
      };
    },

    ...createDeliveryRows(database),
    ...createChannelRows(database),

    thresholds: () => retryWhileBusy(() => readThresholds(query)),

    setThresholds: (values) =>
      database.transaction(async (transaction) => {
        const names = Object.keys(values).map(rowOf);
        if (names.length === 0) return;
        await transaction.deleteFrom("alert_settings").where("name", "in", names).execute();
        for (const [name, value] of Object.entries(values))
          if (value !== undefined)
            await transaction
              .insertInto("alert_settings")
              .values({ name: rowOf(name), value: JSON.stringify(value) })
              .execute();
      }),

    prune: (beforeMs) =>
      database.transaction(async (transaction) => {
        const old = await transaction
          .selectFrom("alerts")
          .select("id")
          .where("resolved_at_ms", "<", beforeMs)
          .limit(MAX_PRUNED)
          .execute();
        const tests = transaction.deleteFrom("alert_deliveries").where("alert_id", "is", null);
        await tests.where("created_at_ms", "<", beforeMs).execute();
        if (old.length === 0) return 0;
        const ids = old.map(({ id }) => id);
        await transaction.deleteFrom("alert_deliveries").where("alert_id", "in", ids).execute();
        await transaction.deleteFrom("alerts").where("id", "in", ids).execute();
        return ids.length;
      }),
  };
}

const PREFIX = "threshold.";
const rowOf = (name: string): string => `${PREFIX}${name}`;

async function readThresholds(query: Kysely<Schema>): Promise<Partial<Thresholds>> {
  const rows = await query.selectFrom("alert_settings").selectAll().execute();
  const own = rows.filter(({ name }) => name.startsWith(PREFIX));
  return Object.fromEntries(own.map(({ name, value }) => [name.slice(PREFIX.length), JSON.parse(value) as unknown]));
}
