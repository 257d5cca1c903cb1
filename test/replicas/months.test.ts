import { setTimeout as delay } from "node:timers/promises";
import { sql } from "kysely";
import pg from "pg";
import { describe, expect, inject, it, onTestFinished } from "vitest";
import { connectUnlimited } from "../../src/store/database.ts";
import { migrate } from "../../src/store/migrate.ts";
import { MIGRATIONS } from "../../src/store/migrations.ts";
import { monthlyPartitions } from "../../src/store/migrations/monthly-partitions.ts";
import { openStore, type Store } from "../../src/store/store.ts";
import { entry } from "../store/contracts/entries.ts";
import { createDatabase, queryPostgres } from "../support/postgres.ts";

const DAY_MS = 86_400_000;
const SEPTEMBER = Date.UTC(2026, 8, 15);
const OCTOBER = Date.UTC(2026, 9, 15);
const NOVEMBER = Date.UTC(2026, 10, 15);

const freshDatabase = (): Promise<string> => createDatabase(inject("postgresUrl"));

async function open(databaseUrl: string): Promise<Store> {
  const store = await openStore({ dataDir: "/nowhere", databaseUrl });
  onTestFinished(() => store.close());
  return store;
}

function at(startedAtMs: number, completionId?: string) {
  return entry({ startedAtMs, endedAtMs: startedAtMs + 1500, ...(completionId && { completionId }) });
}

async function partitionsOf(url: string, table = "completions"): Promise<string[]> {
  const rows = await queryPostgres(
    url,
    `select relname from pg_class where oid in
      (select inhrelid from pg_inherits where inhparent = '${table}'::regclass) order by relname`,
  );
  return rows.map(({ relname }) => relname as string);
}

async function idsOf({ ledger }: Store): Promise<string[]> {
  return (await ledger.list({ limit: 99 })).entries.map(({ completionId }) => completionId);
}

/** A database of the version before the partitions, with `count` entries of the past 300 days. */
async function databaseBefore(count: number): Promise<string> {
  const databaseUrl = await freshDatabase();
  const location = { dataDir: "/nowhere", databaseUrl };
  const old = await connectUnlimited(location);
  await migrate(old, () => connectUnlimited(location), {
    migrations: MIGRATIONS.slice(0, MIGRATIONS.indexOf(monthlyPartitions)),
  });
  const startedAt = `${Date.now()} - n * ${300 * DAY_MS} / ${count}`;
  const zeros = "0, 0, 0, 0, 0, 1, 0, 10, 0, 0";
  await sql
    .raw(
      `insert into completions (id, request_id, account_id, key_id, entrance, started_at_ms, ended_at_ms, requested_model,
        streamed, outcome, attempts, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, image_tokens,
        cost_micro_usd, own_cost_micro_usd, duration_ms, partial, estimated)
      select 'old_' || n, 'req', 'acct_default', 'key', 'http', ${startedAt}, ${startedAt} + 10, 'm', 1, 'served', '[]', ${zeros}
      from generate_series(1, ${count}) n`,
    )
    .execute(old.query);
  await sql
    .raw(
      `insert into usage_hours (hour_ms, account_id, key_id, model, outcome, completions, partial, estimated, prompt_tokens,
        cached_tokens, completion_tokens, reasoning_tokens, image_tokens, cost_micro_usd)
      select started_at_ms / 3600000 * 3600000, 'acct_default', 'key', 'm', 'served', count(*), 0, 0, 0, 0, 0, 0, 0, count(*)
      from completions group by 1`,
    )
    .execute(old.query);
  await old.close();
  return databaseUrl;
}

