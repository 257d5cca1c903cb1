import type { Clock } from "../core/clock.ts";
import { type CompletionRecord, type Recorder, STOPPED } from "../core/ledger.ts";
import { type Model, upstreamKey } from "../core/model.ts";
import { isRoute } from "../core/route.ts";
import type { Router } from "../core/router.ts";
import { LatestSamples, percentile } from "./latest-samples.ts";

const MINUTE_MS = 60_000;
/** Length of the window in minutes, the current one included. */
const MINUTES = 15;
/** Durations of each kind kept per minute. */
const CAPACITY = 64;
/** Failures kept per upstream model. */
const MAX_FAILURES = 20;
/** Characters of a failure's message that are kept; it may quote a provider. */
const MAX_REASON_CHARS = 300;

/** Outcomes that do not count against the upstream model: success, skipped, or caused by the caller or the gateway. */
const BLAMELESS: ReadonlySet<string> = new Set([
  ...STOPPED,
  "served",
  "skipped",
  "invalid_request",
  "upstream_rejected",
]);

/** Whether an attempt with this outcome counts against its upstream model. */
export function isTargetFailure(outcome: string): boolean {
  return !BLAMELESS.has(outcome);
}

/** Outcomes that are not listed as failures. */
const UNREMARKABLE: ReadonlySet<string> = new Set([...STOPPED, "served", "skipped"]);

/** A failed attempt. Without prompt and answer. */
export interface UpstreamFailure {
  readonly atMs: number;
  /** Code of the failure. */
  readonly outcome: string;
  readonly upstreamStatus: number | undefined;
  /** Reason of the attempt. */
  readonly reason: string;
  readonly requestId: string;
  readonly completionId: string;
}

/** Start of an outage in Unix milliseconds, and the remaining open time. */
export interface Opening {
  readonly sinceMs: number;
  /** 0 while a probe is due or in flight. */
  readonly remainingMs: number;
  /** Whether a probe is in flight. */
  readonly isProbed: boolean;
}

/** Percentiles of durations in milliseconds; undefined without samples. */
export interface Latency {
  readonly count: number;
  readonly p50Ms: number;
  readonly p95Ms: number;
}

/** Health of an upstream model in the last WINDOW minutes, as seen by this process. */
export interface UpstreamHealth {
  /** Skipped attempts excluded. */
  readonly attempts: number;
  /** Attempts that failed because of the upstream model. */
  readonly failures: number;
  /** Attempts and skips by outcome. */
  readonly outcomes: ReadonlyMap<string, number>;
  /** Time to the first content of streams that the first attempt served, from the arrival of the request. */
  readonly firstContent: Latency | undefined;
  /** Time to the end of the answer, of successful attempts. */
  readonly duration: Latency | undefined;
  /** Latest failed attempts, the newest first, including requests that the provider rejected. */
  readonly lastFailures: readonly UpstreamFailure[];
}

/** Durations of an attempt in milliseconds, as in `UpstreamHealth`; undefined where there was none. */
export interface AttemptTimes {
  readonly firstContentMs: number | undefined;
  readonly durationMs: number | undefined;
}

/** Outcomes of attempts in the last MINUTES minutes, in this process. */
export interface HealthRecorder extends Recorder {
  /** Health of the upstream model of this model. */
  of(model: Model): UpstreamHealth;
  /** Start of counting in Unix milliseconds. */
  sinceMs(): number;
}

/**
 * Counts per minute and upstream model, with the latest durations of each minute, so memory does not grow with traffic.
 * Attempts of removed models are not counted. `noted` gets each attempt that is counted, with the `upstreamKey` of its model and its times.
 */
export function createHealthRecorder(
  router: Pick<Router, "find">,
  clock: Clock,
  noted: (upstream: string, outcome: string, times: AttemptTimes) => void = () => undefined,
): HealthRecorder {
  const startedMs = clock.now();
  const known = new Map<string, Upstream>();
  const present = (): number => Math.floor(clock.monotonic() / MINUTE_MS);

  const note = (entry: CompletionRecord, upstream: string, index: number): void => {
    const { outcome, ...attempt } = entry.attempts[index]!;
    const minute = upstreamAt(known, upstream).at(present());
    minute.outcomes.set(outcome, (minute.outcomes.get(outcome) ?? 0) + 1);
    const durationMs = outcome === "served" ? attempt.durationMs : undefined;
    // It is measured from the arrival of the request, so after a failed attempt it says nothing about the model.
    const firstContentMs = entry.attempts.length === 1 ? entry.firstContentMs : undefined;
    if (durationMs !== undefined) minute.durations.add(durationMs);
    if (firstContentMs !== undefined) minute.firstContents.add(firstContentMs);
    noted(upstream, outcome, { firstContentMs, durationMs });
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
      for (const [index, { model, outcome, ownCredential }] of entry.attempts.entries()) {
        // Failures with an account's own credential do not show the model's health for other accounts.
        if (ownCredential === true) continue;
        const found = router.find(model);
        if (found === undefined || isRoute(found)) continue;
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

/** Counts of one upstream model. */
class Upstream {
  readonly failures: UpstreamFailure[] = [];
  /** Minutes by number, oldest first. */
  readonly #minutes = new Map<number, Minute>();

  at(present: number): Minute {
    let minute = this.#minutes.get(present);
    if (minute === undefined) {
      for (const number of this.#minutes.keys()) if (number <= present - MINUTES) this.#minutes.delete(number);
      minute = {
        outcomes: new Map(),
        firstContents: new LatestSamples(CAPACITY),
        durations: new LatestSamples(CAPACITY),
      };
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
    failures: total(isTargetFailure),
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
