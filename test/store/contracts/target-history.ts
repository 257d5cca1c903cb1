import { describe, expect, it } from "vitest";
import { histogramOf } from "../../support/histograms.ts";
import type { AttemptCount, ReplicaState } from "../../../src/ledger/target-history.ts";
import { UTC } from "../../../src/ledger/time-zone.ts";
import { STEP_MS } from "../../../src/ledger/usage-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { NOON } from "./entries.ts";

const count = (changes: Partial<AttemptCount> = {}): AttemptCount => ({
  atMs: NOON,
  target: "a/m",
  outcome: "served",
  attempts: 1,
  ...changes,
});

const state = (changes: Partial<ReplicaState> = {}): ReplicaState => ({
  replica: "one",
  host: "host-a",
  worker: 0,
  version: "1.0.0",
  startedAtMs: NOON,
  breakers: [],
  ...changes,
});

/** Registers the suite that every TargetHistoryStore has to pass. */
export function describeTargetHistory(open: () => Promise<Store>): void {
  describe("the history of targets", () => {
    it("adds up the attempts of all replicas by half hours and by days of a time zone", async () => {
      const { targetHistory } = await open();
      const later = { atMs: NOON + STEP_MS.hour / 2 + 1 };
      await targetHistory.write([count({ attempts: 3 }), count({ atMs: NOON + 60_000 }), count(later)], state());
      const failed = { outcome: "upstream_timeout", attempts: 2 };
      await targetHistory.write([count({ ...later, ...failed }), count({ attempts: 5 })], state({ replica: "two" }));
      await targetHistory.write([count({ target: "b/m" }), count({ atMs: NOON - STEP_MS.day })], state());
      const query = { targets: ["a/m"], sinceMs: NOON, step: "half_hour", offsets: UTC } as const;
      expect(await targetHistory.read(query)).toEqual([
        count({ attempts: 9 }),
        count({ atMs: NOON + STEP_MS.hour / 2 }),
        count({ atMs: NOON + STEP_MS.hour / 2, ...failed }),
      ]);
      expect(await targetHistory.read({ ...query, targets: [] })).toEqual([]);
      // In a zone of UTC+13 the day begins an hour before noon in UTC.
      const offsets = [{ fromMs: 0, offsetMs: 13 * STEP_MS.hour }] as const;
      const days = await targetHistory.read({ ...query, targets: ["a/m", "b/m"], sinceMs: 0, step: "day", offsets });
      const today = NOON - STEP_MS.hour;
      expect(days).toEqual([
        count({ atMs: today - STEP_MS.day }),
        count({ atMs: today, attempts: 10 }),
        count({ atMs: today, ...failed }),
        count({ atMs: today, target: "b/m" }),
      ]);
    });

    it("is written by many replicas at once", async () => {
      const { targetHistory } = await open();
      const counts = ["a/m", "b/m", "c/m"].map((target) => count({ target }));
      await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          targetHistory.write(
            index % 2 === 0 ? counts : counts.toReversed(),
            state({ replica: `replica ${index}`, worker: index }),
          ),
        ),
      );
      const query = { targets: ["a/m", "c/m"], sinceMs: 0, step: "half_hour", offsets: UTC } as const;
      expect((await targetHistory.read(query)).map(({ attempts }) => attempts)).toEqual([20, 20]);
      expect((await targetHistory.replicas()).map(({ worker }) => worker)).toEqual(
        Array.from({ length: 20 }).keys().toArray(),
      );
    });

    it("has the latest state of each replica until it ends", async () => {
      const store = await open();
      const { targetHistory } = store;
      const breakers = [{ target: "a/m", sinceMs: NOON, untilMs: NOON + 5_000, isProbed: false }];
      await targetHistory.write([], state());
      await targetHistory.write([], state({ breakers }));
      await targetHistory.write([], state({ replica: "two", host: "host-b", worker: 2 }));
      const [one, two, ...others] = await targetHistory.replicas();
      expect([one, two, others]).toMatchObject([state({ breakers }), { replica: "two", worker: 2 }, []]);
      expect(Math.abs(one!.seenMs - (await store.nowMs()))).toBeLessThan(60_000);
      await targetHistory.forget("one");
      expect((await targetHistory.replicas()).map(({ replica }) => replica)).toEqual(["two"]);
    });

    it("adds up the latencies of all replicas by half hours and by days", async () => {
      const { targetHistory } = await open();
      const took = (changes: Partial<AttemptCount>, durationsMs: readonly number[], firstMs: readonly number[] = []) =>
        count({ ...changes, latencies: { firstContent: histogramOf(firstMs), duration: histogramOf(durationsMs) } });
      const laterMs = NOON + STEP_MS.hour / 2;
      await targetHistory.write(
        [took({}, [40, 300], [20]), took({ atMs: NOON + 60_000 }, [400]), took({ atMs: laterMs + 1 }, [999_999])],
        state(),
      );
      await targetHistory.write([took({}, [40]), took({ target: "b/m" }, [1]), count()], state({ replica: "two" }));
      const query = { targets: ["a/m"], sinceMs: NOON, step: "half_hour", offsets: UTC } as const;
      const first = { firstContent: histogramOf([20]), duration: histogramOf([40, 40, 300, 400]) };
      const later = { firstContent: histogramOf([]), duration: histogramOf([999_999]) };
      expect(await targetHistory.readLatencies(query)).toEqual([
        { atMs: NOON, target: "a/m", ...first },
        { atMs: laterMs, target: "a/m", ...later },
      ]);
      expect(await targetHistory.readLatencies({ ...query, targets: [] })).toEqual([]);
      const days = await targetHistory.readLatencies({ ...query, targets: ["a/m", "b/m"], sinceMs: 0, step: "day" });
      expect(days.map(({ target, atMs }) => [target, atMs])).toEqual([
        ["a/m", NOON - STEP_MS.day / 2],
        ["b/m", NOON - STEP_MS.day / 2],
      ]);
      expect(days[0]).toMatchObject({ duration: histogramOf([40, 40, 300, 400, 999_999]) });
      // They go with the counts by the hour.
      await targetHistory.prune("minute", laterMs);
      expect(await targetHistory.readLatencies(query)).toHaveLength(2);
      await targetHistory.prune("hour", laterMs);
      expect(await targetHistory.readLatencies(query)).toMatchObject([{ atMs: laterMs }]);
    });

    it("is removed by the minute and by the hour, the oldest first", async () => {
      const { targetHistory } = await open();
      const minutes = Array.from({ length: 1_002 }, (_, index) => count({ atMs: NOON + index * 60_000 }));
      await targetHistory.write(minutes, state());
      const untilMs = NOON + 1_001 * 60_000;
      expect(await targetHistory.prune("minute", untilMs)).toBe(1_000);
      expect(await targetHistory.prune("minute", untilMs)).toBe(1);
      expect(await targetHistory.prune("minute", untilMs)).toBe(0);
      const query = { targets: ["a/m"], sinceMs: 0, offsets: UTC } as const;
      expect(await targetHistory.read({ ...query, step: "half_hour" })).toMatchObject([{ attempts: 1 }]);
      const days = await targetHistory.read({ ...query, step: "day" });
      expect(days.reduce((sum, { attempts }) => sum + attempts, 0)).toBe(1_002);
      expect(await targetHistory.prune("hour", NOON)).toBe(0);
      expect(await targetHistory.prune("hour", untilMs)).toBeGreaterThan(10);
    });
  });
}
