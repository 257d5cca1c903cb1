import { type RawBuilder, sql } from "kysely";
import { type LedgerStore, PROCESS_LEASE_MS } from "../../ledger/ledger-store.ts";
import { type Database, skipLocked } from "../database.ts";
import type { BegunCompletionRow, SpendingRow } from "../schema.ts";
import { removeOld } from "../postgres/retention.ts";
import { chunksOf } from "../statements.ts";
import { retryWhileBusy, StoreError } from "../store-error.ts";
import type { BegunFiles } from "../sqlite/begun-files.ts";
import type { SettledNotes } from "./begun-completions.ts";
import { createRequestLog } from "./request-log.ts";
import { createSortedLog } from "./sorted-log.ts";

/** Entries removed per transaction: other transactions wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** Databases and compaction of a ledger. */
export interface LedgerPlaces {
  readonly database: Database;
  /** Connections for long reads, so that short statements do not wait for them; may be the same. */
  readonly reports: Database;
  readonly compaction: LedgerCompaction;
  /** Address of PostgreSQL; undefined for SQLite. */
  readonly databaseUrl: string | undefined;
  /** Notes of begun completions beside SQLite; undefined for PostgreSQL, which has them in a table. */
  readonly begunFiles: BegunFiles | undefined;
}

/** The LedgerStore in the database. */
export function createLedgerStore(places: LedgerPlaces): LedgerStore {
  const { database, reports, compaction, databaseUrl, begunFiles } = places;
  const { query } = database;
  const log = createRequestLog(reports);
  const sorted = createSortedLog(reports);
  // A request is looked up right after its end, when a read replica may not have it yet.
  const { find } = createRequestLog(database);
  return {
    async begin(note, done) {
      if (begunFiles !== undefined) {
        if (note !== undefined) begunFiles.write(note);
        begunFiles.remove(done);
        return;
      }
      const row = note && { id: note.id, replica: note.process, entry: JSON.stringify(note.entries) };
      await retryWhileBusy(() => beginInOneStatement(row, done).execute(query));
    },

    async renewLease(replica) {
      await retryWhileBusy(async () => {
        const now = { seen_at_ms: await database.nowMs(query) };
        const row = query.insertInto("replicas").values({ name: replica, ...now });
        await row.onConflict((conflict) => conflict.column("name").doUpdateSet(now)).execute();
      });
    },

    async settleLost() {
      await compaction.flush();
      // The same time for all steps: a hold may be released only after the notes of its process were settled.
      const sinceMs = (await database.nowMs(query)) - PROCESS_LEASE_MS;
      const filed = begunFiles === undefined ? 0 : await settleFiles(database, { begunFiles, sinceMs });
      if (filed >= MAX_FILED) return filed;
      let lost: SettledNotes;
      do lost = await database.perform("settleLostCompletions", sinceMs);
      while (lost.notes > 0 && lost.entries === 0);
      const entries = filed + lost.entries;
      const holds = await database.perform("releaseLostHolds", sinceMs);
      if (entries + holds === 0) await forgetLost(database);
      return entries + holds;
    },

    async insert(entries) {
      if (entries.length === 0) return;
      await database.perform("appendSegment", JSON.stringify(entries));
      compaction.appended(entries.length);
    },

    async flush() {
      await compaction.flush();
    },

    takeDropped: () => compaction.takeDropped(),

    async list(selection) {
      await compaction.flushed();
      return log.list(selection);
    },

    async listSorted(selection) {
      await compaction.flushed();
      return sorted.listSorted(selection);
    },

    async find(id, accountId) {
      await compaction.flushed();
      return find(id, accountId);
    },

    async spending(subjects, month) {
      await compaction.flushed();
      const found = new Map<string, SpendingRow>();
      for (const chunk of chunksOf(subjects)) {
        const rows = query.selectFrom("spending").selectAll().where("subject", "in", chunk).where("month", "=", month);
        for (const row of await retryWhileBusy(() => rows.execute())) found.set(row.subject, row);
      }
      return subjects.map((subject) => {
        const row = found.get(subject);
        return {
          spentMicroUsd: row?.spent_micro_usd ?? 0,
          heldMicroUsd: row?.held_micro_usd ?? 0,
          limitMicroUsd: row?.limit_micro_usd ?? undefined,
        };
      });
    },

    prepareMonths: (timesMs) => database.perform("createPartitions", { completions: timesMs, usage_hours: timesMs }),

    async prune(beforeMs) {
      await compaction.flushed();
      if (databaseUrl !== undefined) {
        const old = { table: "completions", column: "ended_at_ms", beforeMs, most: PRUNE_ROWS } as const;
        return removeOld(database, { databaseUrl, ...old });
      }
      const oldest = query
        .selectFrom("completions")
        .select("id")
        .where("ended_at_ms", "<", beforeMs)
        .orderBy("ended_at_ms")
        .limit(PRUNE_ROWS);
      const removed = query.deleteFrom("completions").where("id", "in", oldest);
      return Number((await retryWhileBusy(() => removed.executeTakeFirst())).numDeletedRows);
    },
  };
}

