import { beforeEach, describe, expect, it } from "vitest";
import { Failure, type FailureCode } from "../../src/core/failure.ts";
import { Breaker, type BreakerPermit } from "../../src/router/breaker.ts";
import { FakeClock } from "../support/fake-clock.ts";

const OPTIONS = { failures: 5, openMs: 1_000, maxOpenMs: 8_000 };

let clock: FakeClock;
let breaker: Breaker;

beforeEach(() => {
  clock = new FakeClock();
  breaker = new Breaker(() => OPTIONS, clock);
});

const down = new Failure("upstream_unavailable", "It is down.");

function admitted(accountId = "a"): BreakerPermit {
  const pass = breaker.admit(accountId);
  if (pass instanceof Failure) throw pass;
  return pass;
}

function refusal(): Failure {
  const pass = breaker.admit("a");
  if (!(pass instanceof Failure)) throw new Error("it was let through");
  return pass;
}

/** Runs attempts in sequence: `+` succeeds, `-` fails, `.` is abandoned. */
function attempt(results: string, accountId = "a"): void {
  for (const result of results) {
    const pass = admitted(accountId);
    if (result === "+") pass.succeeded();
    else if (result === "-") pass.failed(down);
    else pass.abandoned();
  }
}

describe("the open period", () => {
  it("begins with the failure that opens the breaker and lasts until a probe succeeds, whatever fails before", () => {
    expect(breaker.opening).toBeUndefined();
    const sinceMs = clock.now();
    attempt("-----");
    expect(breaker.opening).toEqual({ sinceMs, remainingMs: 1_000, isProbed: false });
    clock.advance(400);
    expect(breaker.opening).toEqual({ sinceMs, remainingMs: 600, isProbed: false });
    clock.advance(700);
    expect(breaker.opening).toEqual({ sinceMs, remainingMs: 0, isProbed: false });
    const probe = admitted();
    expect(breaker.opening).toEqual({ sinceMs, remainingMs: 0, isProbed: true });
    probe.failed(down);
    expect(breaker.opening).toEqual({ sinceMs, remainingMs: 2_000, isProbed: false });
    clock.advance(2_000);
    attempt("+");
    expect(breaker.opening).toBeUndefined();
  });
});

describe("a closed breaker", () => {
  it.each([
    ["four failures in a row", "----", "closed"],
    ["five failures in a row", "-----", "open"],
    ["a success between failures", "----+----", "closed"],
    ["cancelled attempts between failures", "--..---", "open"],
    ["half of the last twenty", "+-".repeat(10), "closed"],
    ["more than half of the last twenty", "-+".repeat(9) + "--", "open"],
    ["more than half of fewer than twenty", "+--".repeat(6), "closed"],
    ["more than half of twenty, long ago", "--+".repeat(6) + "+".repeat(20) + "----", "closed"],
  ] as const)("after %s (%s) it is %s", (_, results, state) => {
    attempt(results);
    expect(breaker.state).toBe(state);
  });

  it.each<[FailureCode, "open" | "closed"]>([
    ["upstream_unavailable", "open"],
    ["upstream_timeout", "open"],
    ["upstream_protocol", "open"],
    ["upstream_refused_us", "open"],
    ["upstream_rejected", "closed"],
    ["upstream_rate_limited", "closed"],
    ["invalid_request", "closed"],
    ["deadline_exceeded", "closed"],
    ["cancelled", "closed"],
    ["internal", "closed"],
  ])("twenty times %s leave it %s", (code, state) => {
    for (let count = 0; count < 20 && breaker.state === "closed"; count++) admitted().failed(new Failure(code, "no"));
    expect(breaker.state).toBe(state);
  });
});

