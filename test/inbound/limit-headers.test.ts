import fc from "fast-check";
import { describe, expect, it } from "vitest";
import type { LimitState } from "../../src/core/limiter.ts";
import { readLimitHeaders, toLimitHeaders } from "../../src/inbound/headers.ts";

describe("headers of limits", () => {
  it("are those of OpenAI", () => {
    const requests = { limit: 60, remaining: 59, resetMs: 1000 };
    const tokens = { limit: 150_000, remaining: 149_984, resetMs: 360_000 };
    expect(Object.fromEntries(toLimitHeaders({ requests, tokens }))).toEqual({
      "x-ratelimit-limit-requests": "60",
      "x-ratelimit-remaining-requests": "59",
      "x-ratelimit-reset-requests": "1s",
      "x-ratelimit-limit-tokens": "150000",
      "x-ratelimit-remaining-tokens": "149984",
      "x-ratelimit-reset-tokens": "6m0s",
    });
  });

  it.each([
    [0, "0ms"],
    [11.2, "12ms"],
    [1500, "1.5s"],
    [59_999, "59.999s"],
    [60_000, "1m0s"],
    [3_661_250, "1h1m1.25s"],
  ])("write %d ms as %s", (resetMs, written) => {
    const headers = toLimitHeaders({ requests: { limit: 1, remaining: 1, resetMs }, tokens: undefined });
    expect(headers.at(-1)).toEqual(["x-ratelimit-reset-requests", written]);
    expect(headers).toHaveLength(3);
  });

  it("are read as they were written", () => {
    const state = fc.option(
      fc.record({ limit: fc.nat(1e9), remaining: fc.nat(1e9), resetMs: fc.nat(100 * 3_600_000) }),
      { nil: undefined },
    );
    const check = (requests: LimitState | undefined, tokens: LimitState | undefined) => {
      const headers = new Map(toLimitHeaders({ requests, tokens }));
      expect(readLimitHeaders((name) => headers.get(name))).toEqual({ requests, tokens });
    };
    fc.assert(fc.property(state, state, check));
  });

  it.each(["", "x", "-1", "1.5", "9".repeat(40)])("are left out when they make no sense: %j", (limit) => {
    const read = readLimitHeaders((name) => (name.includes("-limit-") ? limit : name.includes("reset") ? "1s" : "1"));
    expect(read).toEqual({ requests: undefined, tokens: undefined });
  });
});
