import { expect, it } from "vitest";
import type { AttemptCount, ReplicaState } from "../../src/ledger/target-history.ts";
import { histogramOf } from "../support/histograms.ts";
import { keepTargetHistory } from "../../src/gateway/target-history.ts";
import type { Opening } from "../../src/router/upstream-health.ts";
import { FakeClock } from "../support/fake-clock.ts";
import type { Logger } from "../../src/telemetry/logger.ts";

it("writes attempts and the state of the process every ten seconds, and again what could not be written", async () => {
  const clock = new FakeClock();
  const written: { counts: readonly AttemptCount[]; state: ReplicaState }[] = [];
  const forgotten: string[] = [];
  let isDown = false;
  const openings = new Map<string, Opening>();
  const lines: string[] = [];
  const log = { warn: (_: unknown, text: string) => void lines.push(text) } as unknown as Logger;
  const history = keepTargetHistory({
    store: {
      async write(counts, state) {
        if (isDown) throw new Error("the database is unavailable");
        written.push({ counts, state });
      },
      forget: async (replica) => void forgotten.push(replica),
    },
    router: { openings: () => openings },
    self: { replica: "one", worker: 2, version: "1.0.0" },
    pending: () => [{ key: "overload.max_calls", value: "20" }],
    clock,
    log,
  });
  const atMs = clock.now();
  const none = { firstContentMs: undefined, durationMs: undefined };
  history.count("a/m", "served", { firstContentMs: 80, durationMs: 200 });
  history.count("a/m", "served", { firstContentMs: undefined, durationMs: 3_000 });
  history.count("a/m", "upstream_timeout", none);
  isDown = true;
  await clock.pass(10_000);
  await clock.pass(10_000);
  expect(lines.filter((line) => line.includes("history of targets"))).toHaveLength(1);
  isDown = false;
  openings.set("a/m", { sinceMs: atMs, remainingMs: 3_000, isProbed: false });
  await clock.pass(10_000);
  expect(written).toHaveLength(1);
  expect(written[0]!.counts).toEqual([
    {
      atMs,
      target: "a/m",
      outcome: "served",
      attempts: 2,
      latencies: { firstContent: histogramOf([80]), duration: histogramOf([200, 3_000]) },
    },
    { atMs, target: "a/m", outcome: "upstream_timeout", attempts: 1 },
  ]);
  expect(written[0]!.state).toMatchObject({ replica: "one", worker: 2, startedAtMs: atMs });
  expect(written[0]!.state.pending).toEqual([{ key: "overload.max_calls", value: "20" }]);
  expect(written[0]!.state.breakers).toMatchObject([{ target: "a/m", sinceMs: atMs }]);
  history.count("b/m", "served", none);
  await history.close();
  expect(written.at(-1)!.counts).toMatchObject([{ target: "b/m", attempts: 1 }]);
  expect(forgotten).toEqual(["one"]);
});
