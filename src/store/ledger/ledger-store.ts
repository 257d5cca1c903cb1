import { sql } from "kysely";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import type { Database } from "../database.ts";
import type { SpendingRow } from "../schema.ts";
import { chunksOf } from "../statements.ts";
import { retryWhileBusy } from "../store-error.ts";
import { createRequestLog } from "./request-log.ts";

/** How many entries are removed at a time: others wait meanwhile. */
const PRUNE_ROWS = 1_000;

/** Where a ledger is. */
export interface LedgerPlaces {
  readonly database: Database;
  /** Where reading much does not keep others waiting; may be the same. */
  readonly reports: Database;
  readonly compaction: LedgerCompaction;
}

/** The ledger in the database. */
export function createLedgerStore({ database, reports, compaction }: LedgerPlaces): LedgerStore {
  const { query } = database;
  const log = createRequestLog(reports);
  return {
    async insert(entries) {
      if (entries.length === 0) return;
      await database.perform("appendSegment", JSON.stringify(entries));
      compaction.appended(entries.length);
    },

    async flush() {
      await compaction.flush();
    },

    async list(selection) {
      await compaction.flushed();
      return log.list(selection);
    },

    async find(id, accountId) {
      await compaction.flushed();
      return log.find(id, accountId);
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
        return { spentMicroUsd: row?.spent_micro_usd ?? 0, heldMicroUsd: row?.held_micro_usd ?? 0 };
      });
    },

    async prune(beforeMs) {
      await compaction.flushed();
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

/** How long an entry may wait to be folded, unless somebody reads before. */
const FOLD_AFTER_MS = 250;
/** So many are worth a transaction, however young they are: what is written meanwhile waits for no more than these. */
const ENOUGH = 100;
/** From one fold to the next, so that what waited for the one does not wait for the other, too. Under load more are folded at once. */
const PAUSE_MS = 40;
/** So many are folded without a pause: budgets and readers wait for no more than these. */
const MAX_UNFOLDED = 500;

/** Brings what is in segments of the ledger into its tables. */
export interface LedgerCompaction {
  /** Is told that a segment of so many entries was written. */
  appended(entries: number): void;
  /**
   * Resolves when all that was written before, by any process, can be read, and answers whether anything had to be folded
   * for it. Rejects when that cannot be had.
   */
  flush(): Promise<boolean>;
  /** The same for readers: never rejects, because the reading itself tells them what is wrong with the database. */
  flushed(): Promise<void>;
  /** Folds what this process has written, and plans nothing more. Never rejects. */
  close(): Promise<void>;
}

/** Folds by itself a moment after entries were written. */
export function createLedgerCompaction(database: Database): LedgerCompaction {
  return new SegmentFolding(database);
}

class SegmentFolding implements LedgerCompaction {
  readonly #database: Database;
  #uncompacted = 0;
  #timer: NodeJS.Timeout | undefined;
  /** When the timer fires, and when the last fold was over. */
  #dueMs = Infinity;
  #compactedMs = -Infinity;
  #latest: Promise<void> | undefined;
  /** Begins when the latest has ended: what is written from now on is only in this one for certain. */
  #next: Promise<void> | undefined;
  #closed = false;

  constructor(database: Database) {
    this.#database = database;
  }

  appended(entries: number): void {
    if (this.#closed) return;
    this.#uncompacted += entries;
    if (this.#uncompacted >= MAX_UNFOLDED) this.#compactUnasked();
    else this.#plan();
  }

  async flush(): Promise<boolean> {
    const waiting = sql`select 1 from ledger_segments limit 1`;
    const { rows } = await retryWhileBusy(() => waiting.execute(this.#database.query));
    if (rows.length === 0) return false;
    await this.#fold();
    return true;
  }

  async flushed(): Promise<void> {
    await this.flush().catch(() => false);
  }

  async close(): Promise<void> {
    this.#closed = true;
    clearTimeout(this.#timer);
    await this.#fold().catch(() => undefined);
  }

  /** Plans the next fold, unless an earlier one is planned or one is under way: its end plans the next. */
  #plan(): void {
    if (this.#uncompacted === 0 || this.#latest !== undefined || this.#closed) return;
    const nowMs = performance.now();
    const dueMs = this.#uncompacted < ENOUGH ? nowMs + FOLD_AFTER_MS : this.#compactedMs + PAUSE_MS;
    if (dueMs >= this.#dueMs) return;
    clearTimeout(this.#timer);
    this.#dueMs = dueMs;
    this.#timer = setTimeout(() => this.#compactUnasked(), Math.max(0, dueMs - nowMs)).unref();
  }

  /** Entries that cannot be folded now are kept, by their segments. Housekeeping says so in the log. */
  #compactUnasked(): void {
    this.#fold().catch(() => this.appended(1));
  }

  #fold(): Promise<void> {
    if (this.#latest === undefined) return (this.#latest = this.#compactAll().finally(() => this.#folded()));
    const again = (): Promise<void> => {
      this.#next = undefined;
      return this.#fold();
    };
    return (this.#next ??= this.#latest.then(again, again));
  }

  async #compactAll(): Promise<void> {
    clearTimeout(this.#timer);
    this.#dueMs = Infinity;
    this.#uncompacted = 0;
    while (await this.#database.perform("compactJournal", undefined));
  }

  #folded(): void {
    this.#latest = undefined;
    this.#compactedMs = performance.now();
    this.#plan();
  }
}
