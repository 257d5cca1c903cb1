import { describe, expect, it } from "vitest";
import { checkLimits } from "../../src/access/checks.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { sizeOf } from "../../src/limits/bucket.ts";

describe("the largest limits that can be set", () => {
  it("are applied exactly", () => {
    const most = { requestsPerMinute: 1e9, tokensPerMinute: 1e9 };
    const limits = checkLimits({ ...NO_LIMITS, ...most });
    const subject = { subject: "key:k1", accountId: "a1", ...limits };
    expect(sizeOf("requests", subject, 60_000)?.perMinute).toBe(most.requestsPerMinute);
    expect(sizeOf("tokens", subject, 60_000)?.perMinute).toBe(most.tokensPerMinute);
  });

  it.each(["requestsPerMinute", "tokensPerMinute"] as const)("are checked for %s", (name) => {
    expect(() => checkLimits({ ...NO_LIMITS, [name]: 1e9 + 1 })).toThrow("must be a whole number from 1 to 1000000000");
  });
});
