import { describe, expect, it } from "vitest";
import type { Clock } from "../../src/core/clock.ts";
import { createThrottle, type Guesser, type Throttle } from "../../src/access/throttle.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openMemoryStores } from "../support/memory-database.ts";

const NETWORK = "192.0.2.0/24";
const MINUTE_MS = 60_000;

function setUp() {
  const clock = new FakeClock();
  const store = openMemoryStores().throttles;
  const update = store.update.bind(store);
  let writes = 0;
  store.update = (subject, change) => {
    writes += 1;
    return update(subject, change);
  };
  return { clock, throttle: createThrottle(store, clock), writes: () => writes };
}

let made = 0;

/** Limited attempts of networks and addresses, with the permitted number. */
const KINDS: readonly [name: string, most: number, enter: (throttle: Throttle) => Promise<unknown>][] = [
  ["sign-ups", 20, (throttle) => throttle.enterSignUp(NETWORK)],
  ["requests for a password", 20, (throttle) => throttle.enterReset(NETWORK, `${(made += 1)}@example.com`)],
  ["passkeys", 20, (throttle) => throttle.enter("passkey", { kind: "unknown", network: NETWORK })],
  [
    "passwords",
    120,
    (throttle) => throttle.attempt(`${(made += 1)}@example.com`, { kind: "unknown", network: NETWORK }, false),
  ],
];

describe("an account with too many", () => {
  const EMAIL = "ada@example.com";
  const known = { kind: "browser", hash: "one" } as const;

  it("right passwords waits for the next minute, its known browsers and sessions for themselves", async () => {
    const { clock, throttle, writes } = setUp();
    clock.advance(MINUTE_MS - (clock.now() % MINUTE_MS));
    const signIn = async (guesser: Guesser) => (await throttle.attempt(EMAIL, guesser, true)).succeeded();
    const unknown = { kind: "unknown", network: NETWORK } as const;
    for (let count = 0; count < 60; count += 1) await signIn(count % 2 === 0 ? known : { ...known, kind: "session" });
    const refusal = { code: "rate_limited", retryAfterMs: MINUTE_MS };
    await expect(signIn(known)).rejects.toMatchObject(refusal);
    const before = writes();
    for (let count = 0; count < 5; count += 1) await expect(signIn(known)).rejects.toMatchObject(refusal);
    expect(writes()).toBe(before);
    for (let count = 0; count < 60; count += 1) await signIn(unknown);
    await expect(signIn(unknown)).rejects.toMatchObject(refusal);
    clock.advance(MINUTE_MS);
    await signIn(known);
    await signIn(unknown);
  });

  it("attempts is not throttled for those that were refused for that", async () => {
    const { clock, throttle } = setUp();
    for (let count = 0; count < 60; count += 1) await (await throttle.attempt(EMAIL, known, true)).succeeded();
    for (let count = 0; count < 20; count += 1)
      await expect(throttle.attempt(EMAIL, known, true)).rejects.toMatchObject({ code: "rate_limited" });
    clock.advance(MINUTE_MS);
    for (let count = 0; count < 9; count += 1) await throttle.attempt(EMAIL, known, true);
    await (await throttle.attempt(EMAIL, known, true)).succeeded();
  });
});

describe("a network with too many", () => {
  it.each(KINDS)("%s is refused without the database until the minute is over", async (_, most, enter) => {
    const { clock, throttle, writes } = setUp();
    clock.advance(MINUTE_MS - (clock.now() % MINUTE_MS));
    for (let count = 0; count < most; count += 1) await enter(throttle);
    await expect(enter(throttle)).rejects.toMatchObject({ code: "rate_limited", retryAfterMs: MINUTE_MS });
    const before = writes();
    clock.advance(20_000);
    for (let count = 0; count < 5; count += 1)
      await expect(enter(throttle)).rejects.toMatchObject({ code: "rate_limited", retryAfterMs: 40_000 });
    expect(writes()).toBe(before);
    clock.advance(40_000);
    await enter(throttle);
    expect(writes()).toBeGreaterThan(before);
  });

  it.each(KINDS)("%s is refused by processes whose clocks differ", async (_, most, enter) => {
    const store = openMemoryStores().throttles;
    const clocks = [5 * MINUTE_MS, 0].map((aheadMs) => new FakeClock(Date.UTC(2026, 10, 21) + aheadMs));
    const throttles = clocks.map((clock) => createThrottle(store, clock));
    for (let count = 0; count < most; count += 1) await enter(throttles[count % 2]!);
    for (const throttle of throttles) await expect(enter(throttle)).rejects.toMatchObject({ code: "rate_limited" });
  });

  it("passkeys is asked for again once one of them was right", async () => {
    const { throttle } = setUp();
    const enter = () => throttle.enter("passkey", { kind: "unknown", network: NETWORK });
    const attempts = [];
    for (let count = 0; count < 20; count += 1) attempts.push(await enter());
    await expect(enter()).rejects.toMatchObject({ code: "rate_limited" });
    for (const attempt of attempts.slice(0, 2)) await attempt.succeeded();
    await enter();
  });
});

it("a clock that is set back by a day makes nobody wait for a day", async () => {
  const clock = new FakeClock();
  let backMs = 0;
  const steppable: Clock = {
    now: () => clock.now() - backMs,
    monotonic: () => clock.monotonic(),
    after: (delayMs, callback) => clock.after(delayMs, callback),
  };
  const throttle = createThrottle(openMemoryStores().throttles, steppable);
  const guess = () => throttle.attempt("ada@example.com", { kind: "unknown", network: NETWORK }, true);
  const fill = async (enter: () => Promise<unknown>): Promise<void> => {
    for (let count = 0; count < 20; count += 1) await enter().catch(() => undefined);
    await expect(enter()).rejects.toMatchObject({ code: "rate_limited" });
  };
  await fill(guess);
  await fill(() => throttle.enterSignUp(NETWORK));
  backMs = 24 * 60 * MINUTE_MS;
  await guess();
  clock.advance(MINUTE_MS);
  await throttle.enterSignUp(NETWORK);
});
