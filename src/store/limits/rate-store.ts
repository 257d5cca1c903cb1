import { type Kysely, sql } from "kysely";
import { type BookOf, giveBackTo, type RateMoment, renewIn, type SubjectBook, takeFrom } from "../../limits/memory.ts";
import {
  LEASE_MS,
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

/** So many subjects that nobody uses are forgotten at a time. */
const FORGOTTEN_ROWS = 500;

/** Says that this replica is there, forgets what says nothing any more, and counts the replicas. */
async function countReplicas(database: Database, name: string): Promise<number> {
  return database.transaction(async (transaction) => {
    const nowMs = await database.nowMs(transaction);
    const idle = transaction
      .selectFrom("rate_states")
      .select("subject")
      .where("idle_at_ms", "<", nowMs)
      .limit(FORGOTTEN_ROWS);
    await transaction.deleteFrom("rate_states").where("subject", "in", skipLocked(database, idle)).execute();
    const gone = transaction
      .selectFrom("replicas")
      .select("name")
      .where("seen_at_ms", "<", nowMs - LEASE_MS);
    await transaction.deleteFrom("replicas").where("name", "in", skipLocked(database, gone)).execute();
    await transaction
      .insertInto("replicas")
      .values({ name, seen_at_ms: nowMs })
      .onConflict((conflict) => conflict.column("name").doUpdateSet({ seen_at_ms: nowMs }))
      .execute();
    const { count } = await transaction
      .selectFrom("replicas")
      .select(({ fn }) => fn.countAll<number>().as("count"))
      .where("seen_at_ms", ">=", nowMs - LEASE_MS)
      .executeTakeFirstOrThrow();
    return count;
  });
}

/** How long a request waits for the decision on its rates: after that its replica's share of them will do. */
const LIMIT_MS = 500;
/** Rows that are missing are made; another process may forget them at the same moment, but not for long. */
const MAX_TRIES = 5;

/** A thing to be done with some subjects' books: what it answers goes to whoever asked for it. */
interface Step {
  readonly subjects: readonly string[];
  /** What undoes it, when it was done too late for whoever asked. */
  readonly undo?: RateRelease;
  /** Changes the books in place. */
  apply(bookOf: BookOf, moment: RateMoment): RateDecision | undefined;
}

/** Rates and concurrency in the database, by its clock. Rejects with a RateStoreError. */
export function createRateStore(database: Database, { burstMs }: { readonly burstMs: number }): RateStore {
  const toError = (message: string, cause?: unknown): Error => new RateStoreError(message, { cause });
  const batcher = new Batcher<Step, RateDecision | undefined>({
    decide: (steps) => takeSteps(database, steps, burstMs),
    limitMs: LIMIT_MS,
    toError,
    onLate({ undo }, decision) {
      if (undo !== undefined && decision?.admitted) batcher.ask(toRelease(undo)).catch(() => undefined);
    },
  });
  return {
    async take(demand) {
      if (demand.subjects.length === 0) return { admitted: true, levels: [] };
      // A demand is always decided on.
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
        throw toError("The database cannot be asked.", cause);
      }
    },

    async close() {
      // The database is closed by whoever has opened it.
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
      giveBackTo(bookOf, release, moment);
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
      // Once for all steps: a book has an entry for each request under way.
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

/** The time, when every lock has been waited for. What rates lose in a crash of the server is not worth a wait for its disk. */
async function nowAndHasty(database: Database, transaction: Kysely<Schema>): Promise<number> {
  if (database.kind === "postgres") await sql`set local synchronous_commit = off`.execute(transaction);
  return database.nowMs(transaction);
}

function parse(state: string | null): SubjectState | undefined {
  return state === null ? undefined : (JSON.parse(state) as SubjectState);
}

/** The states of these subjects that have a row, kept for this transaction; null for a row without a state. */
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

/** Writes states whose rows are kept by this transaction. */
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

/** Makes the rows of new subjects: outside any transaction, so that no two wait for each other's rows. */
async function makeStates({ query }: Database, subjects: readonly string[]): Promise<void> {
  for (const chunk of chunksOf(subjects)) {
    const made = query
      .insertInto("rate_states")
      .values(chunk.map((subject) => ({ subject, state: null, idle_at_ms: Number.MAX_SAFE_INTEGER })))
      .onConflict((conflict) => conflict.column("subject").doNothing());
    await retryWhileBusy(() => made.execute());
  }
}
