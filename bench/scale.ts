// node bench/scale.ts [--entries 10000000] [--keys 1000000] [--months 12] [--url postgres://…]: how long reports, lists
// and retention take on PostgreSQL with many ledger entries and keys. Without --url it starts the server of the tests in a
// temporary folder (about 1 GB for each million of entries) and removes it afterwards; with --url the database has to be empty,
// or filled by an earlier run, which is measured again, and stays.
import { createHash } from "node:crypto";
import { parseArgs } from "node:util";
import pg from "pg";
import { hashApiKey } from "../src/access/api-key.ts";
import type { LedgerEntry } from "../src/core/ledger.ts";
import { STEP_MS } from "../src/ledger/usage-store.ts";
import { openStore, type Store } from "../src/store/store.ts";
import { MONTHLY_TABLES, type Period, periodAt } from "../src/store/postgres/partitions.ts";
import { startPostgres } from "../test/support/postgres.ts";

const { values: options } = parseArgs({
  options: {
    entries: { type: "string", default: "10000000" },
    keys: { type: "string", default: "1000000" },
    months: { type: "string", default: "12" },
    url: { type: "string" },
  },
});
const [ENTRIES, KEYS, MONTHS] = [options.entries, options.keys, options.months].map(Number) as [number, number, number];
const ACCOUNTS = 1_000;
const ROUNDS = 7;
/** Hash of the first key. */
const FIRST_HASH = createHash("sha256").update("1").digest("hex");
const WRITERS = 4;
/** Time without retention that its commits are compared with. */
const QUIET_MS = 10_000;

let made = 0;
const untilMs = Date.now();
const months = lastMonths(MONTHS, untilMs);
const server = options.url === undefined ? await startPostgres({ settings: settings() }) : undefined;
const url = options.url ?? server!.url;
const sql = new pg.Client(url);
try {
  const store = await openStore({ dataDir: "/nowhere", databaseUrl: url });
  await sql.connect();
  if ((await sql.query("select 1 from completions limit 1")).rows.length === 0) {
    await store.ledger.prepareMonths(months.map(({ fromMs }) => fromMs));
    await timed(`${KEYS} keys`, fillKeys);
    await timed(`${ENTRIES} entries in ${MONTHS} months`, fillEntries);
    await timed("sums of their hours", fillUsage);
    await timed("vacuum analyze", () => sql.query("vacuum analyze"));
  }
  await timed("leaders of all days", () => rankAll(store));
  await printSizes();
  await measureReads(store);
  await measureRetention(store);
  await store.close();
} finally {
  await sql.end();
  await server?.stop();
}

/** Settings of a small server of its own; the tests' server does not wait for the disk otherwise. */
function settings(): Record<string, string> {
  return { fsync: "on", shared_buffers: "1GB", max_wal_size: "4GB", maintenance_work_mem: "512MB" };
}

function lastMonths(count: number, endMs: number): Period[] {
  const found = [periodAt("completions", endMs)];
  while (found.length < count) found.unshift(periodAt("completions", found[0]!.fromMs - 1));
  return found;
}

async function fillKeys(): Promise<void> {
  await sql.query(`insert into accounts (id, name, created_at_ms, role)
    select 'acct_' || n, 'Account ' || n, ${untilMs} - n, 'member' from generate_series(1, ${ACCOUNTS}) n`);
  await sql.query(`insert into api_keys (id, account_id, name, hash, display, capabilities, created_at_ms)
    select 'key_' || n, 'acct_' || n % ${ACCOUNTS} + 1, 'Key ' || n, encode(sha256(n::text::bytea), 'hex'), 'sk_parley_ab…wxyz',
      '["chat"]', ${untilMs} - n * 1000::bigint
    from generate_series(1, ${KEYS}) n`);
}

