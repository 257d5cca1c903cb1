import type { Clock } from "../core/clock.ts";
import { type CompletionRecord, type Recorder, STOPPED } from "../core/ledger.ts";
import { type Model, upstreamKey } from "../core/model.ts";
import type { Router } from "../core/router.ts";

/** How many are kept. */
const CAPACITY = 64;

/** Counts numbers, and keeps the latest 64 of them. */
class LatestSamples {
  readonly #values: number[] = [];
  #count = 0;

  /** How many there were, those that are forgotten included. */
  get count(): number {
    return this.#count;
  }

  add(value: number): void {
    this.#values[this.#count % CAPACITY] = value;
    this.#count += 1;
  }

  /** In no particular order. */
  values(): readonly number[] {
    return this.#values;
  }
}

/** The smallest of the sorted numbers, of which there is at least one, that `percent` of 100 of them are not above. */
function percentile(sorted: readonly number[], percent: number): number {
  return sorted[Math.max(Math.ceil((sorted.length * percent) / 100), 1) - 1]!;
}

const MINUTE_MS = 60_000;
/** How far back it looks: this many minutes, the present one included. */
const MINUTES = 15;
/** How many failures of one upstream model are kept. */
const MAX_FAILURES = 20;
/** A failure's words may be a provider's. */
const MAX_REASON_CHARS = 300;

/** Outcomes that say nothing about the upstream model: it did its part, was not asked, or somebody else was at fault. */
const BLAMELESS: ReadonlySet<string> = new Set([
  ...STOPPED,
  "served",
  "skipped",
  "invalid_request",
  "upstream_rejected",
]);

/** Outcomes that nobody needs to look into. */
const UNREMARKABLE: ReadonlySet<string> = new Set([...STOPPED, "served", "skipped"]);

/** An attempt that did not work. Holds no prompt and no answer. */
export interface UpstreamFailure {
  readonly atMs: number;
  /** The failure's code. */
  readonly outcome: string;
  readonly upstreamStatus: number | undefined;
  /** As the attempt says it. */
  readonly reason: string;
  readonly requestId: string;
  readonly completionId: string;
}

/** Since when an upstream model has not worked, in Unix milliseconds, and for how long it is left alone yet. */
export interface Opening {
  readonly sinceMs: number;
  /** 0 while a probe is due or in flight. */
  readonly remainingMs: number;
  /** Whether a request probes at this moment if it works again. */
  readonly isProbed: boolean;
}

