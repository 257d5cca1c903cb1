import { describe, expect, it } from "vitest";
import { PROCESS_LEASE_MS } from "../../src/ledger/ledger-store.ts";
import { Lease } from "../../src/ledger/lease.ts";
import { FakeClock } from "../support/fake-clock.ts";

/** Its times can jump, without timers. */
class JumpingClock extends FakeClock {
  wallJumpMs = 0;
  monotonicJumpMs = 0;

  override now(): number {
    return super.now() + this.wallJumpMs;
  }

  override monotonic(): number {
    return super.monotonic() + this.monotonicJumpMs;
  }
}

/** A lease in a database that the test takes away, with this many lost completions. */
function setUp(lost = 0) {
  const clock = new JumpingClock();
  const state = { away: false, lost, renewals: 0, batches: 0 };
  const troubles: unknown[] = [];
  const batch = { run: async (): Promise<void> => undefined };
  const lease = new Lease({
    clock,
    process: "p",
    store: {
      async renewLease(process) {
        expect(process).toBe("p");
        state.renewals += 1;
        if (state.away) throw new Error("away");
      },
      async settleLost() {
        state.batches += 1;
        await batch.run();
        const count = Math.min(state.lost, 100);
        state.lost -= count;
        return count;
      },
    },
    onTrouble: (cause) => void troubles.push(cause),
  });
  const closing = new AbortController();
  return { clock, state, troubles, batch, lease, closing, settle: () => lease.settle(closing.signal) };
}

describe("the lease of a process", () => {
  it("is renewed three times in its duration, a second after a failure, and not after its end", async () => {
    const { clock, state, troubles, lease } = setUp();
    await lease.open();
    await clock.pass(PROCESS_LEASE_MS);
    expect(state.renewals).toBe(1 + 3);
    state.away = true;
    await clock.pass(PROCESS_LEASE_MS / 3 + 2_000);
    expect(state.renewals).toBe(4 + 3);
    expect(troubles).toEqual([new Error("away")]);
    state.away = false;
    await clock.pass(1_000 + PROCESS_LEASE_MS / 3);
    expect(state.renewals).toBe(7 + 2);
    await lease.close();
    expect(clock.pending).toBe(0);
  });

  it("cannot be opened while the database is unavailable", async () => {
    const { clock, state, lease } = setUp();
    state.away = true;
    await expect(lease.open()).rejects.toThrow("away");
    expect(clock.pending).toBe(0);
  });

  it("settles for others only after its own renewals have worked for a whole lease", async () => {
    const { clock, state, lease, settle } = setUp(1);
    await lease.open();
    await clock.pass(PROCESS_LEASE_MS - 1);
    expect(await settle()).toBe(0);
    await clock.pass(1);
    expect(await settle()).toBe(1);
    state.away = true;
    await clock.pass(PROCESS_LEASE_MS / 3);
    state.lost = 2;
    expect(await settle()).toBe(0);
    // The others could not renew theirs either.
    state.away = false;
    await clock.pass(PROCESS_LEASE_MS);
    expect(await settle()).toBe(0);
    await clock.pass(1_000);
    expect(await settle()).toBe(2);
  });

  it.each(["monotonicJumpMs", "wallJumpMs"] as const)(
    "gives the others time to renew theirs after a gap (%s)",
    async (jump) => {
      const { clock, lease, settle } = setUp(1);
      await lease.open();
      await clock.pass(2 * PROCESS_LEASE_MS);
      clock[jump] += 0.6 * PROCESS_LEASE_MS;
      expect(await settle()).toBe(0);
      // The next renewal begins the time of the others.
      await clock.pass(PROCESS_LEASE_MS / 3);
      expect(await settle()).toBe(0);
      await clock.pass(PROCESS_LEASE_MS - 1);
      expect(await settle()).toBe(0);
      await clock.pass(1);
      expect(await settle()).toBe(1);
      await lease.close();
    },
  );

  it("is renewed while completions of others are settled, however long that takes", async () => {
    const { clock, state, batch, lease, settle } = setUp(1_000);
    await lease.open();
    await clock.pass(PROCESS_LEASE_MS);
    batch.run = () => new Promise((resolve) => void clock.after(4_000, resolve));
    const settling = settle();
    await clock.pass(PROCESS_LEASE_MS);
    expect(state.renewals).toBe(1 + 6);
    expect(await clock.drive(settling)).toBe(1_000);
    await lease.close();
  });

  it("settles a bounded number of them at a time, and none after the gateway has begun to close", async () => {
    const { clock, state, lease, closing, batch, settle } = setUp(1_000_000);
    await lease.open();
    await clock.pass(PROCESS_LEASE_MS);
    expect(await settle()).toBe(2_000);
    batch.run = async () => closing.abort();
    expect(await settle()).toBe(100);
    expect(state.batches).toBe(20 + 1);
    await lease.close();
  });
});
