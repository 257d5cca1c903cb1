import { describe, expect, it } from "vitest";
import type { Store } from "../../../src/store/store.ts";
import { demand } from "./demands.ts";
import { entry, UNREADABLE } from "./entries.ts";

const month = (): string => new Date().toISOString().slice(0, 7);

/** Registers the suite that every BudgetStore has to pass. */
export function describeBudgetStore(open: () => Promise<Store>): void {
  describe("budgets", () => {
    it("admit demands until the budget is used up, and name the exhausted one", async () => {
      const { budgets, ledger } = await open();
      const decisions = await Promise.all(Array.from({ length: 40 }, () => budgets.hold(demand())));
      expect(decisions.filter(({ admitted }) => admitted)).toHaveLength(10);
      expect(await budgets.hold(demand({ amountMicroUsd: 1 }))).toEqual({
        admitted: false,
        subject: "key:k",
        limitMicroUsd: 1000,
        takenMicroUsd: 1000,
      });
      expect(await ledger.spending(["key:k"], month())).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 1000 }]);
    });

    it("hold from all of a demand's subjects, or from none", async () => {
      const { budgets, ledger } = await open();
      const holds = [
        { subject: "key:k", limitMicroUsd: 1000 },
        { subject: "account:a", limitMicroUsd: 150 },
      ];
      expect(await budgets.hold(demand({ holds }))).toEqual({ admitted: true });
      expect(await budgets.hold(demand({ holds }))).toMatchObject({ subject: "account:a", takenMicroUsd: 100 });
      expect(await ledger.spending(["key:k"], month())).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 100 }]);
      expect(await budgets.hold(demand({ holds: [] }))).toEqual({ admitted: true });
    });

    it("count the cost of a completion instead of its hold as soon as its entry is written", async () => {
      const { budgets, ledger } = await open();
      const all = demand({ amountMicroUsd: 1000 });
      expect(await budgets.hold(all)).toEqual({ admitted: true });
      await ledger.insert([entry({ completionId: all.id, keyId: "k", costMicroUsd: 30 })]);
      expect(await budgets.hold(demand({ amountMicroUsd: 970 }))).toEqual({ admitted: true });
      expect(await budgets.hold(demand({ amountMicroUsd: 1 }))).toMatchObject({ takenMicroUsd: 1000 });
    });

    it("keep an expired hold as long as its entry waits to be written", async () => {
      const { budgets, ledger } = await open();
      const [waiting, lost] = [demand({ lastsMs: 0 }), demand({ lastsMs: 0 })];
      for (const each of [waiting, lost]) await budgets.hold(each);
      await ledger.insert([entry({ completionId: waiting.id, keyId: "k" }), UNREADABLE]);
      expect(await budgets.reap()).toBe(1);
      expect(await budgets.reap()).toBe(0);
      expect(await ledger.spending(["key:k"], month())).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 100 }]);
    });

    it("extend the hold of a completion for another attempt, until its entry is written", async () => {
      const { budgets, ledger } = await open();
      const first = demand();
      const more = { ...first, amountMicroUsd: 250, extends: true };
      await budgets.hold(first);
      expect(await budgets.hold(more)).toEqual({ admitted: true });
      expect(await budgets.hold(more)).toEqual({ admitted: true });
      expect(await ledger.spending(["key:k"], month())).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 600 }]);
      expect(await budgets.hold({ ...more, amountMicroUsd: 401 })).toMatchObject({
        subject: "key:k",
        takenMicroUsd: 600,
      });
      await ledger.insert([entry({ completionId: first.id, keyId: "k", costMicroUsd: 550 })]);
      expect(await ledger.spending(["key:k"], month())).toEqual([{ spentMicroUsd: 550, heldMicroUsd: 0 }]);
    });

    it("refuse to extend a hold that does not exist", async () => {
      const { budgets, ledger } = await open();
      expect(await budgets.hold(demand({ extends: true }))).toMatchObject({ admitted: false });
      expect((await ledger.spending(["key:k"], month()))[0]?.heldMicroUsd).toBe(0);
    });

    it("of end users are by day, those of sessions for their whole length, and both are settled beside the key's", async () => {
      const { budgets, ledger } = await open();
      const ann = { subject: "end_user:k:ann", period: "day" } as const;
      const run = { subject: "session:k:run", period: "session" } as const;
      const holds = [
        { subject: "key:k", limitMicroUsd: 9_000 },
        { ...ann, limitMicroUsd: 300 },
        { ...run, limitMicroUsd: 250 },
      ];
      const decisions = await Promise.all([1, 2, 3].map(() => budgets.hold(demand({ holds }))));
      expect(decisions.toSorted((one, other) => Number(other.admitted) - Number(one.admitted))).toEqual([
        { admitted: true },
        { admitted: true },
        { admitted: false, ...holds[2], takenMicroUsd: 200 },
      ]);
      const asked = demand({ holds: holds.slice(0, 2) });
      expect(await budgets.hold(asked)).toEqual({ admitted: true });
      const spent = { completionId: asked.id, keyId: "k", costMicroUsd: 30, startedAtMs: Date.now(), budgets: [ann] };
      await ledger.insert([entry(spent)]);
      const taken = async (subject: string, period: string) => (await ledger.spending([subject], period))[0];
      const day = new Date().toISOString().slice(0, 10);
      expect(await taken("key:k", month())).toEqual({ spentMicroUsd: 30, heldMicroUsd: 200 });
      expect(await taken(ann.subject, day)).toEqual({ spentMicroUsd: 30, heldMicroUsd: 200 });
      expect(await taken(run.subject, "session")).toEqual({ spentMicroUsd: 0, heldMicroUsd: 200 });
      const extension = { ...asked, id: "chatcmpl-unknown", extends: true };
      expect(await budgets.hold(extension)).toMatchObject({ admitted: false });
    });

    it("of end users are charged for completions of which nothing is held, and forgotten after their time", async () => {
      const { budgets, ledger } = await open();
      const longAgo = Date.now() - 3 * 86_400_000;
      const old = { subject: "end_user:k:old", period: "day" } as const;
      const run = { subject: "session:k:old", period: "session" } as const;
      const times = { startedAtMs: longAgo, endedAtMs: longAgo };
      await ledger.insert([entry({ ...times, keyId: "k", costMicroUsd: 30, budgets: [old, run] })]);
      const taken = async () => {
        const [[ofDay], [ofSession]] = await Promise.all([
          ledger.spending([old.subject], new Date(longAgo).toISOString().slice(0, 10)),
          ledger.spending([run.subject], "session"),
        ]);
        return [ofDay?.spentMicroUsd, ofSession?.spentMicroUsd];
      };
      expect(await taken()).toEqual([30, 30]);
      expect(await budgets.reap()).toBe(1);
      expect(await budgets.reap()).toBe(0);
      expect(await taken()).toEqual([0, 30]);
    });

    it("release a cancelled hold, once", async () => {
      const { budgets, ledger } = await open();
      const held = demand();
      await budgets.hold(held);
      await budgets.hold(demand());
      await budgets.cancel(held.id);
      await budgets.cancel(held.id);
      await budgets.cancel("chatcmpl-unknown");
      expect(await ledger.spending(["key:k"], month())).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 100 }]);
    });

    it("release expired holds that were not settled", async () => {
      const { budgets, ledger } = await open();
      const holds = ["key:k", "account:a"].map((subject) => ({ subject, limitMicroUsd: 1000 }));
      await Promise.all([budgets.hold(demand({ holds, lastsMs: 0 })), budgets.hold(demand({ holds, lastsMs: 0 }))]);
      await budgets.hold(demand({ holds }));
      let freed = 0;
      await expect.poll(async () => (freed += await budgets.reap())).toBe(2);
      for (const { subject } of holds)
        expect(await ledger.spending([subject], month())).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 100 }]);
      expect(await budgets.reap()).toBe(0);
    });
  });
}
