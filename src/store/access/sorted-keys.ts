import { type RawBuilder, sql } from "kysely";
import {
  type KeyOrder,
  type KeyPosition,
  PAGE_BYTES,
  SORTED_KEYS,
  type SortedKeys,
  type SortedKeysQuery,
} from "../../access/key-store.ts";
import type { Database } from "../database.ts";
import { retryWhileBusy } from "../store-error.ts";

/** Bytes of a key's lists. Unlike their length in characters, SQLite knows them without reading the lists. */
export const LIST_BYTES = sql<number>`coalesce(octet_length(models), 0) + coalesce(octet_length(tags), 0) + coalesce(octet_length(required_labels), 0)`;

interface SortedIds extends Omit<SortedKeys, "keys"> {
  readonly ids: readonly string[];
}

interface SortedRow {
  readonly id: string;
  readonly created_at_ms: number;
  readonly sorted_by: number | string | null;
  readonly bytes: number;
}

/** Finds the keys of a page in its order. Only the time of creation has an index, so a bounded number of keys is sorted. */
export async function sortedKeyIds(
  database: Database,
  wanted: SortedKeysQuery,
  { window = SORTED_KEYS }: { readonly window?: number } = {},
): Promise<SortedIds> {
  const newestOmitted = latestOf(database, wanted).offset(window);
  // On each page: `after` of later ones is the caller's.
  const omitted = await retryWhileBusy(() => newestOmitted.executeTakeFirst());
  const page = sortedPage(database, wanted, omitted);
  const { rows: found } = await retryWhileBusy(() => page.execute(database.query));
  let bytes = 0;
  const rows = found.slice(0, wanted.limit).filter((row) => {
    const before = bytes;
    bytes += row.bytes;
    return before < PAGE_BYTES;
  });
  const last = rows.length < found.length ? rows.at(-1) : undefined;
  return {
    ids: rows.map(({ id }) => id),
    next: last && { value: last.sorted_by, createdAtMs: last.created_at_ms, id: last.id },
    omittedUntilMs: omitted?.created_at_ms,
  };
}

type Creation = Pick<SortedRow, "id" | "created_at_ms">;

/** The key of the owners that was made last. */
function latestOf({ query }: Database, { accountIds }: Pick<SortedKeysQuery, "accountIds">) {
  const keys = query
    .selectFrom("api_keys")
    .select(["created_at_ms", "id"])
    .orderBy("created_at_ms", "desc")
    .orderBy("id", "desc")
    .limit(1);
  return accountIds === undefined ? keys : keys.where("account_id", "in", accountIds);
}

/** Query of one page, plus one row that shows whether another page follows. */
function sortedPage(database: Database, wanted: SortedKeysQuery, omitted: Creation | undefined) {
  const { order, isDescending, after, limit, month } = wanted;
  const direction = isDescending ? sql`desc` : sql`asc`;
  const { value, isNullable } = valueOf(database, order);
  const spending = sql`left join spending on subject = 'key:' || coalesce(line_id, id) and month = ${month}`;
  const conditions = [
    ...filterOf(database, wanted),
    ...(omitted === undefined ? [] : [isBeyond({ createdAtMs: omitted.created_at_ms, id: omitted.id }, false)]),
    ...(after === undefined ? [] : [follows(after, { value, isNullable, isDescending })]),
  ];
  return sql<SortedRow>`
    select id, created_at_ms, ${value} as sorted_by, ${LIST_BYTES} as bytes
    from api_keys ${order === "spent" ? spending : sql``}
    ${conditions.length === 0 ? sql`` : sql`where ${sql.join(conditions, sql` and `)}`}
    order by ${value} ${direction} ${isNullable ? sql`nulls last` : sql``}, created_at_ms ${direction}, id ${direction}
    limit ${limit + 1}`;
}

interface Value {
  readonly value: RawBuilder<unknown>;
  readonly isNullable: boolean;
}

function valueOf(database: Database, order: KeyOrder): Value {
  switch (order) {
    case "created":
      return { value: sql`created_at_ms`, isNullable: false };
    case "name":
      return { value: inLowerCase(database, sql`name`), isNullable: false };
    case "spent":
      return { value: sql`coalesce(spent_micro_usd, 0)`, isNullable: false };
    case "lastUse":
      return { value: sql`last_used_at_ms`, isNullable: true };
    case "budget":
      return { value: sql`monthly_budget_micro_usd`, isNullable: true };
    case "expiry":
      return { value: sql`expires_at_ms`, isNullable: true };
  }
}

/** A text with small ASCII letters, compared by code units. */
function inLowerCase({ kind }: Pick<Database, "kind">, text: RawBuilder<unknown>): RawBuilder<unknown> {
  return kind === "postgres" ? sql`lower((${text}) collate "C")` : sql`lower(${text})`;
}

function filterOf(database: Database, { accountIds, isWorking, words = [], modelId, nowMs }: SortedKeysQuery) {
  const contains = (text: RawBuilder<unknown>, part: string): RawBuilder<unknown> =>
    database.kind === "postgres" ? sql`strpos(${text}, ${part}) > 0` : sql`instr(${text}, ${part}) > 0`;
  const owner = sql`(select accounts.name from accounts where accounts.id = account_id)`;
  const found = inLowerCase(database, sql`name || ' ' || display || ' ' || ${owner}`);
  const works = sql`(revoked_at_ms is null and (expires_at_ms is null or expires_at_ms > ${nowMs}))`;
  return [
    accountIds === undefined ? [] : sql`account_id in (${sql.join(accountIds)})`,
    isWorking === undefined ? [] : isWorking ? works : sql`not ${works}`,
    words.map((word) =>
      contains(
        found,
        word.replaceAll(/[A-Z]/g, (letter) => letter.toLowerCase()),
      ),
    ),
    // A JSON list of texts has a text in quotation marks nowhere else.
    modelId === undefined ? [] : sql`(models is null or ${contains(sql`models`, JSON.stringify(modelId))})`,
  ].flat();
}

/** Whether a key comes after a position. */
function follows(
  { value: at, createdAtMs, id }: KeyPosition,
  { value, isNullable, isDescending }: Value & Pick<SortedKeysQuery, "isDescending">,
): RawBuilder<unknown> {
  const sameValue = isBeyond({ createdAtMs, id }, isDescending);
  if (at === null) return sql`(${value} is null and ${sameValue})`;
  const beyond = isDescending ? sql`${value} < ${at}` : sql`${value} > ${at}`;
  return sql`(${beyond} or (${value} = ${at} and ${sameValue}) ${isNullable ? sql`or ${value} is null` : sql``})`;
}

/** Whether a key was made after another one, or before it; of several at a time by ID. */
function isBeyond({ createdAtMs, id }: Omit<KeyPosition, "value">, isBefore: boolean): RawBuilder<unknown> {
  return isBefore
    ? sql`(created_at_ms <= ${createdAtMs} and (created_at_ms < ${createdAtMs} or id < ${id}))`
    : sql`(created_at_ms >= ${createdAtMs} and (created_at_ms > ${createdAtMs} or id > ${id}))`;
}