describe("a database from before the months", () => {
  it("keeps its entries in one partition, whose old rows are removed one thousand at a time", async () => {
    const url = await databaseBefore(1_500);
    const store = await open(url);
    const nowMs = Date.now();
    const [partition, ...others] = await partitionsOf(url);
    expect([partition, ...others]).toEqual(["completions_earlier"]);
    const known = (await store.ledger.list({ limit: 1 })).entries[0]!;
    await store.ledger.insert([{ ...known, endedAtMs: nowMs }, at(nowMs), at(nowMs + 70 * DAY_MS)]);
    expect(await idsOf(store)).toHaveLength(99);
    expect(await partitionsOf(url)).toHaveLength(2);
    const usage = { sinceMs: 0, untilMs: 2 * nowMs, by: "none", step: "all" } as const;
    expect((await store.usage.summarize(usage)).rows[0]?.sums.completions).toBe(1_502);
    // 1,500 entries in 300 days.
    const removed = [await store.ledger.prune(nowMs - 20 * DAY_MS), await store.ledger.prune(nowMs - 20 * DAY_MS)];
    expect(removed).toEqual([1_000, expect.closeTo(400, -1)]);
    expect(await store.ledger.prune(nowMs - 20 * DAY_MS)).toBe(0);
    while ((await store.usage.prune(nowMs - 20 * DAY_MS)) > 0);
    expect((await store.usage.summarize(usage)).rows[0]?.sums.completions).toBeLessThan(110);
    // This month is in it.
    expect(await partitionsOf(url)).toHaveLength(2);
  });

  it("is written to while it is migrated", async () => {
    const url = await databaseBefore(100_000);
    const writer = new pg.Client(url);
    await writer.connect();
    onTestFinished(() => writer.end());
    const ended = new AbortController();
    let written = 0;
    let longestMs = 0;
    const columns = `request_id, account_id, key_id, entrance, started_at_ms, ended_at_ms, requested_model, streamed, outcome,
      attempts, prompt_tokens, cached_tokens, completion_tokens, reasoning_tokens, image_tokens, cost_micro_usd, duration_ms,
      partial, estimated`;
    const write = async (): Promise<void> => {
      while (!ended.signal.aborted) {
        const startMs = performance.now();
        await writer.query(
          `insert into completions (id, ${columns}) select 'new_${written}', ${columns.replace("ended_at_ms", "$1").replace("started_at_ms", "$1")}
          from completions where id = 'old_1' limit 1`,
          [Date.now()],
        );
        written += 1;
        longestMs = Math.max(longestMs, performance.now() - startMs);
        await delay(2);
      }
    };
    const done = write();
    const startMs = performance.now();
    await open(url);
    const tookMs = performance.now() - startMs;
    ended.abort();
    await done;
    console.log(
      `100,000 entries: migrated in ${tookMs.toFixed(0)} ms, meanwhile ${written} writes, longest ${longestMs.toFixed(0)} ms`,
    );
    const [{ count }] = (await queryPostgres(url, "select count(*) from completions where id like 'new_%'")) as [
      { count: string },
    ];
    expect(Number(count)).toBe(written);
  });
});

describe("the months of the ledger", () => {
  it("are created by the entries that need them, whichever processes write them", async () => {
    const url = await freshDatabase();
    const stores = await Promise.all([open(url), open(url), open(url)]);
    const months = Array.from({ length: 12 }, (_, month) => Date.UTC(2026, month, 3));
    const entries = months.map((startedAtMs) => at(startedAtMs));
    const orders = [
      entries,
      entries.toReversed(),
      entries.toSorted((a, b) => (a.startedAtMs % 7) - (b.startedAtMs % 7)),
    ];
    await Promise.all(
      stores.flatMap(({ ledger }, index) =>
        orders[index]!.map((each) => ledger.insert([each]).then(() => ledger.flush())),
      ),
    );
    expect(await idsOf(stores[0])).toHaveLength(12);
    expect(await partitionsOf(url)).toHaveLength(12);
    expect(await partitionsOf(url, "usage_hours")).toHaveLength(12);
    const query = "select deadlocks from pg_stat_database where datname = current_database()";
    expect(await queryPostgres(url, query)).toEqual([{ deadlocks: "0" }]);
  });

  it("are created ahead", async () => {
    const url = await freshDatabase();
    const { ledger } = await open(url);
    expect(await ledger.prepareMonths([OCTOBER, NOVEMBER])).toBe(4);
    expect(await ledger.prepareMonths([OCTOBER, NOVEMBER])).toBe(0);
    expect(await partitionsOf(url)).toEqual(["completions_2026_10", "completions_2026_11"]);
  });

  it("book an entry once, also when it is written again later", async () => {
    const { ledger } = await open(await freshDatabase());
    const again = at(OCTOBER, "chatcmpl-again");
    await ledger.insert([again]);
    await ledger.flush();
    await ledger.insert([{ ...again, endedAtMs: NOVEMBER }, at(NOVEMBER)]);
    expect((await ledger.list({ limit: 9 })).entries).toHaveLength(2);
    expect(await ledger.spending(["account:acct_default"], "2026-10")).toMatchObject([{ spentMicroUsd: 30 }]);
  });
});

