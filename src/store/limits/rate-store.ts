import { type Kysely, sql } from "kysely";
import { type BookOf, returnTo, type RateMoment, renewIn, type SubjectBook, takeFrom } from "../../limits/memory.ts";
import { PROCESS_LEASE_MS } from "../../ledger/ledger-store.ts";
import {
  type RateDecision,
  type RateDemand,
  type RateRelease,
  type RateStore,
  RateStoreError,
} from "../../limits/rates.ts";
import { type SubjectState, toBook, toState } from "../../limits/state.ts";
import { Batcher } from "../batcher.ts";
import { type Database, inCodeUnits, lockRows, skipLocked } from "../database.ts";
import type { Schema } from "../schema.ts";
import { chunksOf } from "../statements.ts";
import { retryWhileBusy } from "../store-error.ts";
import { compare } from "./spending.ts";

/** Idle rows removed per transaction, every two seconds by each process: more than new end users can make meanwhile. */
const FORGOTTEN_ROWS = 2_000;

/** Records that this replica is alive, removes idle rows, and counts the replicas. */
async function countReplicas(database: Database, name: string): Promise<number> {
  return database.transaction(async (transaction) => {
    const nowMs = await database.nowMs(transaction);
    const idle = transaction
      .selectFrom("rate_states")
      .select("subject")
      .where("idle_at_ms", "<", nowMs)
      .limit(FORGOTTEN_ROWS);
    await transaction.deleteFrom("rate_states").where("subject", "in", skipLocked(database, idle)).execute();
    await transaction
      .insertInto("replicas")
      .values({ name, seen_at_ms: nowMs })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ seen_at_ms: nowMs }))
      .execute();
    const { count } = await transaction
      .selectFrom("replicas")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("seen_at_ms", ">=", nowMs - PROCESS_LEASE_MS)
      .executeTakeFirstOrThrow();
    return count;
  });
}

/** Limit for the decision on a request's rates; after that its replica decides by its share. */
const LIMIT_MS = 500;
/** The same while the process starts, when it and other starting processes are slow. */
const STARTING_LIMIT_MS = 2_000;
/** Missing rows are inserted; another process may remove them again, but not for long. */
const MAX_TRIES = 5;

/** An operation on some subjects' books, and its result for the caller. */
interface Step {
  readonly subjects: readonly string[];
  /** Undoes the step when it was done after its caller's limit. */
  readonly undo?: RateRelease;
  /** Changes the books in place. */
  apply(bookOf: BookOf, moment: RateMoment): RateDecision | undefined;
}

export interface RateStoreOptions {
  /** Capacity of request buckets, as time. The same in all processes. */
  readonly burstMs: number;
  /** Time from now in which decisions may take STARTING_LIMIT_MS. Default: 0. */
  readonly startingMs?: number;
}

/** Rates and concurrency in the database, by its clock. Rejects with a RateStoreError. */
export function createRateStore(database: Database, { burstMs, startingMs = 0 }: RateStoreOptions): RateStore {
  const startedMs = performance.now() + startingMs;
  const toError = (message: string, cause?: unknown): Error => new RateStoreError(message, { cause });
  const batcher = new Batcher<Step, RateDecision | undefined>({
    decide: (steps) => takeSteps(database, steps, burstMs),
    limitMs: () => (performance.now() < startedMs ? STARTING_LIMIT_MS : LIMIT_MS),
    toError,
    onLate({ undo }, decision) {
      if (undo !== undefined && decision?.admitted) batcher.ask(toRelease(undo)).catch(() => undefined);
    },
  });
  return {
    async take(demand) {
      if (demand.subjects.length === 0) return { admitted: true, levels: [] };
      // Undefined only for a release; this step is a take.
      return (await batcher.ask(toTake(demand)))!;
    },

    async release(release) {
      if (release.subjects.length > 0) await batcher.ask(toRelease(release));
    },

    async renew({ replica, held }) {
      const subjects = held.map(({ subject }) => subject);
      const apply = (bookOf: BookOf, moment: RateMoment): undefined => {
        renewIn(bookOf, held, moment);
      };
      if (held.length > 0) await batcher.ask({ subjects, apply });
      try {
        return await countReplicas(database, replica);
      } catch (cause) {
        throw toError("The database is unavailable.", cause);
      }
    },

    async close() {
      // The database is closed by its owner.
    },
  };
}

