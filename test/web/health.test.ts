import { create } from "@bufbuild/protobuf";
import { describe, expect, it } from "vitest";
import { BreakerSchema, BreakerState } from "../../gen/parley/console/v1/model_pb.js";
import { formatLatency, formatShare, healthOf } from "../../web/format/health.ts";

describe("the health of a model", () => {
  it.each<[BreakerState, boolean, number, number, string]>([
    [BreakerState.CLOSED, false, 0, 0, "healthy"],
    [BreakerState.CLOSED, false, 100, 9, "healthy"],
    [BreakerState.CLOSED, false, 100, 10, "degraded"],
    [BreakerState.CLOSED, false, 8, 3, "degraded"],
    [BreakerState.CLOSED, false, 3, 3, "failing"],
    [BreakerState.OPEN, false, 5, 5, "circuit open"],
    [BreakerState.HALF_OPEN, false, 5, 5, "ready to retry"],
    [BreakerState.HALF_OPEN, true, 5, 5, "recovering"],
    [BreakerState.UNSPECIFIED, false, 5, 0, "unknown"],
  ])("with breaker %s, a probe in flight %s, %s calls and %s failures is %s", (...[state, probeInFlight, ...rest]) => {
    const [attempts, failures, health] = rest;
    const breaker = create(BreakerSchema, { state, probeInFlight });
    expect(healthOf({ breaker, attempts: BigInt(attempts), failures: BigInt(failures) })).toBe(health);
  });
});

describe("formatted health", () => {
  it("has percentiles and the number of requests", () => {
    const latency = { $typeName: "parley.console.v1.Latency", p50Ms: 251, p95Ms: 1256 } as const;
    expect(formatLatency({ ...latency, count: 6n }, 6n)).toBe("p50 251 ms · p95 1.3 s (6 requests)");
    expect(formatLatency({ ...latency, count: 1n }, 1n)).toBe("251 ms (1 request)");
    expect(formatLatency(undefined, 0n)).toBe("No recent traffic");
    expect(formatLatency(undefined, 3n)).toBe("No recent data");
  });

  it("has an error rate with its counts", () => {
    expect([formatShare(3n, 24n), formatShare(0n, 24n), formatShare(0n, 0n)]).toEqual([
      "12.5% (3 of 24)",
      "0% (0 of 24)",
      "No recent traffic",
    ]);
  });
});
