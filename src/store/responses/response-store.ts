import { sql } from "kysely";
import type { Database } from "../database.ts";
import type { SealedRow } from "../schema.ts";
import { createSealedRows, type SealedRows } from "../sealed-rows.ts";
import { retryWhileBusy } from "../store-error.ts";

/** Limits of one account; the oldest responses are removed beyond them. */
interface KeptLimits {
  readonly responses: number;
  readonly bytes: number;
}

const ACCOUNT_LIMITS: KeptLimits = { responses: 10_000, bytes: 256 * 1024 * 1024 };
/** Share of the limits that stays after a removal, so that not every insertion has to remove something. */
const LEFT = 0.9;

/** Encrypted answers in the database. */
export interface ResponseStore extends SealedRows {
  /** Inserts a response, and removes the account's oldest ones beyond its limits. */
  insert(response: Omit<SealedRow, "bytes">, limits?: KeptLimits): Promise<void>;
}

/** The ResponseStore in the database. */
export function createResponseStore(database: Database): ResponseStore {
  const { query } = database;
  const rows = createSealedRows(database, "kept_responses");
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
    ...rows,
    async insert(response, limits = ACCOUNT_LIMITS) {
      await rows.insert(response);
      await trim(response.account_id, limits);
    },
  };
}
