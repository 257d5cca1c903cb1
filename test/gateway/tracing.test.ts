import { afterEach, beforeEach, expect, it, vi } from "vitest";
import { parseConfig } from "../../src/config/parse.ts";
import type { CompletionRecord } from "../../src/core/ledger.ts";
import type { TraceEnding } from "../../src/core/trace.ts";
import { openTracing, type Tracing } from "../../src/gateway/tracing.ts";
import type { Logger } from "../../src/telemetry/logger.ts";
import { refusal } from "../inbound/dashboard/ended-requests.ts";
import { attemptOf } from "../support/attempt.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { type Collector, type ReceivedSpan, startCollector } from "../support/otlp.ts";

const CALLER = {
  traceId: "0af7651916cd43dd8448eb211c80319c",
  spanId: "b7ad6b7169203331",
  isSampled: false,
  state: undefined,
};

let collector: Collector;
let clock: FakeClock;
let tracing: Tracing;

beforeEach(async () => {
  collector = await startCollector();
  vi.stubEnv("OTEL_EXPORTER_OTLP_ENDPOINT", collector.url);
  clock = new FakeClock();
  const env = { OTEL_EXPORTER_OTLP_ENDPOINT: collector.url };
  const config = parseConfig({ file: "parley.yaml", text: "tracing: { slow_ms: 1000 }", env });
  const log = { warn: () => undefined } as unknown as Logger;
  tracing = await openTracing(config, { clock, log, replica: "replica", find: () => undefined });
});

afterEach(async () => {
  vi.unstubAllEnvs();
  await collector.close();
});

/** Ends a call, and returns its spans, the inbound call first. */
async function spansOf(
  record: Partial<CompletionRecord>,
  { ledgerMs = [50, 80], isSettled = false }: Partial<TraceEnding> = {},
): Promise<readonly ReceivedSpan[]> {
  const arrivedMs = clock.monotonic();
  const trace = tracing.traces!.begin({ caller: CALLER, arrivedMs, target: "/v1/chat/completions" })!;
  const [began, ended] = ledgerMs;
  trace.end(refusal("acct_1", { entrance: "http", ...record }), {
    ledgerMs: [arrivedMs + began, arrivedMs + ended],
    isSettled,
  });
  await tracing.close();
  return collector.spans;
}

const lastsMs = ({ startMs, endMs }: ReceivedSpan): number => Math.round(endMs - startMs);

it("exports a slow call that the sampler left out, which lasts until its entry is written", async () => {
  const [server] = await spansOf({ outcome: "served", durationMs: 1000 }, { ledgerMs: [1000, 1200] });
  expect(server).toMatchObject({ parentSpanId: CALLER.spanId, isError: false });
  expect(lastsMs(server!)).toBe(1200);
  expect(Math.abs(server!.startMs - clock.now())).toBeLessThan(1);
});

it.each(["served", "cancelled", "rate_limited", "invalid_request", "upstream_rejected"] as const)(
  "exports no quick call that the sampler left out and that ended as %s",
  async (outcome) => {
    expect(await spansOf({ outcome, durationMs: 999 })).toEqual([]);
  },
);

it.each(["overloaded", "upstream_timeout", "deadline_exceeded", "internal"] as const)(
  "exports each call that ended as %s",
  async (outcome) => {
    const [server] = await spansOf({ outcome, durationMs: 50 });
    expect(server).toMatchObject({ isError: true, attributes: { "error.type": outcome } });
  },
);

it("ends a call whose caller left when it left, and shows models that were passed over and an attempt that was ended", async () => {
  const arrivedMs = clock.monotonic();
  const trace = tracing.traces!.begin({ caller: { ...CALLER, isSampled: true }, arrivedMs, target: "/v1/x" })!;
  trace.attempts[1] = trace.beginAttempt();
  const attempts = [
    attemptOf({ model: "one", outcome: "skipped", startMs: 10 }),
    attemptOf({ model: "two", outcome: "cancelled", startMs: 10, durationMs: 30 }),
  ];
  const record = refusal("acct_1", { entrance: "http", outcome: "cancelled", durationMs: 40, attempts });
  trace.end(record, { ledgerMs: [arrivedMs + 2040, arrivedMs + 2050], isSettled: true });
  await tracing.close();
  const [server, attempt] = collector.spans;
  expect(server).toMatchObject({
    isError: false,
    attributes: { "http.response.status_code": 499, "parley.outcome": "cancelled" },
    events: [{ name: "parley.skipped", attributes: { "parley.model": "one" } }],
  });
  expect(lastsMs(server!)).toBe(40);
  expect(attempt).toMatchObject({
    isError: false,
    attributes: { "parley.model": "two", "parley.outcome": "cancelled" },
  });
  expect(lastsMs(attempt!)).toBe(30);
});
