import { sql, type Kysely } from "kysely";
import {
  type RateDecision,
  type RateDemand,
  type RateRelease,
  type RateStore,
  RateStoreError,
} from "../limits/rates.ts";
import { decide, giveBack, renewLeases, type SubjectState } from "../limits/state.ts";
import type { RateMoment } from "../limits/subject.ts";
import { Batcher } from "./batcher.ts";
import type { Database } from "./database.ts";
import { lockStates, makeStates, writeStates } from "./rate-states.ts";
import { countReplicas } from "./replicas.ts";
import type { Schema } from "./schema.ts";
import { compare } from "./spending.ts";

/** How long a request waits for the decision on its rates: after that its replica's share of them will do. */
const LIMIT_MS = 500;
/** Rows that are missing are made; another process may forget them at the same moment, but not for long. */
const MAX_TRIES = 5;

type States = Map<string, SubjectState>;

/** A thing to be done with some subjects' states: what it answers goes to whoever asked for it. */
interface Step {
  readonly subjects: readonly string[];
  /** What undoes it, when it was done too late for whoever asked. */
  readonly undo?: RateRelease;
  /** Changes the states in place. */
  apply(states: States, moment: RateMoment): RateDecision | undefined;
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
      const apply = (states: States, moment: RateMoment): undefined => {
        merge(states, renewLeases(states, held, moment));
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
    apply(states, moment) {
      const { decision, states: after } = decide(states, demand, moment);
      merge(states, after);
      return decision;
    },
  };
}

function toRelease(release: RateRelease): Step {
  return {
    subjects: release.subjects.map(({ subject }) => subject),
    apply(states, moment): undefined {
      merge(states, giveBack(states, release, moment));
    },
  };
}

function merge(states: States, changed: ReadonlyMap<string, SubjectState>): void {
  for (const [subject, state] of changed) states.set(subject, state);
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
      const states: States = new Map();
      for (const [subject, state] of found) if (state !== null) states.set(subject, JSON.parse(state) as SubjectState);
      const moment = { nowMs: await nowAndHasty(database, transaction), burstMs };
      const answers = steps.map((step) => step.apply(states, moment));
      await writeStates(transaction, states);
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
