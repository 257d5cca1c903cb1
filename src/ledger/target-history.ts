import { addDuration, addHistograms, emptyHistogram, type LatencyHistogram } from "./latency-histogram.ts";
import type { ZoneOffsets } from "./time-zone.ts";
import { MINUTES_KEPT_MS, STEP_MS } from "./usage-store.ts";

/** Attempts of one minute at one upstream model that ended alike. */
export interface AttemptCount {
  /** A time in that minute, in Unix milliseconds. */
  readonly atMs: number;
  /** `upstreamKey` of the model. */
  readonly target: string;
  /** `served`, `skipped`, or the code of a failure. */
  readonly outcome: string;
  readonly attempts: number;
  /** How long they took. Default: not measured. */
  readonly latencies?: Latencies;
}

/** Latencies of some attempts. */
export interface Latencies {
  /** To the first content of streams, from the arrival of requests whose first attempt they were. */
  readonly firstContent: LatencyHistogram;
  /** To the end of whole answers. */
  readonly duration: LatencyHistogram;
}

/** One attempt, with its durations in milliseconds; undefined where there was none. */
export interface EndedAttempt extends Pick<AttemptCount, "atMs" | "target" | "outcome"> {
  readonly firstContentMs: number | undefined;
  readonly durationMs: number | undefined;
}

/** Latencies of one step at one upstream model. */
export interface StepLatencies extends Latencies {
  /** Start of the step, in Unix milliseconds. */
  readonly atMs: number;
  readonly target: string;
}

/** Steps of a history: half hours are added up from minutes, days from hours. Latencies are kept by the half hour. */
export type HistoryStep = "half_hour" | "day";

/** For how long attempts are kept by the minute and by the hour, and latencies as those by the hour. */
export const ATTEMPTS_KEPT_MS = { minute: MINUTES_KEPT_MS, hour: 31 * STEP_MS.day } as const;

export interface HistoryQuery {
  readonly targets: readonly string[];
  readonly sinceMs: number;
  readonly step: HistoryStep;
  /** Offsets of the time zone of days. */
  readonly offsets: ZoneOffsets;
}

/** An open circuit breaker. */
export interface OpenBreaker {
  readonly target: string;
  /** When it opened, in Unix milliseconds. */
  readonly sinceMs: number;
  /** From then on a probe may close it. */
  readonly untilMs: number;
  readonly isProbed: boolean;
}

/** A setting that differs from the one in force, and its value. */
export interface PendingSetting {
  readonly key: string;
  readonly value: string;
}

/** What a process of the installation tells about itself. */
export interface ReplicaState {
  /** ID of the process among those that share the database. */
  readonly replica: string;
  readonly host: string;
  /** Number of the worker; 0: the process has no workers. */
  readonly worker: number;
  readonly version: string;
  readonly startedAtMs: number;
  /** The others are closed. */
  readonly breakers: readonly OpenBreaker[];
  /** Settings of its configuration file that wait for a restart, without secrets. Default: none. */
  readonly pending?: readonly PendingSetting[];
}

/** A process that lately wrote its state. */
export interface KnownReplica extends ReplicaState {
  /** When it did, by the clock of the database. */
  readonly seenMs: number;
}

/** A process that has not written its state for this long is left out. */
export const STATE_LASTS_MS = 60_000;

/** Port: attempts at upstream models over all processes, and the state of each process. */
export interface TargetHistoryStore {
  /**
   * Adds counts to those of their minutes and hours, and replaces the state of this process, all or nothing. A crash of the machine may
   * undo the last second.
   */
  write(counts: readonly AttemptCount[], state: ReplicaState): Promise<void>;
  /** Removes the state of a process that ends. */
  forget(replica: string): Promise<void>;
  /** Attempts of some targets by step and outcome; `atMs` is the start of the step. */
  read(query: HistoryQuery): Promise<readonly AttemptCount[]>;
  /** Latencies of some targets by step; steps without any are left out. */
  readLatencies(query: HistoryQuery): Promise<readonly StepLatencies[]>;
  /** The processes that wrote their state within STATE_LASTS_MS, by host and worker. */
  replicas(): Promise<readonly KnownReplica[]>;
  /** Removes some of the oldest counts of minutes, or of hours with latencies, before this time. Returns their number: call it until it returns 0. */
  prune(grain: "minute" | "hour", beforeMs: number): Promise<number>;
}

/** Limit of unwritten counts, which wait while the database is unavailable. Later ones are dropped. */
const MAX_PENDING = 5_000;

/** An AttemptCount that is counted up. */
interface Counting extends Pick<AttemptCount, "atMs" | "target" | "outcome"> {
  attempts: number;
  latencies?: { readonly firstContent: number[]; readonly duration: number[] };
}

/** Counts the attempts of this process until they are written. */
export class AttemptCounter {
  #counts = new Map<string, Counting>();

  /** Counts one attempt. */
  add({ atMs, target, outcome, firstContentMs, durationMs }: EndedAttempt): void {
    const count = this.#find({ atMs, target, outcome });
    if (count === undefined) return;
    count.attempts += 1;
    if (firstContentMs === undefined && durationMs === undefined) return;
    const latencies = (count.latencies ??= { firstContent: emptyHistogram(), duration: emptyHistogram() });
    if (firstContentMs !== undefined) addDuration(latencies.firstContent, firstContentMs);
    if (durationMs !== undefined) addDuration(latencies.duration, durationMs);
  }

  /** The count of attempts that ended alike in the same minute; undefined while there are too many. */
  #find(ended: Pick<AttemptCount, "atMs" | "target" | "outcome">): Counting | undefined {
    const name = `${Math.floor(ended.atMs / STEP_MS.minute)} ${ended.outcome} ${ended.target}`;
    const known = this.#counts.get(name);
    if (known !== undefined || this.#counts.size >= MAX_PENDING) return known;
    const count = { ...ended, attempts: 0 };
    this.#counts.set(name, count);
    return count;
  }

  /** Hands all counts to a write, and keeps them if it fails. If only its answer was lost, they count twice. */
  async writeWith(write: (counts: readonly AttemptCount[]) => Promise<void>): Promise<void> {
    const counts = [...this.#counts.values()];
    this.#counts = new Map();
    try {
      await write(counts);
    } catch (error) {
      for (const { attempts, latencies, ...ended } of counts) {
        const count = this.#find(ended);
        if (count === undefined) continue;
        count.attempts += attempts;
        const both = addLatencies(count.latencies, latencies);
        if (both !== undefined)
          count.latencies = { firstContent: [...both.firstContent], duration: [...both.duration] };
      }
      throw error;
    }
  }
}

/** The latencies of both. */
export function addLatencies(one: Latencies | undefined, other: Latencies | undefined): Latencies | undefined {
  if (one === undefined || other === undefined) return one ?? other;
  return {
    firstContent: addHistograms(one.firstContent, other.firstContent),
    duration: addHistograms(one.duration, other.duration),
  };
}