function toTake(demand: RateDemand): Step {
  const { id, subjects, tokens } = demand;
  return {
    subjects: subjects.map(({ subject }) => subject),
    undo: { id, subjects, reservedTokens: tokens, usedTokens: 0, usedRequests: 0 },
    apply: (bookOf, moment) => takeFrom(bookOf, demand, moment),
  };
}

function toRelease(release: RateRelease): Step {
  return {
    subjects: release.subjects.map(({ subject }) => subject),
    apply(bookOf, moment): undefined {
      returnTo(bookOf, release, moment);
    },
  };
}

async function takeSteps(
  database: Database,
  steps: readonly Step[],
  burstMs: number,
): Promise<(RateDecision | undefined)[]> {
  const subjects = [...new Set(steps.flatMap((step) => step.subjects))].toSorted(compare);
  for (let tries = 0; tries < MAX_TRIES; tries++) {
    const outcome = await database.transaction(async (transaction) => {
      const found = await lockStates(database, transaction, subjects);
      if (found.size < subjects.length) return { missing: subjects.filter((subject) => !found.has(subject)) };
      const moment = { nowMs: await nowAndHasty(database, transaction), burstMs };
      // Each state is parsed once for all steps: a book has an entry for each request in flight.
      const books = new Map<string, SubjectBook>();
      for (const [subject, state] of found) books.set(subject, toBook(parse(state), moment));
      const answers = steps.map((step) => step.apply((subject) => books.get(subject)!, moment));
      await writeStates(transaction, new Map([...books].map(([subject, book]) => [subject, toState(book)])));
      return { answers };
    });
    if ("answers" in outcome) return outcome.answers;
    await makeStates(database, outcome.missing);
  }
  throw new RateStoreError("The rows of rates keep disappearing.");
}

/**
 * Returns the time after all locks are held. Turns off the wait for the disk: rates may be lost in a crash of the server.
 */
async function nowAndHasty(database: Database, transaction: Kysely<Schema>): Promise<number> {
  if (database.kind === "postgres") await sql`set local synchronous_commit = off`.execute(transaction);
  return database.nowMs(transaction);
}

function parse(state: string | null): SubjectState | undefined {
  return state === null ? undefined : (JSON.parse(state) as SubjectState);
}

/** Locks and returns the states of these subjects, as far as they have rows; null for a row without a state. */
async function lockStates(
  database: Database,
  transaction: Kysely<Schema>,
  subjects: readonly string[],
): Promise<Map<string, string | null>> {
  const found = new Map<string, string | null>();
  for (const chunk of chunksOf(subjects)) {
    const rows = transaction
      .selectFrom("rate_states")
      .select(["subject", "state"])
      .where("subject", "in", chunk)
      .orderBy(inCodeUnits(database, "subject"));
    for (const { subject, state } of await lockRows(database, rows).execute()) found.set(subject, state);
  }
  return found;
}

/** Writes states whose rows this transaction has locked. */
async function writeStates(transaction: Kysely<Schema>, states: ReadonlyMap<string, SubjectState>): Promise<void> {
  const rows = [...states]
    .toSorted(([a], [b]) => compare(a, b))
    .map(([subject, state]) => ({ subject, state: JSON.stringify(state), idle_at_ms: Math.ceil(state.idleAt) }));
  for (const chunk of chunksOf(rows)) {
    await transaction
      .insertInto("rate_states")
      .values(chunk)
      .onConflict((conflict) =>
        conflict.column("subject").doUpdateSet((is) => ({
          state: is.ref("excluded.state"),
          idle_at_ms: is.ref("excluded.idle_at_ms"),
        })),
      )
      .execute();
  }
}

/** Inserts rows for new subjects, outside any transaction, so that no two transactions wait for each other's rows. */
async function makeStates({ query }: Database, subjects: readonly string[]): Promise<void> {
  for (const chunk of chunksOf(subjects)) {
    const made = query
      .insertInto("rate_states")
      .values(chunk.map((subject) => ({ subject, state: null, idle_at_ms: Number.MAX_SAFE_INTEGER })))
      .onConflict((conflict) => conflict.column("subject").doNothing());
    await retryWhileBusy(() => made.execute());
  }
}