/** Each month's entries go straight into its partition, in the order of time. A tenth of the keys make half of the requests. */
async function fillEntries(): Promise<void> {
  const perMonth = Math.round(ENTRIES / MONTHS);
  for (const { fromMs, toMs, suffix } of months) {
    const lengthMs = Math.min(toMs, untilMs) - fromMs;
    await sql.query(`insert into completions_${suffix} (id, request_id, account_id, key_id, entrance, started_at_ms, ended_at_ms,
        requested_model, served_model, streamed, outcome, attempts, prompt_tokens, cached_tokens, completion_tokens,
        reasoning_tokens, image_tokens, cost_micro_usd, own_cost_micro_usd, duration_ms, first_content_ms, partial, estimated,
        request_limit, request_limit_remaining, request_limit_reset_ms)
      select 'chatcmpl-' || lpad(to_hex(started), 12, '0') || lpad(n::text, 12, '0'), 'req_' || lpad(to_hex(started), 12, '0') || n,
        'acct_' || key % ${ACCOUNTS} + 1, 'key_' || key, 'http', started, started + took, model, model, n % 2,
        case when n % 31 = 0 then 'upstream_unavailable' else 'served' end,
        '[{"model":"' || model || '","outcome":"served","reason":"","startMs":0,"durationMs":' || took || '}]',
        n % 8000, 0, n % 1500, 0, 0, n % 20000, 0, took, took / 3, 0, 0, 600, n % 600, 1000
      from (select n, ${fromMs} + ((n - 1) * ${lengthMs / perMonth})::bigint as started, (random() ^ 3 * 20000)::bigint as took,
          1 + (random() ^ 3 * ${KEYS - 1})::bigint as key, 'model-' || (random() ^ 2 * 6)::int as model
        from generate_series(1, ${perMonth}) n) as drawn`);
  }
}

async function fillUsage(): Promise<void> {
  await sql.query("set work_mem = '512MB'");
  for (const { suffix } of months)
    await sql.query(`insert into usage_hours_${suffix}
      select started_at_ms / 3600000 * 3600000, coalesce(account_id, ''), coalesce(key_id, ''), served_model, outcome, count(*), sum(partial), sum(estimated),
        sum(prompt_tokens), sum(cached_tokens), sum(completion_tokens), sum(reasoning_tokens), sum(image_tokens),
        sum(cost_micro_usd), sum(own_cost_micro_usd)
      from completions_${suffix} group by grouping sets ((1, account_id, key_id, 4, 5), (1, 4, 5))`);
}

async function rankAll({ usage }: Store): Promise<void> {
  for (const { fromMs, toMs } of months)
    await usage.rank({ sinceMs: fromMs, untilMs: toMs }, new AbortController().signal);
}

/** Whole days, as the page Usage asks for them. */
function lastDays(count: number): { readonly sinceMs: number; readonly untilMs: number } {
  const endMs = Math.ceil(untilMs / STEP_MS.day) * STEP_MS.day;
  return { sinceMs: endMs - count * STEP_MS.day, untilMs: endMs };
}

async function printSizes(): Promise<void> {
  for (const table of MONTHLY_TABLES) {
    const { rows } = await sql.query<{ rows: string; size: string }>(
      `select sum(reltuples)::bigint as rows, pg_size_pretty(sum(pg_total_relation_size(oid))) as size from pg_class
      where oid in (select inhrelid from pg_inherits where inhparent = '${table}'::regclass)`,
    );
    console.log(`${table}: ${rows[0]!.rows} rows, ${rows[0]!.size}`);
  }
}

async function measureReads({ usage, ledger, keys, accounts }: Store): Promise<void> {
  const last = months.at(-2) ?? months[0]!;
  const month = { sinceMs: last.fromMs, untilMs: last.toMs };
  const some = { accountId: "acct_7" };
  const reads: Readonly<Record<string, () => Promise<unknown>>> = {
    "report of a month, total": () => usage.summarize({ ...month, by: "none", step: "all" }),
    "report of a month by model": () => usage.summarize({ ...month, by: "model", step: "all", maxGroups: 100 }),
    "report of a month by model and day": () => usage.summarize({ ...month, by: "model", step: "day", maxGroups: 10 }),
    "report of a month by day, as the previous period": () => usage.summarize({ ...month, by: "none", step: "day" }),
    "report of 30 days by key": () => usage.summarize({ ...lastDays(30), by: "key", step: "all", maxGroups: 100 }),
    "report of a year by key": () => usage.summarize({ ...lastDays(365), by: "key", step: "all", maxGroups: 100 }),
    "report of a year by account": () =>
      usage.summarize({ ...lastDays(365), by: "account", step: "all", maxGroups: 100 }),
    "report of a month by key, failed ones": () =>
      usage.summarize({ ...month, by: "key", step: "all", maxGroups: 100, outcome: "failed" }),
    "report of a month by account": () => usage.summarize({ ...month, by: "account", step: "all", maxGroups: 100 }),
    "report of a month by key": () => usage.summarize({ ...month, by: "key", step: "all", maxGroups: 100 }),
    "report of a month by key and day": () => usage.summarize({ ...month, by: "key", step: "day", maxGroups: 10 }),
    "report of an account's month by key": () =>
      usage.summarize({ ...month, ...some, by: "key", step: "day", maxGroups: 10 }),
    "latency of a month": () => usage.latency({ ...month, step: "day" }),
    "latency of an account's month": () => usage.latency({ ...month, ...some, step: "day" }),
    "requests, first page": () => ledger.list({ limit: 50 }),
    "requests of an account": () => ledger.list({ limit: 50, ...some }),
    "requests of a key": () => ledger.list({ limit: 50, keyId: "key_1" }),
    "requests, failed": () => ledger.list({ limit: 50, outcome: "failed" }),
    "requests of a model, none": () => ledger.list({ limit: 50, model: "none" }),
    "requests of a month": () => ledger.list({ limit: 50, ...month }),
    "request by its ID": () => ledger.find("req_none"),
    "keys, first page": () => keys.list(undefined, { limit: 50 }),
    "keys, a page in the middle": () =>
      keys.list(undefined, { limit: 50, after: { createdAtMs: untilMs - 500_000_000, id: "key_500000" } }),
    "keys of an account": () => keys.list(["acct_7"], { limit: 50 }),
    "accounts, first page": () => accounts.list({ limit: 50 }),
    "key by its hash": () => keys.findByHash(FIRST_HASH),
    "unknown key": () => keys.findByHash(hashApiKey("sk_parley_unknown")),
  };
  for (const [name, read] of Object.entries(reads)) {
    const took: number[] = [];
    try {
      for (let round = 0; round < ROUNDS; round++) took.push(await milliseconds(read));
      const sorted = took.toSorted((a, b) => a - b);
      print(
        name,
        `best ${ms(sorted[0]!)}, median ${ms(sorted[Math.floor(ROUNDS / 2)]!)}, longest ${ms(sorted.at(-1)!)}`,
      );
    } catch (error) {
      print(name, String(error));
    }
  }
}

