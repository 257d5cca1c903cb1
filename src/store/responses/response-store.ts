import { sql } from "kysely";
import type { Database } from "../database.ts";
import type { KeptResponseRow } from "../schema.ts";
import { retryWhileBusy } from "../store-error.ts";

/** Limits of one account; the oldest responses are removed beyond them. */
export interface KeptLimits {
  readonly responses: number;
  readonly bytes: number;
}

const ACCOUNT_LIMITS: KeptLimits = { responses: 10_000, bytes: 256 * 1024 * 1024 };
/** Share of the limits that stays after a removal, so that not every insertion has to remove something. */
const LEFT = 0.9;
/** Rows of one removal, which must not take too long. */
const MAX_PRUNED = 200;

/** Encrypted answers in the database. */
export interface ResponseStore {
  /** Inserts one, and removes the account's oldest ones beyond its limits. */
  insert(response: Omit<KeptResponseRow, "bytes">, limits?: KeptLimits): Promise<void>;
  /** Its content, unless it is as old as `afterMs`. */
  find(accountId: string, id: string, afterMs: number): Promise<string | undefined>;
  remove(accountId: string, id: string, afterMs: number): Promise<boolean>;
  /** Removes some responses of `beforeMs` and older; returns their number, 0 when there are none left. */
  prune(beforeMs: number): Promise<number>;
}

/** The ResponseStore in the database. */
export function createResponseStore({ query }: Database): ResponseStore {
  /** Removes the oldest responses beyond the limits. */
  const trim = async (accountId: string, { responses, bytes }: KeptLimits): Promise<void> => {
    const sum = query
      .selectFrom("kept_responses")
      .select(({ fn }) => [fn.countAll<number>().as("responses"), fn.sum<number>("bytes").as("bytes")])
      .where("account_id", "=", accountId);
    const held = await retryWhileBusy(() => sum.executeTakeFirstOrThrow());
    if (held.responses <= responses && held.bytes <= bytes) return;
    const removal = sql`delete from kept_responses where account_id = ${accountId} and id in (
      select id from (
        select id,
          row_number() over (order by created_at_ms desc, id) as responses_so_far,
          sum(bytes) over (order by created_at_ms desc, id) as bytes_so_far
        from kept_responses where account_id = ${accountId}
      ) as newest
      where responses_so_far > 1
        and (responses_so_far > ${Math.floor(responses * LEFT)} or bytes_so_far > ${Math.floor(bytes * LEFT)})
    )`;
    await retryWhileBusy(() => removal.execute(query));
  };

  return {
    async insert(response, limits = ACCOUNT_LIMITS) {
      const row = { ...response, bytes: response.content.length };
      await retryWhileBusy(() => query.insertInto("kept_responses").values(row).execute());
      await trim(response.account_id, limits);
    },

    async find(accountId, id, afterMs) {
      const found = query
        .selectFrom("kept_responses")
        .select("content")
        .where("account_id", "=", accountId)
        .where("id", "=", id)
        .where("created_at_ms", ">", afterMs);
      return (await retryWhileBusy(() => found.executeTakeFirst()))?.content;
    },

    async remove(accountId, id, afterMs) {
      const removal = query
        .deleteFrom("kept_responses")
        .where("account_id", "=", accountId)
        .where("id", "=", id)
        .where("created_at_ms", ">", afterMs);
      return (await retryWhileBusy(() => removal.executeTakeFirst())).numDeletedRows === 1n;
    },

    async prune(beforeMs) {
      const removal = sql`delete from kept_responses where (account_id, id) in (
        select account_id, id from kept_responses where created_at_ms <= ${beforeMs} limit ${MAX_PRUNED})`;
      const { numAffectedRows = 0n } = await retryWhileBusy(() => removal.execute(query));
      return Number(numAffectedRows);
    },
  };
}
