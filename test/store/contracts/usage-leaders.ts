import { describe, expect, it } from "vitest";
import type { LedgerEntry } from "../../../src/core/ledger.ts";
import { STEP_MS, type UsageQuery } from "../../../src/ledger/usage-store.ts";
import type { Store } from "../../../src/store/store.ts";
import type { OpenStore } from "./contracts.ts";
import { entry, NOON } from "./entries.ts";

/** Registers the suite of reports of many keys. */
export function describeUsageLeaders(open: OpenStore): void {
  describe("usage of more keys than are added up one by one", () => {
    const MIDNIGHT = Math.floor(NOON / STEP_MS.day) * STEP_MS.day;
    const SPAN = { sinceMs: MIDNIGHT, untilMs: MIDNIGHT + 3 * STEP_MS.day };
    const rankAll = ({ usage }: Store) => usage.rank(SPAN, new AbortController().signal);
    /** Costs of keys on each of three days, by the number of the key. */
    const costsOn = (day: number, costs: readonly number[]): LedgerEntry[] =>
      costs.map((costMicroUsd, at) =>
        entry({ keyId: `key_${at}`, accountId: `acct_${at}`, costMicroUsd, startedAtMs: MIDNIGHT + day * STEP_MS.day }),
      );
    const openFull = async (): Promise<Store> => {
      const store = await open({ exactUsageRows: 5 });
      await store.ledger.insert([...costsOn(0, [9, 1, 5]), ...costsOn(1, [1, 8, 5]), ...costsOn(2, [1, 8, 6])]);
      return store;
    };

    it.each(["key", "account"] as const)(
      "is that of the largest leaders of its days by %s, with the exact rest",
      async (by) => {
        const store = await openFull();
        expect(await rankAll(store)).toBe(3);
        const groupsOf = async (query: Partial<UsageQuery>) => {
          const { rows, isChosenByDay } = await store.usage.summarize({ ...SPAN, step: "all", by, ...query });
          return [isChosenByDay, rows.map(({ group, sums }) => [group.replace(/.*_/, ""), sums.costMicroUsd])];
        };
        expect(await groupsOf({ maxGroups: 2 })).toEqual([
          true,
          [
            ["1", 17],
            ["2", 16],
            ["", 11],
          ],
        ]);
        const byDay = [
          ["1", 1],
          ["", 14],
          ["1", 8],
          ["", 6],
          ["1", 8],
          ["", 7],
        ];
        expect(await groupsOf({ maxGroups: 1, step: "day" })).toEqual([true, byDay]);
        expect(await groupsOf({ untilMs: MIDNIGHT + STEP_MS.day, maxGroups: 1 })).toEqual([
          false,
          [
            ["0", 9],
            ["", 6],
          ],
        ]);
        expect(await groupsOf({ maxGroups: 2, outcome: "failed" })).toEqual([false, []]);
      },
    );

    it.each([
      ["model", { model: "small" }],
      ["outcome", { outcome: "upstream_timeout" }],
      ["failures", { outcome: "failed" }],
    ])("with a filter by %s is that of all leaders, also of those that cost little", async (_, filter) => {
      const store = await open({ exactUsageRows: 5 });
      const rare = { servedModel: "small", outcome: "upstream_timeout" } as const;
      for (const day of [0, 1, 2]) {
        const startedAtMs = MIDNIGHT + day * STEP_MS.day;
        const common = costsOn(day, Array<number>(30).fill(100));
        const rest = entry({ ...rare, keyId: "key_0", costMicroUsd: 1, startedAtMs });
        const most = entry({ ...rare, keyId: "key_most", costMicroUsd: 3, startedAtMs });
        await store.ledger.insert([...common, rest, most]);
      }
      await rankAll(store);
      const query = { ...SPAN, step: "all", by: "key", maxGroups: 1, ...filter } as const;
      const { rows, isChosenByDay } = await store.usage.summarize(query);
      const costs = rows.map(({ group, sums }) => [group, sums.costMicroUsd]);
      expect([isChosenByDay, costs]).toEqual([
        true,
        [
          ["key_most", 9],
          ["", 3],
        ],
      ]);
    });

    it("has one row of all where no leader matches the filter", async () => {
      const store = await openFull();
      await rankAll(store);
      const late = Array.from({ length: 6 }, (_, at) =>
        entry({ keyId: `key_late_${at}`, servedModel: "new", costMicroUsd: 0, startedAtMs: MIDNIGHT }),
      );
      await store.ledger.insert(late);
      const query = { ...SPAN, step: "all", by: "key", maxGroups: 1, model: "new" } as const;
      const { rows } = await store.usage.summarize(query);
      expect(rows.map(({ group, sums }) => [group, sums.completions])).toEqual([["", 6]]);
    });

    it("ranks whole days, also those that the time begins or ends in", async () => {
      const store = await openFull();
      await store.ledger.insert([entry({ startedAtMs: MIDNIGHT + STEP_MS.day + 20 * STEP_MS.hour })]);
      const middleMs = MIDNIGHT + 1.5 * STEP_MS.day;
      const { signal } = new AbortController();
      expect(await store.usage.rank({ ...SPAN, untilMs: middleMs }, signal)).toBe(2);
      expect(await store.usage.rank({ ...SPAN, sinceMs: middleMs }, signal)).toBe(1);
    });

    it("ranks a day again when it has changed by more than one in a hundred", async () => {
      const store = await openFull();
      const day = (count: number) =>
        store.ledger.insert(Array.from({ length: count }, () => entry({ startedAtMs: MIDNIGHT, costMicroUsd: 0 })));
      await day(300);
      expect([await rankAll(store), await rankAll(store)]).toEqual([3, 0]);
      await day(2);
      expect(await rankAll(store)).toBe(0);
      await day(2);
      expect(await rankAll(store)).toBe(1);
    });

    it("is read of all keys while no day is ranked, and once the ranks are pruned", async () => {
      const store = await openFull();
      const isChosenByDay = async () =>
        (await store.usage.summarize({ ...SPAN, step: "all", by: "key", maxGroups: 1 })).isChosenByDay;
      expect(await isChosenByDay()).toBe(false);
      await rankAll(store);
      expect(await isChosenByDay()).toBe(true);
      while ((await store.usage.prune(MIDNIGHT + 3 * STEP_MS.day)) > 0);
      expect(await isChosenByDay()).toBe(false);
    });
  });
}