/** Removes the oldest month of each table while entries are written, and compares their commits with those without. */
async function measureRetention({ ledger, usage }: Store): Promise<void> {
  const { toMs } = months[0]!;
  const commits = async (during: () => Promise<unknown>): Promise<string> => {
    const took: number[] = [];
    const ended = new AbortController();
    const writing = Array.from({ length: WRITERS }, async () => {
      while (!ended.signal.aborted) {
        took.push(await milliseconds(() => ledger.insert([makeEntry()])));
        took.push(await milliseconds(() => ledger.list({ limit: 50 })));
      }
    });
    await Promise.all([Promise.all(writing), during().finally(() => ended.abort())]);
    const sorted = took.toSorted((a, b) => a - b);
    const at = (share: number): string => ms(sorted[Math.floor(share * (sorted.length - 1))]!);
    return `${sorted.length} commits and pages: ${at(0.5)} median, ${at(0.99)} p99, ${at(1)} longest`;
  };
  const quiet = await commits(() => new Promise((resolve) => setTimeout(resolve, QUIET_MS)));
  print("entries and pages meanwhile nothing", quiet);
  let removed = "";
  const busy = await commits(async () => {
    const tookMs = await milliseconds(async () => {
      while ((await ledger.prune(toMs)) > 0);
      while ((await usage.prune(toMs)) > 0);
    });
    removed = `${ms(tookMs)} for ${Math.round(ENTRIES / MONTHS)} entries and their sums`;
  });
  print("a month's removal", removed);
  print("entries and pages during the removal", busy);
}

function makeEntry(): LedgerEntry {
  const index = ++made;
  const key = 1 + (index % KEYS);
  return {
    completionId: `chatcmpl-z${process.pid}-${index}`,
    requestId: `req_z${index}`,
    accountId: `acct_${(key % ACCOUNTS) + 1}`,
    keyId: `key_${key}`,
    entrance: "http",
    startedAtMs: Date.now(),
    endedAtMs: Date.now() + 10,
    requestedModel: "model-1",
    servedModel: "model-1",
    streamed: false,
    outcome: "served",
    attempts: [],
    tokens: { prompt: 10, cached: 0, completion: 20, reasoning: 0, image: 0 },
    costMicroUsd: 1,
    durationMs: 10,
    firstContentMs: undefined,
    partial: false,
    estimated: false,
    limits: undefined,
  };
}

async function timed(name: string, work: () => Promise<unknown>): Promise<void> {
  const tookMs = await milliseconds(work);
  print(name, `written in ${(tookMs / 1000).toFixed(0)} s`);
}

async function milliseconds(work: () => Promise<unknown>): Promise<number> {
  const startMs = performance.now();
  await work();
  return performance.now() - startMs;
}

function ms(value: number): string {
  return `${value.toFixed(value < 10 ? 1 : 0)} ms`;
}

function print(name: string, text: string): void {
  console.log(`${name.padEnd(40)} ${text}`);
}
