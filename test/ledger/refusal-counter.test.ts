import { describe, expect, it } from "vitest";
import { NO_CALLER } from "../../src/core/ledger.ts";
import { RefusalCounter, type RefusalFacts } from "../../src/ledger/refusal-counter.ts";
import {
  type RefusalCount,
  type RefusalStore,
  type RefusedRequest,
  UNKNOWN_MODEL,
} from "../../src/ledger/refusal-store.ts";
import { entry } from "../store/contracts/entries.ts";
import { FakeClock } from "../support/fake-clock.ts";

const MINUTE_MS = 60_000;

/** A counter on a store in memory, which fails while `isAway`. */
function start() {
  const clock = new FakeClock();
  const counts = new Map<string, number>();
  const batches: { readonly counts: readonly RefusalCount[]; readonly samples: readonly RefusedRequest[] }[] = [];
  const troubles: unknown[] = [];
  const state = { isAway: false };
  const add: RefusalStore["add"] = async (added, samples) => {
    if (state.isAway) throw new Error("away");
    batches.push({ counts: added, samples });
    for (const { refused, atMs, accountId, keyId, model, outcome } of added) {
      const name = [Math.floor(atMs / MINUTE_MS), accountId, keyId, model, outcome].join(" ");
      counts.set(name, (counts.get(name) ?? 0) + refused);
    }
  };
  const counter = new RefusalCounter({ store: { add }, clock, onTrouble: (trouble) => void troubles.push(trouble) });
  const facts = (changes: Partial<RefusalFacts> = {}): RefusalFacts => ({
    atMs: clock.now(),
    accountId: "acct",
    keyId: "key",
    model: "m",
    outcome: "rate_limited",
    ...changes,
  });
  const total = (): number => counts.values().reduce((sum, count) => sum + count, 0);
  return { clock, counter, counts, batches, troubles, state, facts, total };
}

const sample = (): RefusedRequest => ({ entry: entry(), message: "No." });

describe("refusals", () => {
  it("of the same minute, key, model and failure are written as one row", async () => {
    const { clock, counter, batches, facts } = start();
    for (let index = 0; index < 10_000; index += 1) counter.count(facts());
    counter.count(facts({ outcome: "budget_spent" }));
    await clock.pass(2_000);
    expect(batches).toEqual([
      {
        counts: [{ ...facts(), atMs: expect.any(Number), refused: 10_000 }, expect.objectContaining({ refused: 1 })],
        samples: [],
      },
    ]);
    expect(clock.pending).toBe(0);
  });

  it("of more than 500 combinations in a minute are counted without key and model", async () => {
    const { clock, counter, counts, batches, facts, total } = start();
    for (let index = 0; index < 20_000; index += 1) counter.count(facts({ accountId: `acct_${index}` }));
    await clock.pass(2_000);
    expect([counts.size, total()]).toEqual([501, 20_000]);
    const minute = Math.floor(clock.now() / MINUTE_MS);
    expect(counts.get([minute, NO_CALLER, NO_CALLER, UNKNOWN_MODEL, "rate_limited"].join(" "))).toBe(19_500);
    expect(Math.max(...batches.map((batch) => batch.counts.length))).toBe(200);
    // The next minute has room again.
    await clock.pass(MINUTE_MS);
    counter.count(facts({ keyId: "another" }));
    await clock.pass(2_000);
    expect(counts.size).toBe(502);
  });

  it("of a key that names many models, and of an account with many keys, leave those of others apart", async () => {
    const { clock, counter, counts, facts, total } = start();
    for (let index = 0; index < 600; index += 1) counter.count(facts({ keyId: "hostile", model: `m_${index}` }));
    counter.count(facts({ keyId: "victim" }));
    for (let index = 0; index < 600; index += 1) counter.count(facts({ keyId: `key_${index}` }));
    counter.count(facts({ accountId: "other", keyId: "other" }));
    await clock.pass(2_000);
    const minute = Math.floor(clock.now() / MINUTE_MS);
    const count = (accountId: string, keyId: string, model = "m"): number | undefined =>
      counts.get([minute, accountId, keyId, model, "rate_limited"].join(" "));
    expect([count("acct", "hostile", "m_49"), count("acct", "hostile", "m_50")]).toEqual([1, undefined]);
    expect(count("acct", "hostile", UNKNOWN_MODEL)).toBe(550);
    expect([count("acct", "victim"), count("other", "other")]).toEqual([1, 1]);
    expect([counts.size, total()]).toEqual([252, 1_202]);
  });

  it("are sampled: 5 of a key and failure in a minute, 25 of an account, 100 in all", () => {
    const { clock, counter, facts } = start();
    const wanted = (changes: Partial<RefusalFacts>, times = 10): number =>
      Array.from({ length: times }, () => counter.count(facts(changes))).filter(Boolean).length;
    expect(wanted({})).toBe(5);
    expect(wanted({ outcome: "budget_spent" })).toBe(5);
    expect(wanted({ keyId: "a" }) + wanted({ keyId: "b" }) + wanted({ keyId: "c" }) + wanted({ keyId: "d" })).toBe(15);
    const others = Array.from({ length: 30 }, (_, index) => wanted({ accountId: `acct_${index}` }));
    expect(others.reduce((sum, count) => sum + count, 0)).toBe(75);
    clock.advance(MINUTE_MS);
    expect(wanted({})).toBe(5);
  });

  it("wait in memory, bounded, while the database is unavailable", async () => {
    const { clock, counter, counts, state, troubles, facts, total } = start();
    state.isAway = true;
    for (let minute = 0; minute < 60; minute += 1) {
      for (let index = 0; index < 1_000; index += 1) {
        if (counter.count(facts({ keyId: `key_${index}` }))) counter.sample(sample());
      }
      await clock.pass(MINUTE_MS);
    }
    expect(troubles).toEqual([{ cause: expect.objectContaining({ message: "away" }) }]);
    state.isAway = false;
    await clock.pass(10_000);
    expect(troubles).toHaveLength(2);
    expect(troubles[1]).toBeUndefined();
    expect(total()).toBe(60_000);
    expect(counts.size).toBeLessThan(5_100);
    expect(await counter.close()).toBe(0);
  });

  it("are written at the end of the process, which says how many could not be", async () => {
    const { clock, counter, batches, state, facts } = start();
    if (counter.count(facts())) counter.sample(sample());
    expect(await counter.close()).toBe(0);
    expect(batches).toHaveLength(1);
    state.isAway = true;
    counter.count(facts());
    counter.count(facts());
    expect(await counter.close()).toBe(2);
    expect(clock.pending).toBe(0);
  });
});
