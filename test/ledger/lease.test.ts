import { describe, expect, it } from "vitest";
import { PROCESS_LEASE_MS } from "../../src/ledger/ledger-store.ts";
import { Lease } from "../../src/ledger/lease.ts";
import { FakeClock } from "../support/fake-clock.ts";

describe("the lease of a process", () => {
  it("settles for others only after its own renewals have worked for a whole lease", async () => {
    const clock = new FakeClock();
    const state = { away: false, settled: 0 };
    const lease = new Lease({
      clock,
      process: "p",
      store: {
        async renewLease(process) {
          expect(process).toBe("p");
          if (state.away) throw new Error("away");
        },
        settleLost: async () => ++state.settled,
      },
    });
    const renew = async (afterMs: number): Promise<number> => {
      clock.advance(afterMs);
      return lease.renew().catch(() => -1);
    };
    expect(await renew(0)).toBe(0);
    expect(await renew(PROCESS_LEASE_MS - 1)).toBe(0);
    expect(await renew(1)).toBe(1);
    state.away = true;
    expect(await renew(PROCESS_LEASE_MS)).toBe(-1);
    // The others could not renew theirs either.
    state.away = false;
    expect(await renew(PROCESS_LEASE_MS)).toBe(0);
    expect(await renew(PROCESS_LEASE_MS)).toBe(2);
  });
});