/** Entries after which a settlement of files ends, and entries per transaction. */
const MAX_FILED = 1_000;
const MAX_BATCH = 100;

/**
 * Settles the completions in the files of processes that were not seen since `sinceMs`. Returns the number of entries; below MAX_FILED no
 * file is left.
 */
async function settleFiles(
  database: Database,
  { begunFiles, sinceMs }: { readonly begunFiles: BegunFiles; readonly sinceMs: number },
): Promise<number> {
  // Listed before the living processes are: a process has its lease before it writes its first note.
  const files = await begunFiles.list();
  const seen = database.query.selectFrom("replicas").select("name").where("seen_at_ms", ">=", sinceMs);
  const living = new Set((await retryWhileBusy(() => seen.execute())).map(({ name }) => name));
  let entries = 0;
  for (const { path, process } of files) {
    if (living.has(process)) continue;
    await begunFiles.settle(path, async (begun) => {
      for (let from = 0; from < begun.length; from += MAX_BATCH)
        entries += await database.perform("endLostCompletions", begun.slice(from, from + MAX_BATCH));
    });
    if (entries >= MAX_FILED) break;
  }
  return entries;
}

/** Removes the rows of processes whose leases have ended. One that is only late inserts its row again. */
async function forgetLost(database: Database): Promise<void> {
  await retryWhileBusy(async () => {
    const endedMs = (await database.nowMs(database.query)) - PROCESS_LEASE_MS;
    const lost = database.query.selectFrom("replicas").select("name").where("seen_at_ms", "<", endedMs);
    await database.query.deleteFrom("replicas").where("name", "in", skipLocked(database, lost)).execute();
  });
}

/**
 * Inserts a note and removes others in one round trip, without waiting for the disk: notes have to survive the end of this
 * process, not of the server.
 */
function beginInOneStatement(row: BegunCompletionRow | undefined, done: readonly string[]): RawBuilder<unknown> {
  const { id = null, replica = null, entry = null } = row ?? {};
  return sql`
    with unsynced as (select set_config('synchronous_commit', 'off', true)),
    removed as (delete from begun_completions where id = any(${done}::text[]))
    insert into begun_completions (id, replica, entry)
    select id, replica, entry from (select ${id}::text, ${replica}::text, ${entry}::text) as begun (id, replica, entry), unsynced
    where id is not null
    on conflict (id) do nothing`;
}

/** Delay of a compaction after the first pending entry, unless a reader asks for it before. */
const COMPACT_AFTER_MS = 250;
/**
 * Compact as soon as this many entries are pending. Writers wait for the running compaction, so this also bounds their
 * delay.
 */
const ENOUGH_PENDING = 100;
/** Pause between compactions, so that a writer does not wait for two of them. Under load each compacts more. */
const PAUSE_MS = 40;
/** Compact without a pause from this many pending entries on: it bounds the wait of budgets and readers. */
const MAX_PENDING = 500;
/** Segments that are listed together after a failure, and failures after which a compaction ends. */
const SEGMENTS_LISTED = 1_000;
const MAX_FAILURES = 100;

/** Compacts the segments of the ledger's journal into its tables. */
export interface LedgerCompaction {
  /** To be called after a segment with this many entries was written. */
  appended(entries: number): void;
  /**
   * Resolves when all entries written before, by any process, are in the tables, and answers whether there were any to
   * compact. Rejects when that fails.
   */
  flush(): Promise<boolean>;
  /** `flush` for readers: never rejects, because their query then fails with the database's error. */
  flushed(): Promise<void>;
  /** As `LedgerStore.takeDropped`. */
  takeDropped(): number;
  /** Compacts the entries of this process, and schedules nothing more. Never rejects. */
  close(): Promise<void>;
}

