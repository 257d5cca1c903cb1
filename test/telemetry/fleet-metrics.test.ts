import { expect, it } from "vitest";
import { FleetMetrics } from "../../src/telemetry/fleet-metrics.ts";
import { createMetrics, type MetricsSnapshot } from "../../src/telemetry/metrics.ts";
import { QUIET } from "../support/metrics.ts";

const createWorker = (breaker: string) =>
  createMetrics({ ...QUIET, activeCalls: () => 3, breakers: () => new Map([["alpha/one", breaker]]) });

const overTheChannel = async (snapshot: Promise<MetricsSnapshot>): Promise<MetricsSnapshot> =>
  JSON.parse(JSON.stringify(await snapshot)) as MetricsSnapshot;

it("sums the metrics of processes, and keeps the counters of those that have ended", async () => {
  const [one, other] = [createWorker("open"), createWorker("closed")];
  const fleet = new FleetMetrics({ ready: () => 2, replaced: () => 0 });
  one.refusal("http", "unauthenticated");
  for (let count = 0; count < 4; count++) other.refusal("http", "unauthenticated");
  fleet.note("1.1", await overTheChannel(one.snapshot()));
  fleet.note("2.2", await overTheChannel(other.snapshot()));
  const refused = 'parley_refusals_total{entrance="http",code="unauthenticated"}';
  const both = await fleet.text();
  expect(both).toContain(`${refused} 5\n`);
  expect(both).toContain("\nparley_active_calls 6\n");
  expect(both).toContain('\nparley_breaker_open{upstream="alpha/one"} 1\n');
  expect(both).toContain("\nparley_workers_ready 2\n");

  await fleet.forget("2.2");
  const left = await fleet.text();
  expect(left).toContain(`${refused} 5\n`);
  expect(left).toContain("\nparley_active_calls 3\n");
  await fleet.forget("1.1");
  expect(await fleet.text()).toContain(`${refused} 5\n`);
});

it("has the lag of the worst event loop, not an average with idle ones", async () => {
  const fleet = new FleetMetrics({ ready: () => 1, replaced: () => 0 });
  const snapshot = await overTheChannel(createWorker("closed").snapshot());
  const late = snapshot.map((metric) =>
    metric.name === "nodejs_eventloop_lag_p99_seconds" ? { ...metric, values: [{ labels: {}, value: 7 }] } : metric,
  );
  fleet.note("1.1", late);
  expect(await fleet.text()).toContain("\nnodejs_eventloop_lag_p99_seconds 7\n");
});
