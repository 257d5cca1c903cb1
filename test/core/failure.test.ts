import { describe, expect, it } from "vitest";
import { Failure, type FailureCode, invalidField } from "../../src/core/failure.ts";
import { attemptOf } from "../support/attempt.ts";

describe("a failure", () => {
  it("that is one already is taken as it is", () => {
    const failure = new Failure("cancelled", "Gone.");
    expect(Failure.from(failure)).toBe(failure);
  });

  it.each([new TypeError("a secret"), "a secret", undefined, { message: "a secret" }])(
    "that is not one of ours becomes an internal one that shows nothing of it: %s",
    (reason) => {
      const failure = Failure.from(reason);
      expect(failure).toMatchObject({ code: "internal", message: "The gateway failed unexpectedly.", violations: [] });
      expect(failure.cause).toBe(reason);
    },
  );

  it("of a database that cannot be reached asks to try again, and shows nothing of it", () => {
    const reason = Object.assign(new Error("PostgreSQL at secret.example"), { isUnreachable: true });
    const failure = Failure.from(reason);
    expect(failure).toMatchObject({ code: "overloaded", unavailable: "database", retryAfterMs: 1_000, cause: reason });
    expect(failure.message).toBe("The database is unavailable at the moment. Try again shortly.");
  });

  it("keeps everything it says when attempts are added", () => {
    const cause = new Error("why");
    const facts = {
      detail: "upstream_overloaded" as const,
      violations: [{ field: "model", description: "busy" }],
      retryAfterMs: 0,
      transient: false,
      upstreamStatus: 529,
      cause,
    };
    const failure = new Failure("upstream_unavailable", "Busy.", facts);
    const attempts = [attemptOf({ outcome: "upstream_unavailable" })];
    const same = failure.with({ attempts });
    expect(same).toMatchObject({ code: "upstream_unavailable", message: "Busy.", ...facts, attempts });
    expect(failure.attempts).toEqual([]);
  });

  it("of a field names it as the one at fault", () => {
    const failure = invalidField("messages[0].role", "must be given");
    expect(failure).toMatchObject({
      code: "invalid_request",
      violations: [{ field: "messages[0].role", description: "must be given" }],
    });
    expect(failure.message).toContain("messages[0].role: must be given");
    expect(failure.param).toBe("messages[0].role");
    expect(new Failure("internal", "No.").param).toBeUndefined();
  });

  it.each<[FailureCode, boolean]>([
    ["upstream_unavailable", true],
    ["upstream_protocol", true],
    ["upstream_rate_limited", true],
    ["upstream_rejected", false],
    ["upstream_timeout", false],
    ["upstream_refused_us", false],
    ["rate_limited", false],
    ["invalid_request", false],
    ["internal", false],
  ])("%s passes by itself: %s", (code, transient) => {
    expect(new Failure(code, "no").transient).toBe(transient);
  });
});
