import fc from "fast-check";
import { describe, expect, it } from "vitest";
import { Failure } from "../../src/core/failure.ts";
import { backoffMs } from "../../src/router/retry-budget.ts";

const options = { baseMs: 100, capMs: 2_000 };
const unavailable = new Failure("upstream_unavailable", "gone");

describe("a retry without a retry-after", () => {
  it.each([
    { retry: 0, random: 0, waitMs: 0 },
    { retry: 0, random: 0.5, waitMs: 50 },
    { retry: 0, random: 1, waitMs: 100 },
    { retry: 1, random: 1, waitMs: 200 },
    { retry: 4, random: 1, waitMs: 1_600 },
    { retry: 5, random: 1, waitMs: 2_000 },
    { retry: 50, random: 1, waitMs: 2_000 },
  ])("waits $waitMs ms before retry $retry with the random number $random", ({ retry, random, waitMs }) => {
    expect(backoffMs(unavailable, retry, { options, random: () => random })).toBe(waitMs);
  });
});

describe("a retry after a retry-after", () => {
  const asked = (retryAfterMs: number): Failure => new Failure("upstream_unavailable", "gone", { retryAfterMs });

  it.each([
    { retryAfterMs: 1_000, random: 0, waitMs: 1_000 },
    { retryAfterMs: 1_000, random: 0.5, waitMs: 1_050 },
    { retryAfterMs: 2_000, random: 0, waitMs: 2_000 },
    { retryAfterMs: 0, random: 1, waitMs: 0 },
  ])(
    "waits $waitMs ms for a retry-after of $retryAfterMs with the random number $random",
    ({ retryAfterMs, random, waitMs }) => {
      expect(backoffMs(asked(retryAfterMs), 0, { options, random: () => random })).toBeCloseTo(waitMs);
    },
  );

  it("does not take place beyond the cap", () => {
    expect(backoffMs(asked(2_001), 0, { options, random: () => 0 })).toBeUndefined();
  });

  it("comes at that time or at most a tenth later", () => {
    fc.assert(
      fc.property(fc.nat(2_000), fc.double({ min: 0, max: 1, noNaN: true }), (retryAfterMs, random) => {
        const waitMs = backoffMs(asked(retryAfterMs), 0, { options, random: () => random });
        expect(waitMs).toBeGreaterThanOrEqual(retryAfterMs);
        expect(waitMs).toBeLessThanOrEqual(retryAfterMs * 1.1 + 1e-9);
      }),
    );
  });
});

it.each(["upstream_rejected", "upstream_timeout", "upstream_refused_us", "invalid_request", "internal"] as const)(
  "a permanent failure is not retried: %s",
  (code) => {
    expect(backoffMs(new Failure(code, "no"), 0, { options, random: () => 0.5 })).toBeUndefined();
  },
);

it("an adapter may override whether a failure is temporary", () => {
  const never = new Failure("upstream_unavailable", "no", { transient: false });
  const soon = new Failure("upstream_timeout", "no", { transient: true });
  expect(backoffMs(never, 0, { options, random: () => 0.5 })).toBeUndefined();
  expect(backoffMs(soon, 0, { options, random: () => 0.5 })).toBe(50);
});