/** Creates a compaction that runs by itself shortly after entries were written. */
export function createLedgerCompaction(database: Database): LedgerCompaction {
  return new JournalCompaction(database);
}

class JournalCompaction implements LedgerCompaction {
  readonly #database: Database;
  #pending = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires, and when the last compaction ended. */
  #dueMs = Infinity;
  #compactedMs = -Infinity;
  #latest: Promise<void> | undefined;
  /** Begins when the latest has ended: the latest may have missed entries written since it began. */
  #next: Promise<void> | undefined;
  #closed = false;
  #dropped = 0;

  constructor(database: Database) {
    this.#database = database;
  }

  takeDropped(): number {
    const dropped = this.#dropped;
    this.#dropped = 0;
    return dropped;
  }

  appended(entries: number): void {
    if (this.#closed) return;
    this.#pending += entries;
    if (this.#pending >= MAX_PENDING) this.#compactInBackground();
    else this.#schedule();
  }

  async flush(): Promise<boolean> {
    const waiting = sql`select 1 from ledger_segments limit 1`;
    const { rows } = await retryWhileBusy(() => waiting.execute(this.#database.query));
    if (rows.length === 0) return false;
    await this.#compact();
    return true;
  }

  async flushed(): Promise<void> {
    await this.flush().catch(() => false);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#compact().catch(() => undefined);
  }

  /** Schedules the next compaction, unless an earlier one is scheduled or one is running, whose end schedules the next. */
  #schedule(): void {
    if (this.#pending === 0 || this.#latest !== undefined || this.#closed) return;
    const nowMs = performance.now();
    const dueMs = this.#pending < ENOUGH_PENDING ? nowMs + COMPACT_AFTER_MS : this.#compactedMs + PAUSE_MS;
    if (dueMs >= this.#dueMs) return;
    clearTimeout(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => this.#compactInBackground(), Math.max(0, dueMs - nowMs)).unref();
  }

  /**
   * Compacts in the background. After a failure the segments stay and are tried again; the ledger's job logs the failure.
   */
  #compactInBackground(): void {
    this.#compact().catch(() => this.appended(1));
  }

  #compact(): Promise<void> {
    if (this.#latest === undefined) return (this.#latest = this.#compactAll().finally(() => this.#onCompacted()));
    const again = (): Promise<void> => {
      this.#next = undefined;
      return this.#compact();
    };
    return (this.#next ??= this.#latest.then(again, again));
  }

  async #compactAll(): Promise<void> {
    clearTimeout(this.#timer);
    this.#dueMs = Infinity;
    this.#pending = 0;
    try {
      while (await this.#compactSome());
    } catch (error) {
      // The database cannot be used: no segment can be compacted.
      if (error instanceof StoreError) throw error;
      await this.#compactEach();
    }
  }

  async #compactSome(segmentId?: number): Promise<boolean> {
    const { hasMore, dropped } = await this.#database.perform("compactJournal", segmentId);
    this.#dropped += dropped;
    return hasMore;
  }

  /** Compacts segments one by one, so that one which cannot be compacted holds back no other. Rejects with the first failure. */
  async #compactEach(): Promise<void> {
    const failures: unknown[] = [];
    let after = 0;
    for (;;) {
      const next = this.#database.query.selectFrom("ledger_segments").select("id").where("id", ">", after);
      const segments = await retryWhileBusy(() => next.orderBy("id").limit(SEGMENTS_LISTED).execute());
      for (const { id } of segments) {
        await this.#compactSome(id).catch((error: unknown) => {
          if (error instanceof StoreError) throw error;
          failures.push(error);
        });
        if (failures.length === MAX_FAILURES) throw failures[0];
        after = id;
      }
      if (segments.length < SEGMENTS_LISTED) break;
    }
    if (failures.length > 0) throw failures[0];
  }

  #onCompacted(): void {
    this.#latest = undefined;
    this.#compactedMs = performance.now();
    this.#schedule();
  }
}
