import { sql } from "kysely";
import type {
  AttributedBudget,
  AttributedBudgetQuery,
  AttributedBudgetStore,
  BudgetHolders,
} from "../../access/attributed-budgets.ts";
import { subjectOf } from "../../limits/attributed.ts";
import { type Database, inCodeUnits } from "../database.ts";
import type { LedgerCompaction } from "../ledger/ledger-store.ts";
import type { SpendingRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";
import { keptUntil } from "./spending.ts";

interface AttributedBudgetPorts {
  readonly database: Database;
  /** A list reads all end users of its key: completions must not wait for it. */
  readonly reports: Database;
  readonly compaction: LedgerCompaction;
}

/** The AttributedBudgetStore in the database: rows of `spending`. */
export function createAttributedBudgets({
  database,
  reports,
  compaction,
}: AttributedBudgetPorts): AttributedBudgetStore {
  const { query } = database;
  const keyOf = ({ kind, keyFamilyId, period: month }: BudgetHolders, name: string) => {
    return { subject: subjectOf(kind, keyFamilyId, name), month };
  };
  return {
    async list(asked) {
      await compaction.flushed();
      const subject = inCodeUnits(reports, "subject");
      const { after, limit } = asked;
      const matching = matchingOf(reports, asked);
      const next =
        after &&
        sql`and (spent_micro_usd < ${after.spentMicroUsd} or
        (spent_micro_usd = ${after.spentMicroUsd} and ${subject} > ${prefixOf(asked) + after.id}))`;
      const rows = sql<SpendingRow>`select * from spending where ${matching} ${next ?? sql``}
        order by spent_micro_usd desc, ${subject} limit ${limit}`;
      const all = sql<{ count: number }>`select count(*) as count from spending where ${matching}`;
      const found = await retryWhileBusy(() => rows.execute(reports.query));
      const counted = await retryWhileBusy(() => all.execute(reports.query));
      return { budgets: found.rows.map(toBudget), count: counted.rows[0]!.count };
    },

    async find(of, name) {
      await compaction.flushed();
      const { subject, month } = keyOf(of, name);
      const row = query.selectFrom("spending").selectAll().where("subject", "=", subject).where("month", "=", month);
      const found = await retryWhileBusy(() => row.executeTakeFirst());
      return found && toBudget(found);
    },

    async setLimit(of, name, limitMicroUsd) {
      const key = keyOf(of, name);
      const limit_micro_usd = limitMicroUsd ?? null;
      const none = { spent_micro_usd: 0, held_micro_usd: 0 };
      const kept_until_ms = keptUntil(key, await database.nowMs(query));
      const set = query
        .insertInto("spending")
        .values({ ...key, ...none, kept_until_ms, holder_name: name, limit_micro_usd })
        .onConflict((conflict) =>
          conflict.columns(["subject", "month"]).doUpdateSet({ holder_name: name, limit_micro_usd }),
        );
      await retryWhileBusy(() => set.execute());
    },
  };
}

/** Beginning of the subjects, which end with a digest. */
function prefixOf({ kind, keyFamilyId }: BudgetHolders): string {
  return `${kind}:${keyFamilyId}:`;
}

/** The condition for rows of a list, which the index `spending_attributed` has. */
function matchingOf(database: Database, { search, ...of }: AttributedBudgetQuery) {
  const column = inCodeUnits(database, "subject");
  const prefix = prefixOf(of);
  // The character after a colon is a semicolon.
  const holder = sql`kept_until_ms is not null and month = ${of.period}
    and ${column} > ${prefix} and ${column} < ${prefix.slice(0, -1) + ";"}`;
  if (search === "") return holder;
  const pattern = `%${search.toLowerCase().replaceAll(/[\\%_]/g, "\\$&")}%`;
  const subject = subjectOf(of.kind, of.keyFamilyId, search);
  return sql`${holder} and (lower(holder_name) like ${pattern} escape '\\' or subject = ${subject})`;
}

function toBudget(row: SpendingRow): AttributedBudget {
  return {
    id: row.subject.slice(row.subject.lastIndexOf(":") + 1),
    name: row.holder_name ?? undefined,
    spentMicroUsd: row.spent_micro_usd,
    heldMicroUsd: row.held_micro_usd,
    limitMicroUsd: row.limit_micro_usd ?? undefined,
  };
}