/** How long something took, in milliseconds; undefined as long as nothing did. */
export interface Latency {
  readonly count: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

/** How an upstream model did in the last minutes, as far as this process knows. */
export interface UpstreamHealth {
  /** Skips not included. */
  readonly attempts: number;
  /** Of the attempts: those that it is to blame for. */
  readonly failures: number;
  /** Attempts and skips by how they ended. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** Of streams that were answered at the first attempt, from the request's arrival. */
  readonly firstContent: Latency | undefined;
  /** Of attempts that served, to the end of the answer. */
  readonly duration: Latency | undefined;
  /** Newest first, rejected requests included. */
  readonly lastFailures: readonly UpstreamFailure[];
}

/** Remembers, in this process and for a quarter of an hour, how attempts have ended. */
export interface HealthRecorder extends Recorder {
  /** How the upstream model of this model did. */
  of(model: Model): UpstreamHealth;
  /** Since when it has counted, in Unix milliseconds. */
  sinceMs(): number;
}

/**
 * Counts per minute and upstream model, with the latest durations of each minute: what it keeps does not grow with traffic.
 * Attempts at models that are gone by then are not counted.
 */
export function createHealthRecorder(router: Pick<Router, "find">, clock: Clock): HealthRecorder {
  const startedMs = clock.now();
  const known = new Map<string, Upstream>();
  const present = (): number => Math.floor(clock.monotonic() / MINUTE_MS);

  const note = (entry: CompletionRecord, upstream: string, index: number): void => {
    const attempt = entry.attempts[index]!;
    const minute = upstreamAt(known, upstream).at(present());
    minute.outcomes.set(attempt.outcome, (minute.outcomes.get(attempt.outcome) ?? 0) + 1);
    if (attempt.outcome === "served") minute.durations.add(attempt.durationMs);
    // Of later attempts nobody knows when they began.
    if (entry.firstContentMs !== undefined && entry.attempts.length === 1)
      minute.firstContents.add(entry.firstContentMs);
  };
  const noteFailure = (entry: CompletionRecord, upstream: string, index: number): void => {
    const { outcome, upstreamStatus, reason } = entry.attempts[index]!;
    const { requestId, completionId } = entry;
    const { failures } = upstreamAt(known, upstream);
    const shown = reason.slice(0, MAX_REASON_CHARS).toWellFormed();
    failures.unshift({ atMs: clock.now(), outcome, upstreamStatus, reason: shown, requestId, completionId });
    failures.length = Math.min(failures.length, MAX_FAILURES);
  };

  return {
    record(entry) {
      for (const [index, { model, outcome }] of entry.attempts.entries()) {
        const found = router.find(model);
        if (found === undefined) continue;
        const upstream = upstreamKey(found);
        note(entry, upstream, index);
        if (!UNREMARKABLE.has(outcome)) noteFailure(entry, upstream, index);
      }
    },

    of: (model) => summarize(known.get(upstreamKey(model)), present(), clock.now() - MINUTES * MINUTE_MS),
    sinceMs: () => Math.max(startedMs, clock.now() - (clock.monotonic() % MINUTE_MS) - (MINUTES - 1) * MINUTE_MS),
  };
}

interface Minute {
  readonly outcomes: Map<string, number>;
  readonly firstContents: LatestSamples;
  readonly durations: LatestSamples;
}

/** What is kept of one upstream model. */
class Upstream {
  readonly failures: UpstreamFailure[] = [];
  /** By their number, oldest first. */
  readonly #minutes = new Map<number, Minute>();

  at(present: number): Minute {
    let minute = this.#minutes.get(present);
    if (minute === undefined) {
      for (const number of this.#minutes.keys()) if (number <= present - MINUTES) this.#minutes.delete(number);
      minute = { outcomes: new Map(), firstContents: new LatestSamples(), durations: new LatestSamples() };
      this.#minutes.set(present, minute);
    }
    return minute;
  }

  latest(present: number): Minute[] {
    return [...this.#minutes].filter(([number]) => number > present - MINUTES).map(([, minute]) => minute);
  }
}

function upstreamAt(known: Map<string, Upstream>, key: string): Upstream {
  let upstream = known.get(key);
  if (upstream === undefined) known.set(key, (upstream = new Upstream()));
  return upstream;
}

function summarize(upstream: Upstream | undefined, present: number, sinceMs: number): UpstreamHealth {
  const minutes = upstream?.latest(present) ?? [];
  const outcomes = new Map<string, number>();
  for (const [outcome, count] of minutes.flatMap((minute) => [...minute.outcomes])) {
    outcomes.set(outcome, (outcomes.get(outcome) ?? 0) + count);
  }
  const total = (counts: (outcome: string) => boolean): number =>
    [...outcomes].reduce((sum, [outcome, count]) => (counts(outcome) ? sum + count : sum), 0);
  return {
    attempts: total((outcome) => outcome !== "skipped"),
    failures: total((outcome) => !BLAMELESS.has(outcome)),
    outcomes,
    firstContent: toLatency(minutes.map(({ firstContents }) => firstContents)),
    duration: toLatency(minutes.map(({ durations }) => durations)),
    lastFailures: upstream?.failures.filter(({ atMs }) => atMs >= sinceMs) ?? [],
  };
}

function toLatency(minutes: readonly LatestSamples[]): Latency | undefined {
  const count = minutes.reduce((sum, minute) => sum + minute.count, 0);
  if (count === 0) return undefined;
  const sorted = minutes.flatMap((minute) => minute.values()).toSorted((one, other) => one - other);
  return { count, p50Ms: percentile(sorted, 50), p95Ms: percentile(sorted, 95) };
}