describe("an open breaker", () => {
  beforeEach(() => attempt("-----"));

  it("refuses permits with the time left, and without an immediate retry", () => {
    clock.advance(400);
    expect(refusal()).toMatchObject({
      code: "upstream_unavailable",
      message: "The upstream model is temporarily disabled after repeated failures (circuit breaker open).",
      retryAfterMs: 600,
      transient: false,
    });
  });

  it("makes the model unavailable whatever opened it, and logs the reason", () => {
    const other = new Breaker(() => ({ ...OPTIONS, failures: 1 }), clock);
    const refused = new Failure("upstream_refused_us", "Our key is wrong.", { upstreamStatus: 401 });
    (other.admit("a") as BreakerPermit).failed(refused);
    expect(other.admit("a")).toMatchObject({ code: "upstream_unavailable", cause: refused });
  });

  it("ends with a probe's first content; a later failure counts as a new one", () => {
    clock.advance(1000);
    const probe = admitted();
    probe.committed();
    expect(breaker.state).toBe("closed");
    expect(admitted()).toBeDefined();
    probe.failed(new Failure("upstream_protocol", "Cut."));
    expect(breaker.state).toBe("closed");
  });

  it("permits one probe afterwards, and no other until that one has ended", () => {
    clock.advance(999);
    expect(breaker.state).toBe("open");
    clock.advance(1);
    expect(breaker.state).toBe("half_open");
    const probe = admitted();
    expect(refusal().retryAfterMs).toBeGreaterThan(0);
    probe.succeeded();
    expect(breaker.state).toBe("closed");
    attempt("++");
  });

  it("permits another probe when the first was abandoned or refused for the caller's fault", () => {
    clock.advance(1_000);
    admitted().abandoned();
    admitted().failed(new Failure("upstream_rejected", "Bad request."));
    admitted().succeeded();
    expect(breaker.state).toBe("closed");
  });

  it("doubles after each failed probe, up to a maximum", () => {
    const rests = [1_000, 2_000, 4_000, 8_000, 8_000];
    for (const openMs of rests) {
      clock.advance(openMs - 1);
      expect(breaker.state).toBe("open");
      clock.advance(1);
      admitted().failed(down);
    }
    expect(refusal().retryAfterMs).toBe(8_000);
  });

  it("is reset by a successful probe: five failures and the first duration", () => {
    clock.advance(1_000);
    admitted().failed(down);
    clock.advance(2_000);
    admitted().succeeded();
    attempt("----");
    expect(breaker.state).toBe("closed");
    attempt("-");
    expect(refusal().retryAfterMs).toBe(1_000);
  });
});

describe("attempts in flight when it opened", () => {
  it("do not extend the open period by failing", () => {
    const passes = Array.from({ length: 10 }, admitted);
    for (const pass of passes) pass.failed(down);
    expect(refusal().retryAfterMs).toBe(1_000);
  });

  it("do not close it by succeeding", () => {
    const late = admitted();
    attempt("-----");
    late.succeeded();
    expect(breaker.state).toBe("open");
  });

  it("do not release the probe's permit when they end", () => {
    const late = admitted();
    attempt("-----");
    clock.advance(1_000);
    admitted();
    late.abandoned();
    expect(breaker.admit("a")).toBeInstanceOf(Failure);
  });
});

