import { describe, expect, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import { createKey } from "../../../src/access/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { monthOf } from "../../../src/core/month.ts";
import type { Store } from "../../../src/store/store.ts";
import { entry, NOON } from "./entries.ts";

/** What every LedgerStore promises. */
export function describeLedgerStore(open: () => Promise<Store>): void {
  describe("the ledger", () => {
    it("gives entries back as they were written, the newest first", async () => {
      const { ledger } = await open();
      const attempt = { model: "m", outcome: "served", upstreamStatus: 200, reason: "", durationMs: 3 };
      const first = entry({ attempts: [attempt] as never, firstContentMs: 12.5, partial: true });
      const second = entry({ startedAtMs: NOON + 1, servedModel: undefined, outcome: "rate_limited", estimated: true });
      const other = entry({ startedAtMs: NOON + 2, accountId: "acct_other" });
      await ledger.insert([first, second, other]);
      expect(await ledger.list({ limit: 9, beforeMs: NOON + 9 })).toEqual([other, second, first]);
      expect(await ledger.list({ limit: 1, beforeMs: NOON + 2 })).toEqual([second]);
      expect(await ledger.list({ limit: 9, beforeMs: NOON + 9, accountId: "acct_other" })).toEqual([other]);
    });

    it("gives page after page, also where many started in one millisecond", async () => {
      const { ledger } = await open();
      const entries = Array.from({ length: 25 }, (_, index) => entry({ startedAtMs: NOON + (index % 3) }));
      await ledger.insert(entries);
      const seen: string[] = [];
      let from: { beforeMs: number; beforeId?: string } = { beforeMs: NOON + 9 };
      for (;;) {
        const page = await ledger.list({ limit: 4, ...from });
        seen.push(...page.map(({ completionId }) => completionId));
        const last = page.at(-1);
        if (last === undefined) break;
        from = { beforeMs: last.startedAtMs, beforeId: last.completionId };
      }
      expect(seen).toHaveLength(25);
      expect(new Set(seen)).toEqual(new Set(entries.map(({ completionId }) => completionId)));
    });

    it("writes whatever callers call their requests and models", async () => {
      const { ledger } = await open();
      await ledger.insert([entry({ requestId: "a\0b", requestedModel: "\ud800", servedModel: "😀" })]);
      const [written] = await ledger.list({ limit: 1, beforeMs: NOON + 1 });
      expect(written).toMatchObject({ requestId: "a\uFFFDb", requestedModel: "\uFFFD", servedModel: "😀" });
    });

    it("writes each entry once, and counts it once, however often it comes", async () => {
      const { ledger } = await open();
      const entries = Array.from({ length: 20 }, () => entry());
      await Promise.all([ledger.insert(entries), ledger.insert(entries.toReversed()), ledger.insert(entries)]);
      await ledger.insert([...entries.slice(5), entry()]);
      expect(await ledger.list({ limit: 99, beforeMs: NOON + 1 })).toHaveLength(21);
      const spent = { spentMicroUsd: 21 * 30, heldMicroUsd: 0 };
      expect(await ledger.spending([`account:${DEFAULT_ACCOUNT_ID}`], "2026-11")).toEqual([spent]);
      expect(await ledger.spending(["key:key_gone"], "2026-11")).toEqual([spent]);
      expect(await ledger.spending(["key:key_gone"], "2026-12")).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 0 }]);
    });

    it("charges the line of a rotated key, in the month whose budget let it in", async () => {
      const { ledger, budgets } = await open();
      const holds = [{ subject: "key:key_first", limitMicroUsd: 1_000 }];
      const completionId = "chatcmpl-rotated";
      await budgets.hold({ id: completionId, holds, amountMicroUsd: 500, lastsMs: 60_000 });
      const month = monthOf(Date.now());
      expect(await ledger.spending(["key:key_first"], month)).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 500 }]);
      // Its process has another month.
      await ledger.insert([{ ...entry({ completionId, startedAtMs: 0 }), lineId: "key_first" }]);
      expect(await ledger.spending(["key:key_first"], month)).toEqual([{ spentMicroUsd: 30, heldMicroUsd: 0 }]);
      expect(await ledger.spending(["key:key_gone"], month)).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 0 }]);
    });

    it("takes more entries at once than a statement has room for", async () => {
      const { ledger } = await open();
      await ledger.insert(Array.from({ length: 1201 }, () => entry({ costMicroUsd: 1 })));
      expect(await ledger.spending(["key:key_gone"], "2026-11")).toEqual([{ spentMicroUsd: 1201, heldMicroUsd: 0 }]);
    });

    it("says what many have spent in their order, and of some nothing", async () => {
      const { ledger } = await open();
      await ledger.insert([entry({ keyId: "key_b", costMicroUsd: 7 }), entry({ keyId: "key_a" })]);
      const subjects = [
        "key:key_b",
        "key:key_none",
        "key:key_a",
        ...Array.from({ length: 700 }, (_, at) => `key:${at}`),
      ];
      const spent = await ledger.spending(subjects, "2026-11");
      expect(spent.map(({ spentMicroUsd }) => spentMicroUsd)).toEqual([7, 0, 30, ...Array(700).fill(0)]);
      expect(await ledger.spending([], "2026-11")).toEqual([]);
    });

    it("notes when a key was last used, and never an earlier moment", async () => {
      const { ledger, keys } = await open();
      const { record } = await createKey({ store: keys, clock: systemClock }, { name: "a" });
      await ledger.insert([entry({ keyId: record.id, endedAtMs: 500 }), entry({ keyId: record.id, endedAtMs: 900 })]);
      await ledger.insert([entry({ keyId: record.id, endedAtMs: 700 })]);
      expect((await keys.find(record.id))?.lastUsedAtMs).toBe(900);
    });

    it("settles what budgets held, in the month in which it was held", async () => {
      const { ledger, budgets } = await open();
      const subject = "key:key_1";
      const { completionId, ...rest } = entry({ keyId: "key_1", startedAtMs: Date.now() });
      const month = new Date().toISOString().slice(0, 7);
      const holds = [{ subject, limitMicroUsd: 1000 }];
      await budgets.hold({ id: completionId, holds, amountMicroUsd: 100, lastsMs: 60_000 });
      expect(await ledger.spending([subject], month)).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 100 }]);
      await ledger.insert([{ completionId, ...rest }]);
      await ledger.insert([{ completionId, ...rest }]);
      await budgets.cancel(completionId);
      expect(await ledger.spending([subject], month)).toEqual([{ spentMicroUsd: 30, heldMicroUsd: 0 }]);
    });

    it("forgets old entries a bounded number at a time, and not what was spent", async () => {
      const { ledger } = await open();
      await ledger.insert(Array.from({ length: 1500 }, () => entry({ startedAtMs: NOON - 1 })));
      await ledger.insert([entry()]);
      expect(await ledger.prune(NOON)).toBe(1000);
      expect(await ledger.prune(NOON)).toBe(500);
      expect(await ledger.prune(NOON)).toBe(0);
      expect(await ledger.list({ limit: 9, beforeMs: NOON + 1 })).toHaveLength(1);
      expect(await ledger.spending(["key:key_gone"], "2026-11")).toEqual([
        { spentMicroUsd: 1501 * 30, heldMicroUsd: 0 },
      ]);
    });
  });
}
