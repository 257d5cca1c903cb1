// node scripts/run.mjs bench/bytes.ts [--entries 100000] [--keys 10000] [--postgres]: bytes and rows of a ledger entry and of a key,
// as Parley writes them, in SQLite, or with --postgres in the server of the tests, and the memory of a key in use. Counts, not
// times: a busy machine gives the same.
import { mkdtempSync, rmSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { DatabaseSync } from "node:sqlite";
import { parseArgs } from "node:util";
import { setFlagsFromString } from "node:v8";
import { runInNewContext } from "node:vm";
import pg from "pg";
import { displayApiKey, generateApiKey, hashApiKey, randomBase62 } from "../src/access/api-key.ts";
import { createAuthenticator } from "../src/access/key-cache.ts";
import type { NewKey } from "../src/access/key-store.ts";
import { systemClock } from "../src/core/clock.ts";
import type { LedgerEntry } from "../src/core/ledger.ts";
import { NO_LIMITS } from "../src/core/principal.ts";
import { openStore, type Store } from "../src/store/store.ts";
import { startPostgres } from "../test/support/postgres.ts";

const { values: options } = parseArgs({
  options: {
    entries: { type: "string", default: "100000" },
    keys: { type: "string", default: "10000" },
    postgres: { type: "boolean", default: false },
  },
});
const [ENTRIES, KEYS] = [options.entries, options.keys].map(Number) as [number, number];
/** Entries of one commit. */
const BATCH = 100;
const MODELS = ["gpt-4o", "claude-sonnet-4.5", "gemini-2.5-flash", "local-llama"] as const;
/** Time over which the entries are distributed. */
const DAY_MS = 24 * 3600 * 1000;
const ACCOUNT = "acct_default";

const dataDir = mkdtempSync(join(tmpdir(), "parley-bytes-"));
const server = options.postgres ? await startPostgres() : undefined;
try {
  const keys = Array.from({ length: KEYS }, (_, index) => makeKey(index));
  await print("empty");
  await withStore(async (store) => {
    for (const { key } of keys) await store.keys.insert(key);
    await printMemory(store, keys);
  });
  await print(`${KEYS} keys`);
  await withStore(async (store) => {
    const startMs = Date.now() - DAY_MS;
    for (let made = 0; made < ENTRIES; made += BATCH)
      await store.ledger.insert(Array.from({ length: BATCH }, (_, index) => makeEntry(made + index, startMs, keys)));
  });
  await print(`${KEYS} keys, ${ENTRIES} entries of a day`);
} finally {
  await server?.stop();
  rmSync(dataDir, { recursive: true });
}

async function withStore(work: (store: Store) => Promise<void>): Promise<void> {
  const store = await openStore({ dataDir, databaseUrl: server?.url });
  await work(store);
  await store.close();
}

interface MadeKey {
  readonly secret: string;
  readonly key: NewKey;
}

/** A key with the defaults of `parley keys create`. */
function makeKey(index: number): MadeKey {
  const secret = generateApiKey();
  const id = `key_${randomBase62(16)}`;
  const key = {
    hash: hashApiKey(secret),
    record: {
      id,
      keyFamilyId: id,
      accountId: ACCOUNT,
      name: `application ${index}`,
      display: displayApiKey(secret),
      models: "all",
      capabilities: ["chat", "images", "embeddings"],
      limits: NO_LIMITS,
      requiredLabels: {},
      tags: [],
      storesContent: false,
      limitedByAdministrator: false,
      options: "default",
      createdAtMs: Date.now(),
      expiresAtMs: undefined,
      revokedAtMs: undefined,
      replacedBy: undefined,
      lastUsedAtMs: undefined,
    },
  } satisfies NewKey;
  return { secret, key };
}

/** Memory of the keys that a process knows, for keys that were used lately. */
async function printMemory(store: Store, all: readonly MadeKey[]): Promise<void> {
  setFlagsFromString("--expose-gc");
  const collect = runInNewContext("gc") as () => void;
  const authenticator = createAuthenticator({ store: store.keys, clock: systemClock });
  collect();
  const before = process.memoryUsage().heapUsed;
  for (const { secret } of all) await authenticator.authenticate(secret);
  collect();
  const bytes = process.memoryUsage().heapUsed - before;
  console.log(`\nheap of ${all.length} keys in use: ${bytes} bytes, ${Math.round(bytes / all.length)} each`);
  // Keeps the authenticator in use.
  await authenticator.authenticate(all[0]!.secret);
}

/** A served completion with one attempt. A tenth of the keys makes the requests. */
function makeEntry(index: number, startMs: number, keys: readonly MadeKey[]): LedgerEntry {
  const model = MODELS[index % MODELS.length]!;
  const startedAtMs = startMs + Math.floor((index / ENTRIES) * DAY_MS);
  const used = Math.max(1, Math.floor(keys.length / 10));
  return {
    completionId: `chatcmpl-${randomBase62(24)}`,
    requestId: `req_${randomBase62(24)}`,
    accountId: ACCOUNT,
    keyId: keys[(index * 7919) % used]!.key.record.id,
    entrance: "http",
    startedAtMs,
    endedAtMs: startedAtMs + 2_345,
    requestedModel: model,
    servedModel: model,
    streamed: index % 2 === 0,
    outcome: "served",
    attempts: [{ model, outcome: "served", upstreamStatus: 200, reason: "", durationMs: 2_340, startMs: 3 }],
    tokens: { prompt: 1_234, cached: 512, completion: 345, reasoning: 0, image: 0 },
    costMicroUsd: 4_321,
    durationMs: 2_345,
    firstContentMs: 456,
    partial: false,
    estimated: false,
    limits: { requests: undefined, tokens: undefined },
  };
}

/** Rows and bytes of the tables, with their indexes. */
async function print(what: string): Promise<void> {
  if (what === "empty") await withStore(() => Promise.resolve());
  console.log(`\n${server === undefined ? "SQLite" : "PostgreSQL"}, ${what}`);
  for (const { name, rows, bytes } of await (server === undefined ? readSqlite() : readPostgres(server.url)))
    console.log(
      `${name.padEnd(24)} ${String(rows).padStart(9)} rows ${String(bytes).padStart(12)} bytes` +
        (rows === 0 ? "" : ` ${Math.round(bytes / rows)} each`),
    );
}

interface TableSize {
  readonly name: string;
  readonly rows: number;
  readonly bytes: number;
}

function readSqlite(): readonly TableSize[] {
  const database = new DatabaseSync(join(dataDir, "parley.db"));
  const tables = database
    .prepare(
      `select tbl_name as name, sum(pgsize) as bytes from sqlite_schema
      join dbstat on dbstat.name = sqlite_schema.name and aggregate = true group by 1 order by 2 desc limit 6`,
    )
    .all() as unknown as { readonly name: string; readonly bytes: number }[];
  const sizes = tables.map(({ name, bytes }) => {
    const { rows } = database.prepare(`select count(*) as rows from ${name}`).get() as { readonly rows: number };
    return { name, rows, bytes };
  });
  database.close();
  return sizes;
}

/** Partitions count with their table. */
async function readPostgres(url: string): Promise<readonly TableSize[]> {
  const sql = new pg.Client(url);
  await sql.connect();
  await sql.query("vacuum analyze");
  const { rows } = await sql.query<{ name: string; rows: string; bytes: string }>(
    `select coalesce(parent.relname, part.relname) as name, sum(greatest(part.reltuples, 0))::bigint as rows,
      sum(pg_total_relation_size(part.oid)) as bytes
    from pg_class part left join pg_inherits on inhrelid = part.oid left join pg_class parent on parent.oid = inhparent
    where part.relkind = 'r' and part.relnamespace = 'public'::regnamespace group by 1 order by 3 desc limit 6`,
  );
  await sql.end();
  return rows.map((row) => ({ name: row.name, rows: Number(row.rows), bytes: Number(row.bytes) }));
}