describe("failures of several accounts", () => {
  beforeEach(() => {
    attempt("---", "b");
    attempt("--", "c");
  });

  it("open it for all, for a second; then accounts that have not failed so often probe one at a time", () => {
    expect(breaker.admit("d")).toMatchObject({ code: "upstream_unavailable", retryAfterMs: 1_000 });
    clock.advance(1_000);
    expect(breaker.state).toBe("half_open");
    admitted("d").failed(down);
    expect(breaker.admit("e")).toMatchObject({ retryAfterMs: 1_000 });
    clock.advance(1_000);
    // Its own failure, not the shared one: doubled with each probe.
    attempt("-", "d2");
    expect(breaker.admit("d2")).toMatchObject({ retryAfterMs: 1_000 });
    clock.advance(1_000);
    const probe = admitted("e");
    expect(breaker.admit("f")).toBeInstanceOf(Failure);
    probe.committed();
    expect(breaker.state).toBe("closed");
    attempt("+", "f");
  });

  it("keep an account whose probes always fail from those of another one", () => {
    for (let ms = 0; ms < 60_000; ms += 100) {
      const permit = breaker.admit("b");
      if (!(permit instanceof Failure)) permit.failed(down);
      clock.advance(100);
    }
    clock.advance(1_000);
    attempt("++", "d");
    expect(breaker.state).toBe("closed");
  });

  it("have a probe of another account beside one that takes long, whose success closes the breaker", () => {
    clock.advance(1_000);
    const slow = admitted("d");
    clock.advance(4_999);
    expect(breaker.admit("e")).toBeInstanceOf(Failure);
    clock.advance(1);
    expect(breaker.admit("d")).toBeInstanceOf(Failure);
    admitted("e").succeeded();
    expect(breaker.state).toBe("closed");
    slow.failed(down);
    expect(breaker.state).toBe("closed");
  });

  it("have a probe of another account soon beside those that one leaves and begins again", () => {
    clock.advance(1_000);
    let hostile: BreakerPermit | undefined;
    let left = 0;
    let refused = 0;
    for (let ms = 0; breaker.state !== "closed"; ms += 10) {
      if (ms % 4_900 === 0 && hostile !== undefined) {
        hostile.abandoned();
        hostile = undefined;
        left += 1;
      }
      if (hostile === undefined) {
        const permit = breaker.admit("hostile");
        if (!(permit instanceof Failure)) hostile = permit;
      }
      if (ms % 400 === 390) {
        const permit = breaker.admit("honest");
        if (permit instanceof Failure) refused += 1;
        else permit.succeeded();
      }
      expect(ms).toBeLessThan(6_000);
      clock.advance(10);
    }
    expect(left).toBe(1);
    expect(refused).toBeLessThanOrEqual(12);
  });

  it("have no more probes at once because some ended without a verdict", () => {
    clock.advance(1_000);
    for (let round = 0; round < 4; round++) {
      const probes = ["d", "e"].map((account) => breaker.admit(account));
      expect(probes[1]).toBeInstanceOf(Failure);
      clock.advance(1_000);
      (probes[0] as BreakerPermit).abandoned();
    }
    // "d" has probed for four seconds, "f" for none.
    admitted("f");
    clock.advance(4_999);
    expect(breaker.admit("d")).toBeInstanceOf(Failure);
    expect(breaker.admit("e")).toBeInstanceOf(Failure);
    clock.advance(1);
    admitted("e");
    expect(breaker.admit("d")).toBeInstanceOf(Failure);
  });

  it("ignore the result of a probe that was replaced", () => {
    clock.advance(1_000);
    const slow = admitted("d");
    clock.advance(5_000);
    const other = admitted("e");
    slow.failed(down);
    expect(breaker.opening).toMatchObject({ sinceMs: expect.any(Number) });
    other.failed(down);
    expect(breaker.state).toBe("open");
  });
});

describe("failures of one account", () => {
  it("do not open the breaker for others, and while the model works for these it probes at once, one at a time", () => {
    attempt("-----");
    clock.advance(1);
    for (let round = 0; round < 10; round++) {
      attempt("+", "b");
      expect(breaker.state).toBe("closed");
      clock.advance(1);
      const probe = admitted();
      expect(breaker.admit("a")).toBeInstanceOf(Failure);
      probe.failed(down);
      expect(breaker.admit("a")).toBeInstanceOf(Failure);
      clock.advance(1);
    }
    attempt("++++", "c");
  });

  it("are no outage of the model, after which others return bit by bit, while it works for these", () => {
    attempt("+", "b");
    attempt("-----");
    clock.advance(1_000);
    attempt("+");
    expect(breaker.lastOutage).toBeUndefined();
    attempt("-----");
    clock.advance(10_001);
    attempt("+");
    expect(breaker.lastOutage).toBeDefined();
  });

  it("are shown as the breaker's once the model has not worked for another one for a while", () => {
    attempt("+", "b");
    attempt("-----");
    expect(breaker.state).toBe("closed");
    clock.advance(10_001);
    expect(breaker.state).toBe("half_open");
  });

  it("open it when the model worked only for the same account", () => {
    attempt("+");
    attempt("-----");
    expect(breaker.state).toBe("open");
  });

  it("open it for all together with those of another account, when no other account is answered", () => {
    attempt("+", "c");
    clock.advance(3_001);
    attempt("---");
    attempt("-", "b");
    attempt("-");
    expect(breaker.state).toBe("open");
    expect(breaker.admit("c")).toBeInstanceOf(Failure);
  });

  it("do not open it for all together with those of another account while a third one is answered", () => {
    for (let round = 0; round < 50; round++) {
      attempt("+", "c");
      for (const account of ["a", "b"]) {
        const permit = breaker.admit(account);
        if (!(permit instanceof Failure)) permit.failed(down);
      }
      clock.advance(200);
      expect(breaker.state).toBe("closed");
    }
  });

  it("open it for no other account for long, with those of another one, which asks rarely", () => {
    let refused = 0;
    for (let ms = 0; ms < 300_000; ms += 100) {
      for (const account of ["a", "b"]) {
        const permit = breaker.admit(account);
        if (!(permit instanceof Failure)) permit.failed(down);
      }
      if (ms % 10_000 === 9_900) {
        const permit = breaker.admit("c");
        if (permit instanceof Failure) refused += 1;
        else permit.succeeded();
      }
      clock.advance(100);
    }
    expect(refused).toBeLessThan(8);
  });

  it("count with those of others in the latest attempts", () => {
    const round = (): void => {
      clock.advance(3_001);
      attempt("-", "a");
      if (breaker.state !== "closed") return;
      attempt("-", "b");
      attempt("-", "c");
      attempt("+", "a");
      attempt("+", "b");
    };
    for (let count = 0; count < 4; count++) round();
    expect(breaker.state).toBe("closed");
    round();
    expect(breaker.state).toBe("open");
  });

  it("do not concern another one, not even when it has never worked", () => {
    attempt("-----");
    attempt("+", "b");
    expect(breaker.state).toBe("closed");
  });

  it("end its open period early once the model works for another one", () => {
    attempt("-----");
    expect(breaker.admit("a")).toBeInstanceOf(Failure);
    clock.advance(1);
    attempt("+", "b");
    attempt("++");
  });

  it("that were in flight when it opened for all do not prolong that", () => {
    const late = [admitted("d"), admitted("e")];
    attempt("---", "b");
    attempt("--", "c");
    clock.advance(999);
    for (const permit of late) permit.failed(down);
    clock.advance(1);
    attempt("+", "f");
    expect(breaker.state).toBe("closed");
  });
});

