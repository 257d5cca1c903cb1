import { describe, expect, it } from "vitest";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import { createKey } from "../../../src/access/keys.ts";
import { monthOf, systemClock } from "../../../src/core/clock.ts";
import type { LedgerStore, LogPosition, LogQuery } from "../../../src/ledger/ledger-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { entry, NOON, UNREADABLE } from "./entries.ts";
import { attemptOf } from "../../support/attempt.ts";

const DAY_MS = 86_400_000;

/** Registers the suite that every LedgerStore has to pass. */
export function describeLedgerStore(open: () => Promise<Store>): void {
  describe("the ledger", () => {
    it("lists entries as they were written, latest end first", async () => {
      const { ledger } = await open();
      const rate = { limit: 600, remaining: 12, resetMs: 58_800 };
      const first = entry({
        attempts: [attemptOf({ upstreamStatus: 200, durationMs: 3, startMs: 1 })],
        firstContentMs: 12.5,
        tokens: {
          prompt: 9,
          cached: 1,
          completion: 3,
          reasoning: 0,
          image: 0,
          cacheWrite: 4,
          webSearches: 2,
          unknown: ["a.b"],
        },
        partial: true,
        limits: { requests: rate, tokens: { limit: 9e9, remaining: 0, resetMs: 60_000 } },
      });
      const second = entry({
        endedAtMs: NOON + 2001,
        servedModel: undefined,
        outcome: "rate_limited",
        estimated: true,
        limits: { requests: undefined, tokens: rate },
      });
      // Started first and ended last.
      const other = entry({
        startedAtMs: NOON - 9,
        endedAtMs: NOON + 2002,
        limits: { requests: rate, tokens: undefined },
      });
      await ledger.insert([first, second, other]);
      expect(await ledger.list({ limit: 9 })).toEqual({ entries: [other, second, first], next: undefined });
      expect(await ledger.list({ limit: 1, untilMs: NOON + 2002 })).toMatchObject({ entries: [second] });
    });

    it("lists pages, also when many entries ended in one millisecond", async () => {
      const { ledger } = await open();
      const entries = Array.from({ length: 25 }, (_, index) => entry({ endedAtMs: NOON + (index % 3) }));
      await ledger.insert(entries);
      const pages = await readAll(ledger, { limit: 5 });
      expect(pages.map((page) => page.length)).toEqual([5, 5, 5, 5, 5]);
      const inOrder = entries.toSorted(
        (a, b) => b.endedAtMs - a.endedAtMs || (a.completionId < b.completionId ? 1 : -1),
      );
      expect(pages.flat()).toEqual(inOrder.map(({ completionId }) => completionId));
    });

    it("filters by account, key, model, outcome and time", async () => {
      const { ledger } = await open();
      const entries = {
        a: entry({ completionId: "a", endedAtMs: NOON + 6, accountId: "acct_a", keyId: "key_a" }),
        b: entry({ completionId: "b", endedAtMs: NOON + 5, accountId: "acct_b", keyId: "key_b", servedModel: "n" }),
        c: entry({ completionId: "c", endedAtMs: NOON + 4, accountId: "acct_b", keyId: "key_c", requestedModel: "n" }),
        d: entry({ completionId: "d", endedAtMs: NOON + 3, outcome: "upstream_timeout", servedModel: undefined }),
        e: entry({ completionId: "e", endedAtMs: NOON + 2, outcome: "cancelled", accountId: "acct_a" }),
      };
      await ledger.insert(Object.values(entries));
      const list = async (query: Partial<LogQuery>) => (await readAll(ledger, { limit: 2, ...query })).flat().join("");
      expect(await list({ accountId: "acct_b" })).toBe("bc");
      expect(await list({ keyId: "key_a" })).toBe("a");
      expect(await list({ accountId: "acct_b", keyId: "key_a" })).toBe("");
      expect(await list({ model: "n" })).toBe("bc");
      expect(await list({ model: "m" })).toBe("abcde");
      expect(await list({ outcome: "failed" })).toBe("de");
      expect(await list({ outcome: "cancelled", accountId: "acct_a" })).toBe("e");
      expect(await list({ outcome: "served" })).toBe("abc");
      expect(await list({ sinceMs: NOON + 3, untilMs: NOON + 5 })).toBe("cd");
      expect(await list({ accountId: "acct_b", keyId: "key_c", model: "n", outcome: "served", sinceMs: NOON })).toBe(
        "c",
      );
    });

    it("finds an entry by the completion's ID, or the latest one by the request's ID", async () => {
      const { ledger } = await open();
      const [first, second] = [
        entry({ completionId: "one", requestId: "same", endedAtMs: NOON, accountId: "acct_a" }),
        // A caller's request ID may equal another completion's ID.
        entry({ completionId: "two", requestId: "one", endedAtMs: NOON + 1, accountId: "acct_b" }),
      ];
      const third = entry({ completionId: "three", requestId: "same", endedAtMs: NOON + 2, accountId: "acct_b" });
      await ledger.insert([first, second, third]);
      expect(await ledger.find("two")).toEqual(second);
      expect(await ledger.find("one")).toEqual(first);
      expect(await ledger.find("one", ["acct_b"])).toEqual(second);
      expect(await ledger.find("same")).toEqual(third);
      expect(await ledger.find("same", ["acct_a"])).toEqual(first);
      expect(await ledger.find("same", ["acct_c"])).toBeUndefined();
      expect(await ledger.find("none")).toBeUndefined();
    });

    it("accepts any text as request ID and model", async () => {
      const { ledger } = await open();
      await ledger.insert([entry({ requestId: "a\0b", requestedModel: "\ud800", servedModel: "😀" })]);
      const [written] = (await ledger.list({ limit: 1 })).entries;
      expect(written).toMatchObject({ requestId: "a\uFFFDb", requestedModel: "\uFFFD", servedModel: "😀" });
    });

    it("writes and counts each entry once, however often it is inserted", async () => {
      const { ledger } = await open();
      const entries = Array.from({ length: 20 }, () => entry());
      await Promise.all([ledger.insert(entries), ledger.insert(entries.toReversed()), ledger.insert(entries)]);
      // The next insert meets entries that are already in the tables.
      await ledger.flush();
      await ledger.insert([...entries.slice(5), entry()]);
      expect((await ledger.list({ limit: 99 })).entries).toHaveLength(21);
      const spent = { spentMicroUsd: 21 * 30, heldMicroUsd: 0 };
      expect(await ledger.spending([`account:${DEFAULT_ACCOUNT_ID}`], "2026-11")).toEqual([spent]);
      expect(await ledger.spending(["key:key_gone"], "2026-11")).toEqual([spent]);
      expect(await ledger.spending(["key:key_gone"], "2026-12")).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 0 }]);
    });

    it("writes entries beside one that cannot be written", async () => {
      const { ledger } = await open();
      await ledger.insert([entry()]);
      await ledger.insert([UNREADABLE]);
      await ledger.insert([entry()]);
      await expect(ledger.flush()).rejects.toThrow(/null/);
      expect((await ledger.list({ limit: 9 })).entries).toHaveLength(2);
    });

    it("charges the family of a rotated key, in the month of its hold", async () => {
      const { ledger, budgets } = await open();
      const holds = [{ subject: "key:key_first", limitMicroUsd: 1_000 }];
      const completionId = "chatcmpl-rotated";
      await budgets.hold({ id: completionId, holds, amountMicroUsd: 500, lastsMs: 60_000, replica: "a" });
      const month = monthOf(Date.now());
      expect(await ledger.spending(["key:key_first"], month)).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 500 }]);
      // The replica's clock is in another month.
      await ledger.insert([{ ...entry({ completionId, startedAtMs: 0 }), keyFamilyId: "key_first" }]);
      expect(await ledger.spending(["key:key_first"], month)).toEqual([{ spentMicroUsd: 30, heldMicroUsd: 0 }]);
      expect(await ledger.spending(["key:key_gone"], month)).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 0 }]);
    });

    it("accepts more entries at once than fit into a statement", async () => {
      const { ledger } = await open();
      await ledger.insert(Array.from({ length: 1201 }, () => entry({ costMicroUsd: 1 })));
      expect(await ledger.spending(["key:key_gone"], "2026-11")).toEqual([{ spentMicroUsd: 1201, heldMicroUsd: 0 }]);
    });

    it("returns the spending of many subjects in their order, zero for unknown ones", async () => {
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

    it("records when a key was last used, and never an earlier time", async () => {
      const { ledger, keys } = await open();
      const { record } = await createKey({ store: keys, clock: systemClock }, { name: "a" });
      await ledger.insert([entry({ keyId: record.id, endedAtMs: 500 }), entry({ keyId: record.id, endedAtMs: 900 })]);
      await ledger.insert([entry({ keyId: record.id, endedAtMs: 700 })]);
      expect((await keys.find(record.id))?.lastUsedAtMs).toBe(900);
      expect((await keys.list(undefined)).map(({ lastUsedAtMs }) => lastUsedAtMs)).toEqual([900]);
    });

    it("keeps the last use to the minute after the entries were pruned", async () => {
      const { ledger, keys } = await open();
      const { record } = await createKey({ store: keys, clock: systemClock }, { name: "a" });
      const startedAtMs = NOON - 31 * DAY_MS;
      for (const durationMs of [0, 59_999, 60_000, 90_000]) {
        const endedAtMs = startedAtMs + durationMs;
        await ledger.insert([entry({ keyId: record.id, startedAtMs, endedAtMs })]);
        expect((await keys.find(record.id))?.lastUsedAtMs).toBe(endedAtMs);
      }
      await ledger.prune(NOON);
      expect((await keys.find(record.id))?.lastUsedAtMs).toBe(startedAtMs + 60_000);
    });

    it("settles a hold in the month of the hold", async () => {
      const { ledger, budgets } = await open();
      const subject = "key:key_1";
      const { completionId, ...rest } = entry({ keyId: "key_1", startedAtMs: Date.now() });
      const month = new Date().toISOString().slice(0, 7);
      const holds = [{ subject, limitMicroUsd: 1000 }];
      await budgets.hold({ id: completionId, holds, amountMicroUsd: 100, lastsMs: 60_000, replica: "a" });
      expect(await ledger.spending([subject], month)).toEqual([{ spentMicroUsd: 0, heldMicroUsd: 100 }]);
      await ledger.insert([{ completionId, ...rest }]);
      await ledger.insert([{ completionId, ...rest }]);
      await budgets.cancel(completionId);
      expect(await ledger.spending([subject], month)).toEqual([{ spentMicroUsd: 30, heldMicroUsd: 0 }]);
    });

    it("prunes the entries of past months, and keeps the spending", async () => {
      const { ledger } = await open();
      const october = { startedAtMs: NOON - 31 * DAY_MS, endedAtMs: NOON - 31 * DAY_MS };
      await ledger.insert(Array.from({ length: 1500 }, () => entry(october)));
      await ledger.insert([entry()]);
      while ((await ledger.prune(NOON)) > 0);
      expect((await ledger.list({ limit: 9 })).entries).toHaveLength(1);
      const spent = await Promise.all(["2026-10", "2026-11"].map((month) => ledger.spending(["key:key_gone"], month)));
      expect(spent.flat().map(({ spentMicroUsd }) => spentMicroUsd)).toEqual([1500 * 30, 30]);
    });

    it("accepts entries of any time, whatever tables are prepared", async () => {
      const { ledger } = await open();
      await ledger.prepareMonths([NOON, NOON + 31 * DAY_MS]);
      expect(await ledger.prepareMonths([NOON])).toBe(0);
      const times = [0, NOON, NOON + 900 * DAY_MS, -1e15, 8e15];
      await ledger.insert(times.map((startedAtMs) => entry({ startedAtMs })));
      const { entries } = await ledger.list({ limit: 9 });
      expect(entries.map(({ startedAtMs }) => startedAtMs).toSorted((a, b) => a - b)).toEqual(
        times.toSorted((a, b) => a - b),
      );
    });
  });
}

/** The IDs of all pages. */
async function readAll(ledger: LedgerStore, query: LogQuery): Promise<string[][]> {
  const pages: string[][] = [];
  let after: LogPosition | undefined;
  do {
    const { entries, next } = await ledger.list({ ...query, after });
    pages.push(entries.map(({ completionId }) => completionId));
    after = next;
  } while (after !== undefined);
  return pages;
}
