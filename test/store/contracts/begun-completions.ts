import { describe, expect, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import { monthOf, periodAt } from "../../../src/core/clock.ts";
import { type LedgerEntry, type NewLedgerEntry, PROCESS_LOST } from "../../../src/core/ledger.ts";
import type { Note } from "../../../src/ledger/ledger-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { demand } from "./demands.ts";
import { entry } from "./entries.ts";

/** The entry that a completion gets when its process is lost. */
function bound(changes: Partial<NewLedgerEntry> = {}): NewLedgerEntry {
  const startedAtMs = Date.now() - 5_000;
  return entry({
    outcome: PROCESS_LOST,
    servedModel: undefined,
    estimated: true,
    costMicroUsd: 700,
    startedAtMs,
    ...changes,
  });
}

let notes = 0;

/** A note of completions that a process begins. */
function note(process: string, ...entries: readonly LedgerEntry[]): Note {
  return { id: `${process}/${++notes}`, process, entries };
}

/** Sums of the last hours by outcome, without those of no completion. */
async function outcomes({ usage }: Store): Promise<Record<string, readonly [completions: number, cost: number]>> {
  const span = { sinceMs: Date.now() - 7_200_000, untilMs: Date.now() + 7_200_000 };
  const { rows } = await usage.summarize({ ...span, by: "outcome", step: "all" });
  return Object.fromEntries(rows.map(({ group, sums }) => [group, [sums.completions, sums.costMicroUsd]]));
}

/** Registers the suite of completions whose processes end without writing their entries. */
export function describeBegunCompletions(open: () => Promise<Store>): void {
  describe("completions of a process that has ended", () => {
    it("get the entries that they began with, once, and are marked", async () => {
      const store = await open();
      const { ledger } = store;
      const begun = [bound(), bound()];
      await ledger.begin(note("gone", ...begun), []);
      expect(await ledger.settleLost()).toBe(2);
      expect(await ledger.settleLost()).toBe(0);
      const { entries } = await ledger.list({ limit: 9 });
      expect(entries.map(({ completionId }) => completionId).toSorted()).toEqual(
        begun.map(({ completionId }) => completionId).toSorted(),
      );
      for (const one of entries) {
        expect(one).toMatchObject({ outcome: PROCESS_LOST, estimated: true, costMicroUsd: 700 });
        expect(one.durationMs).toBe(one.endedAtMs - one.startedAtMs);
        expect(one.durationMs).toBeGreaterThan(4_000);
      }
      expect(await outcomes(store)).toEqual({ [PROCESS_LOST]: [2, 1_400] });
      expect(await ledger.spending([`account:${DEFAULT_ACCOUNT_ID}`], monthOf(Date.now()))).toEqual([
        { spentMicroUsd: 1_400, heldMicroUsd: 0 },
      ]);
    });

    it("cost what their budgets hold for them, extensions included", async () => {
      const { ledger, budgets } = await open();
      const first = demand({ replica: "gone" });
      await budgets.hold(first);
      await budgets.hold({ ...first, amountMicroUsd: 50, extends: true });
      await ledger.begin(note("gone", bound({ completionId: first.id, keyId: "k", costMicroUsd: 100 })), []);
      expect(await ledger.settleLost()).toBe(1);
      expect(await ledger.find(first.id)).toMatchObject({ outcome: PROCESS_LOST, costMicroUsd: 150 });
      expect(await ledger.spending(["key:k"], monthOf(Date.now()))).toEqual([{ spentMicroUsd: 150, heldMicroUsd: 0 }]);
    });

    it("release holds of those that did not begin, long before they expire", async () => {
      const { ledger, budgets } = await open();
      await ledger.renewLease("alive");
      await budgets.hold(demand({ replica: "gone", lastsMs: 900_000 }));
      await budgets.hold(demand({ replica: "alive", lastsMs: 900_000 }));
      expect(await ledger.settleLost()).toBe(1);
      expect(await ledger.spending(["key:k"], monthOf(Date.now()))).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 100 }]);
    });

    it("stay as they are while its lease lasts, and after their entries were written", async () => {
      const { ledger } = await open();
      await ledger.renewLease("alive");
      const [running, ended, cut] = [bound(), bound(), bound()];
      await ledger.begin(note("alive", running), []);
      await ledger.begin(note("gone", ended, cut), []);
      const { completionId, startedAtMs } = ended;
      await ledger.insert([entry({ completionId, startedAtMs })]);
      expect(await ledger.settleLost()).toBe(1);
      expect(await ledger.settleLost()).toBe(0);
      expect(await ledger.find(completionId)).toMatchObject({ outcome: "served", costMicroUsd: 30 });
      expect(await ledger.find(cut.completionId)).toMatchObject({ outcome: PROCESS_LOST });
      expect(await ledger.find(running.completionId)).toBeUndefined();
    });

    it("are looked for behind notes whose completions all have entries", async () => {
      const { ledger } = await open();
      const ended = Array.from({ length: 25 }, () => bound());
      for (const each of ended) await ledger.begin(note("a", each), []);
      await ledger.insert(ended.map(({ completionId, startedAtMs }) => entry({ completionId, startedAtMs })));
      await ledger.begin(note("b", bound()), []);
      expect(await ledger.settleLost()).toBe(1);
    });

    it("have no note once it was removed, alone or with the next note", async () => {
      const { ledger } = await open();
      const [first, second, third] = [note("gone", bound()), note("gone", bound()), note("gone", bound())];
      const end = ({ entries }: Note) =>
        ledger.insert(entries.map(({ completionId, startedAtMs }) => entry({ completionId, startedAtMs })));
      await ledger.begin(first, []);
      await end(first);
      await ledger.begin(second, [first.id]);
      await end(second);
      await ledger.begin(undefined, [second.id]);
      await ledger.begin(third, []);
      expect(await ledger.settleLost()).toBe(1);
      expect(await ledger.find(third.entries[0]!.completionId)).toMatchObject({ outcome: PROCESS_LOST });
    });

    it("are replaced by an entry that is written later, in sums and spending too", async () => {
      const store = await open();
      const { ledger } = store;
      const lost = bound({ keyId: "k" });
      await ledger.begin(note("late", lost), []);
      expect(await ledger.settleLost()).toBe(1);
      const { completionId, startedAtMs, keyId } = lost;
      const real = entry({ completionId, startedAtMs, keyId });
      await ledger.insert([real]);
      await ledger.insert([real]);
      expect(await ledger.find(completionId)).toEqual(real);
      expect((await ledger.list({ limit: 9 })).entries).toHaveLength(1);
      expect(await ledger.spending(["key:k"], monthOf(startedAtMs))).toEqual([{ spentMicroUsd: 30, heldMicroUsd: 0 }]);
      expect(await outcomes(store)).toEqual({ served: [1, 30] });
      // And not by that of a lost process again.
      await ledger.begin(note("late", lost), []);
      await ledger.settleLost();
      expect(await ledger.find(completionId)).toEqual(real);
      expect(await outcomes(store)).toEqual({ served: [1, 30] });
    });

    it("are charged to the budget of their end user, and taken out of it by an entry that comes later", async () => {
      const { ledger, budgets } = await open();
      const ann = { subject: "end_user:k:ann", period: "day" } as const;
      const asked = demand({ holds: [{ ...ann, limitMicroUsd: 1_000 }], replica: "gone" });
      await budgets.hold(asked);
      const lost = bound({ completionId: asked.id, keyId: "k", budgets: [ann] });
      await ledger.begin(note("gone", lost), []);
      expect(await ledger.settleLost()).toBe(1);
      const spent = async () => [
        ...(await ledger.spending([ann.subject], periodAt(lost.startedAtMs, "day"))),
        ...(await ledger.spending(["key:k"], periodAt(lost.startedAtMs, "month"))),
      ];
      const both = (spentMicroUsd: number) => [1, 2].map(() => ({ spentMicroUsd, heldMicroUsd: 0 }));
      expect(await spent()).toEqual(both(100));
      const { completionId, startedAtMs, keyId } = lost;
      await ledger.insert([entry({ completionId, startedAtMs, keyId, budgets: [ann] })]);
      expect(await spent()).toEqual(both(30));
    });

    it("are booked in the month of their hold, and taken out of it by an entry that comes later", async () => {
      const { ledger, budgets } = await open();
      const { id } = demand();
      await budgets.hold(demand({ id, replica: "gone" }));
      const month = monthOf(Date.now());
      // The clock of their process is late, as at a month's end.
      const startedAtMs = Date.now() - 40 * 86_400_000;
      const lost = bound({ completionId: id, keyId: "k", startedAtMs });
      const spent = async (): Promise<readonly number[]> => {
        const months = [month, monthOf(startedAtMs)];
        const found = await Promise.all(months.map((each) => ledger.spending(["key:k"], each)));
        return found.map(([one]) => one!.spentMicroUsd);
      };
      await ledger.begin(note("gone", lost), []);
      await ledger.settleLost();
      expect(await spent()).toEqual([100, 0]);
      // Its process was only late, and is lost again.
      await ledger.begin(note("gone", lost), []);
      await ledger.settleLost();
      expect(await spent()).toEqual([100, 0]);
      await ledger.insert([entry({ completionId: id, keyId: "k", startedAtMs })]);
      expect(await spent()).toEqual([30, 0]);
    });

    it("are settled once by processes that do it at the same moment", async () => {
      const store = await open();
      const { ledger } = store;
      const begun = Array.from({ length: 250 }, () => bound({ costMicroUsd: 1 }));
      await ledger.begin(note("gone", ...begun), []);
      const counts = await Promise.all([ledger.settleLost(), ledger.settleLost(), ledger.settleLost()]);
      expect(counts.reduce((sum, count) => sum + count, 0)).toBe(250);
      expect(await outcomes(store)).toEqual({ [PROCESS_LOST]: [250, 250] });
    });
  });
}
