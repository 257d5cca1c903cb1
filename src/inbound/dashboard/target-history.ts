import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  BreakerState,
  type BreakerSchema,
  type LatencySchema,
  type ListTargetHistoryRequest,
  type ListTargetHistoryResponseSchema,
  type ReplicaSchema,
  type TargetHistorySchema,
  TargetHistoryStep,
  type TargetPeriodSchema,
} from "../../../gen/parley/console/v1/model_pb.js";
import { invalidField } from "../../core/failure.ts";
import { countOf, type LatencyHistogram, percentileOf } from "../../ledger/latency-histogram.ts";
import type {
  AttemptCount,
  HistoryStep,
  KnownReplica,
  OpenBreaker,
  StepLatencies,
  TargetHistoryStore,
} from "../../ledger/target-history.ts";
import { dayStart, UTC } from "../../ledger/time-zone.ts";
import { STEP_MS } from "../../ledger/usage-store.ts";
import { isTargetFailure } from "../../router/upstream-health.ts";
import { readZone } from "./usage-messages.ts";

const HALF_HOUR_MS = STEP_MS.hour / 2;
const DAYS = 30;
const MAX_TARGETS = 100;

const STEPS: Readonly<Record<number, HistoryStep>> = {
  [TargetHistoryStep.UNSPECIFIED]: "half_hour",
  [TargetHistoryStep.DAY]: "day",
} satisfies Record<TargetHistoryStep, HistoryStep>;

/** Attempts at upstream models by time, and the breakers of all processes. */
export async function listTargetHistory(
  store: Pick<TargetHistoryStore, "read" | "readLatencies" | "replicas">,
  { targets, step: asked, timeZone }: ListTargetHistoryRequest,
  nowMs: number,
): Promise<MessageInitShape<typeof ListTargetHistoryResponseSchema>> {
  if (targets.length > MAX_TARGETS) throw invalidField("targets", `has more than ${MAX_TARGETS} names`);
  const step = STEPS[asked];
  if (step === undefined) throw invalidField("step", "is not one of TargetHistoryStep");
  const offsets = readZone(timeZone, { sinceMs: nowMs - (DAYS + 1) * STEP_MS.day, untilMs: nowMs }) ?? UTC;
  const untilMs = step === "day" ? nowMs : Math.floor(nowMs / HALF_HOUR_MS + 1) * HALF_HOUR_MS;
  const sinceMs = step === "day" ? dayStart(nowMs - (DAYS - 1) * STEP_MS.day, offsets) : untilMs - STEP_MS.day;
  const names = targets.map(({ provider, name }) => `${provider}/${name}`);
  const query = { targets: names, sinceMs, step, offsets };
  const [counts, latencies, replicas] = await Promise.all([
    store.read(query),
    store.readLatencies(query),
    store.replicas(),
  ]);
  const byTarget = Map.groupBy(counts, ({ target }) => target);
  const latenciesByTarget = Map.groupBy(latencies, ({ target }) => target);
  return {
    targets: targets.map((target, index): MessageInitShape<typeof TargetHistorySchema> => ({
      target,
      periods: toPeriods(byTarget.get(names[index]!) ?? [], latenciesByTarget.get(names[index]!) ?? []),
      breakers: replicas.flatMap(({ replica, breakers }) =>
        breakers
          .filter((breaker) => breaker.target === names[index])
          .map((breaker) => ({ replicaId: replica, breaker: toBreaker(breaker, nowMs) })),
      ),
    })),
    replicas: replicas.map(toReplicaMessage),
    since: timestampFromMs(sinceMs),
    until: timestampFromMs(untilMs),
  };
}

function toPeriods(
  counts: readonly AttemptCount[],
  latencies: readonly StepLatencies[],
): MessageInitShape<typeof TargetPeriodSchema>[] {
  const byStart = new Map(latencies.map((each) => [each.atMs, each]));
  return [...Map.groupBy(counts, ({ atMs }) => atMs)].map(([startMs, ofStep]) => {
    const total = (counted: (outcome: string) => boolean): bigint =>
      BigInt(ofStep.reduce((sum, { outcome, attempts }) => (counted(outcome) ? sum + attempts : sum), 0));
    return {
      startTime: timestampFromMs(startMs),
      attempts: total((outcome) => outcome !== "skipped"),
      failures: total(isTargetFailure),
      outcomes: ofStep
        .toSorted((one, other) => other.attempts - one.attempts)
        .map(({ outcome, attempts }) => ({ outcome, count: BigInt(attempts) })),
      firstContent: toLatency(byStart.get(startMs)?.firstContent),
      duration: toLatency(byStart.get(startMs)?.duration),
    };
  });
}

function toLatency(histogram: LatencyHistogram = []): MessageInitShape<typeof LatencySchema> | undefined {
  const count = countOf(histogram);
  if (count === 0) return undefined;
  return { count: BigInt(count), p50Ms: percentileOf(histogram, 50), p95Ms: percentileOf(histogram, 95) };
}

function toBreaker({ sinceMs, untilMs, isProbed }: OpenBreaker, nowMs: number): MessageInitShape<typeof BreakerSchema> {
  return {
    state: untilMs > nowMs ? BreakerState.OPEN : BreakerState.HALF_OPEN,
    restStartTime: timestampFromMs(sinceMs),
    restEndTime: timestampFromMs(untilMs),
    probeInFlight: isProbed,
  };
}

/** A process of the installation. */
export function toReplicaMessage({
  replica,
  host,
  worker,
  version,
  startedAtMs,
  seenMs,
}: KnownReplica): MessageInitShape<typeof ReplicaSchema> {
  return {
    id: replica,
    host,
    worker,
    version,
    startTime: timestampFromMs(startedAtMs),
    seenTime: timestampFromMs(seenMs),
  };
}