describe("retention", () => {
  it("drops whole months", async () => {
    const url = await freshDatabase();
    const store = await open(url);
    await store.ledger.insert([at(SEPTEMBER, "a"), at(OCTOBER, "b"), at(NOVEMBER, "c")]);
    expect(await store.ledger.prune(OCTOBER)).toBe(1);
    expect(await store.ledger.prune(OCTOBER)).toBe(0);
    expect(await idsOf(store)).toEqual(["c", "b"]);
    expect(await partitionsOf(url)).toEqual(["completions_2026_10", "completions_2026_11"]);
    expect(await queryPostgres(url, "select 1 from pg_class where relname = 'completions_2026_09'")).toEqual([]);
    expect(await partitionsOf(url, "usage_hours")).toHaveLength(3);
    expect(await store.usage.prune(NOVEMBER)).toBe(2);
  });

  it("is done by one of several processes", async () => {
    const url = await freshDatabase();
    const stores = await Promise.all([open(url), open(url), open(url)]);
    await stores[0].ledger.insert([at(SEPTEMBER), at(OCTOBER), at(NOVEMBER)]);
    await stores[0].ledger.flush();
    const counts = await Promise.all(stores.map(({ ledger }) => ledger.prune(NOVEMBER)));
    expect(counts.toSorted((a, b) => a - b)).toEqual([0, 0, 2]);
  });

  it("continues where an earlier one was interrupted", async () => {
    const url = await freshDatabase();
    const store = await open(url);
    await store.ledger.insert([at(SEPTEMBER, "a"), at(OCTOBER, "b"), at(NOVEMBER, "c")]);
    await store.ledger.flush();
    // One is detached and not dropped, the other waits for a reader.
    await queryPostgres(url, "alter table completions detach partition completions_2026_09");
    const reader = new pg.Client(url);
    await reader.connect();
    await reader.query("begin");
    await reader.query("select count(*) from completions");
    const detach = new pg.Client(url);
    await detach.connect();
    await detach.query("set statement_timeout = 200");
    await expect(
      detach.query("alter table completions detach partition completions_2026_10 concurrently"),
    ).rejects.toThrow(/statement timeout/);
    await Promise.all([reader.end(), detach.end()]);
    expect(await store.ledger.prune(NOVEMBER)).toBe(2);
    expect(await idsOf(store)).toEqual(["c"]);
  });

  it("returns a detached month to its table when a late entry needs it", async () => {
    const url = await freshDatabase();
    const store = await open(url);
    await store.ledger.insert([at(SEPTEMBER, "a"), at(NOVEMBER, "c")]);
    await store.ledger.flush();
    await queryPostgres(url, "alter table completions detach partition completions_2026_09");
    await store.ledger.insert([at(SEPTEMBER, "late")]);
    expect((await idsOf(store)).toSorted()).toEqual(["a", "c", "late"]);
  });

  it("delays neither entries nor their readers", async () => {
    const url = await freshDatabase();
    const store = await open(url);
    const columns = (
      await queryPostgres(
        url,
        "select attname from pg_attribute where attrelid = 'completions'::regclass and attnum > 0 order by attnum",
      )
    ).map(({ attname }) => attname as string);
    await store.ledger.insert([at(SEPTEMBER, "a"), at(NOVEMBER, "c")]);
    await store.ledger.flush();
    const changed: Readonly<Record<string, string>> = { id: "'copy_' || n", ended_at_ms: "ended_at_ms + n" };
    const copied = columns.map((name) => changed[name] ?? name).join(", ");
    await queryPostgres(
      url,
      `insert into completions (${columns.join(", ")}) select ${copied} from completions, generate_series(1, 100000) n where id = 'a'`,
    );
    const ended = new AbortController();
    let longestMs = 0;
    let turns = 0;
    const use = async (): Promise<void> => {
      while (!ended.signal.aborted) {
        const startMs = performance.now();
        await store.ledger.insert([at(NOVEMBER)]);
        await store.ledger.list({ limit: 10 });
        longestMs = Math.max(longestMs, performance.now() - startMs);
        turns += 1;
      }
    };
    const users = Promise.all([use(), use()]);
    const startMs = performance.now();
    expect(await store.ledger.prune(NOVEMBER)).toBe(1);
    const tookMs = performance.now() - startMs;
    ended.abort();
    await users;
    console.log(
      `100,000 entries dropped in ${tookMs.toFixed(0)} ms, meanwhile ${turns} entries and pages, longest ${longestMs.toFixed(0)} ms`,
    );
    expect(longestMs).toBeLessThan(1_500);
  });
});

describe("the days of minutes and of refused requests", () => {
  const refused = (endedAtMs: number) => ({
    entry: entry({ endedAtMs, servedModel: undefined, outcome: "rate_limited" }),
    message: "Slow down.",
  });

  it("are created ahead and by the rows that need them, and dropped when they are past", async () => {
    const url = await freshDatabase();
    const { refusals, usage } = await open(url);
    expect(await refusals.prepareDays([OCTOBER])).toBe(2);
    expect(await refusals.prepareDays([OCTOBER])).toBe(0);
    await refusals.add([], [refused(OCTOBER), refused(NOVEMBER)]);
    expect(await partitionsOf(url, "refusals")).toEqual(["refusals_2026_10_15", "refusals_2026_11_15"]);
    expect(await partitionsOf(url, "usage_minutes")).toEqual(["usage_minutes_2026_10_15"]);
    expect(await usage.pruneMinutes(OCTOBER + DAY_MS)).toBe(1);
    expect(await refusals.prune(NOVEMBER)).toBe(1);
    expect(await partitionsOf(url, "refusals")).toEqual(["refusals_2026_11_15"]);
    // A process that ended between detaching and dropping.
    await queryPostgres(url, "alter table refusals detach partition refusals_2026_11_15");
    expect(await refusals.prune(NOVEMBER)).toBe(0);
    expect(await refusals.prune(NOVEMBER + DAY_MS)).toBe(1);
    expect(await queryPostgres(url, "select to_regclass('refusals_2026_11_15') as name")).toEqual([{ name: null }]);
  });
});
