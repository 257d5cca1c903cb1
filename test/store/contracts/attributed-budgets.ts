import { describe, expect, it } from "vitest";
import type { AttributedBudget, AttributedBudgetQuery } from "../../../src/access/attributed-budgets.ts";
import { periodAt } from "../../../src/core/clock.ts";
import { attributedOf } from "../../../src/limits/attributed.ts";
import type { Store } from "../../../src/store/store.ts";
import { demand } from "./demands.ts";
import { entry } from "./entries.ts";

const LIMITS = { endUserBudgetMicroUsd: 300, endUserBudgetPeriod: "month", sessionBudgetMicroUsd: 500 } as const;

/** The holds of a request by an end user, of a key family. */
const holdsOf = (endUser: string, keyFamilyId = "key_1") =>
  attributedOf({ keyFamilyId, accountId: "acct_1" }, LIMITS, { endUser, session: `run of ${endUser}` }).holds;

const listOf = (changes: Partial<AttributedBudgetQuery> = {}): AttributedBudgetQuery => ({
  kind: "end_user",
  keyFamilyId: "key_1",
  period: periodAt(Date.now(), "month"),
  search: "",
  limit: 100,
  ...changes,
});

/** End users of the key whose list is measured, and the longest time of a page. */
const MANY = 10_000;
const PAGE_MS = 300;

/** Registers the suite that every AttributedBudgetStore has to pass. */
export function describeAttributedBudgets(open: () => Promise<Store>): void {
  describe("budgets of end users and sessions", () => {
    /** Spends this much of the budgets of an end user. */
    const spend = async ({ budgets, ledger }: Store, endUser: string, costMicroUsd: number): Promise<void> => {
      const asked = demand({ holds: holdsOf(endUser) });
      expect(await budgets.hold(asked)).toEqual({ admitted: true });
      const times = { startedAtMs: Date.now(), endedAtMs: Date.now() };
      await ledger.insert([
        entry({ ...times, completionId: asked.id, keyId: "key_1", costMicroUsd, budgets: holdsOf(endUser) }),
      ]);
    };
    const namesOf = ({ budgets }: { readonly budgets: readonly AttributedBudget[] }) =>
      budgets.map(({ name = "" }) => name);

    it("are listed by name, the one that has spent most first, of one kind, key and period", async () => {
      const store = await open();
      for (const [name, cost] of [
        ["ann", 20],
        ["ben", 30],
        ["cy", 20],
      ] as const)
        await spend(store, name, cost);
      await store.budgets.hold(demand({ holds: holdsOf("dan") }));
      await store.budgets.hold(demand({ holds: holdsOf("of another key", "key_10") }));
      const page = await store.attributedBudgets.list(listOf());
      expect(page.count).toBe(4);
      expect(page.budgets[0]).toMatchObject({
        name: "ben",
        spentMicroUsd: 30,
        heldMicroUsd: 0,
        limitMicroUsd: undefined,
      });
      expect(page.budgets[3]).toMatchObject({ name: "dan", spentMicroUsd: 0, heldMicroUsd: 100 });
      expect(namesOf(page).slice(1, 3).toSorted()).toEqual(["ann", "cy"]);
      const sessions = await store.attributedBudgets.list(listOf({ kind: "session", period: "session" }));
      expect(namesOf(sessions)[0]).toBe("run of ben");
      expect(await store.attributedBudgets.list(listOf({ period: "2020-01" }))).toEqual({ budgets: [], count: 0 });
    });

    it("are found by a part of the name, in which no character is special, and continued after a row", async () => {
      const store = await open();
      for (const name of ["Ann 100%", "ann_1", "annX1", "ben"]) await spend(store, name, 10);
      const find = async (search: string) => namesOf(await store.attributedBudgets.list(listOf({ search }))).toSorted();
      expect(await find("ANN")).toEqual(["Ann 100%", "annX1", "ann_1"]);
      expect(await find("n_1")).toEqual(["ann_1"]);
      expect(await find("0%")).toEqual(["Ann 100%"]);
      expect(await find("\\")).toEqual([]);
      const seen: string[] = [];
      let after: AttributedBudget | undefined;
      do {
        const { budgets, count } = await store.attributedBudgets.list(listOf({ limit: 1, after }));
        expect(count).toBe(4);
        after = budgets[0];
        if (after?.name !== undefined) seen.push(after.name);
      } while (after !== undefined && seen.length < 9);
      expect(seen.toSorted()).toEqual(["Ann 100%", "annX1", "ann_1", "ben"]);
    });

    it("are of one's own where set, also before the first request, until they are the key's again", async () => {
      const { attributedBudgets, budgets } = await open();
      const of = listOf();
      await attributedBudgets.setLimit(of, "ann", 450);
      expect(await attributedBudgets.find(of, "ann")).toMatchObject({
        name: "ann",
        limitMicroUsd: 450,
        spentMicroUsd: 0,
      });
      const hold = () => budgets.hold(demand({ holds: holdsOf("ann").slice(0, 1) }));
      const decisions = await Promise.all(Array.from({ length: 5 }, hold));
      expect(decisions.filter(({ admitted }) => admitted)).toHaveLength(4);
      expect(await hold()).toMatchObject({ admitted: false, limitMicroUsd: 450, takenMicroUsd: 400 });
      await attributedBudgets.setLimit(of, "ann", undefined);
      expect(await hold()).toMatchObject({ admitted: false, limitMicroUsd: 300, takenMicroUsd: 400 });
      await attributedBudgets.setLimit(of, "ann", 0);
      expect(await hold()).toMatchObject({ admitted: false, limitMicroUsd: 0 });
      expect(await attributedBudgets.find(of, "ben")).toBeUndefined();
    });

    it(`of ${MANY} end users are listed and searched within ${PAGE_MS} ms`, { timeout: 120_000 }, async () => {
      const { attributedBudgets, budgets, ledger } = await open();
      for (let part = 0; part < 10; part++) {
        const holds = Array.from({ length: MANY / 10 }, (_, index) => holdsOf(`user-${part * 1_000 + index}`)[0]!);
        const asked = demand({ holds });
        await budgets.hold(asked);
        const spent = { completionId: asked.id, keyId: "key_1", costMicroUsd: part, budgets: holds };
        await ledger.insert([entry({ ...spent, startedAtMs: Date.now(), endedAtMs: Date.now() })]);
      }
      const first = await attributedBudgets.list(listOf());
      expect([first.count, first.budgets[0]?.spentMicroUsd]).toEqual([MANY, 9]);
      const middle = { spentMicroUsd: 5, id: "m" };
      for (const query of [listOf(), listOf({ after: middle }), listOf({ search: "99" })]) {
        const times: number[] = [];
        for (let run = 0; run < 3; run++) {
          const begun = performance.now();
          await attributedBudgets.list(query);
          times.push(performance.now() - begun);
        }
        expect(Math.min(...times)).toBeLessThan(PAGE_MS);
      }
    });
  });
}