describe("a rate limit", () => {
  const limited = (retryAfterMs: number): Failure =>
    new Failure("upstream_rate_limited", "Slow down.", { retryAfterMs });

  it("opens the breaker for the provider's retry-after, at the first time", () => {
    admitted().failed(limited(30_000));
    expect(refusal()).toMatchObject({ code: "upstream_rate_limited", retryAfterMs: 30_000, transient: false });
    clock.advance(30_000);
    admitted().succeeded();
    expect(breaker.state).toBe("closed");
  });

  it("never shortens an open period", () => {
    const late = admitted();
    admitted().failed(limited(30_000));
    late.failed(limited(5_000));
    expect(refusal().retryAfterMs).toBe(30_000);
  });

  it("of one account does not open the breaker while the model works for another one", () => {
    attempt("+", "b");
    admitted().failed(limited(30_000));
    admitted("c").failed(limited(30_000));
    expect(breaker.state).toBe("closed");
    clock.advance(3_001);
    admitted().failed(limited(30_000));
    admitted("c").failed(limited(30_000));
    expect(breaker.state).toBe("open");
    clock.advance(1_000);
    attempt("+", "d");
    expect(breaker.state).toBe("closed");
  });

  it("of several accounts does not open the breaker when it works between them", () => {
    admitted().failed(limited(30_000));
    attempt("+", "b");
    admitted("c").failed(limited(30_000));
    attempt("+", "b");
    expect(breaker.state).toBe("closed");
  });

  it("opens it for a minute at most, and for its own account", () => {
    admitted().failed(limited(600_000));
    expect(refusal().retryAfterMs).toBe(60_000);
    attempt("++", "b");
  });

  it("does not count as a failure", () => {
    attempt("----");
    admitted().failed(new Failure("upstream_rate_limited", "Slow down."));
    expect(breaker.state).toBe("closed");
  });
});

it("follows changed settings, with what it has counted", () => {
  let options = OPTIONS;
  breaker = new Breaker(() => options, clock);
  attempt("--");
  options = { failures: 3, openMs: 3_000, maxOpenMs: 8_000 };
  attempt("-");
  expect(breaker.opening?.remainingMs).toBe(3_000);
  clock.advance(3_000);
  options = { failures: 3, openMs: 500, maxOpenMs: 4_000 };
  admitted().failed(down);
  expect(breaker.opening?.remainingMs).toBe(4_000);
});
