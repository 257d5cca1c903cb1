import { describe, expect, it } from "vitest";
import { NO_CALLER, type LedgerEntry } from "../../../src/core/ledger.ts";
import type { LogPosition, LogQuery } from "../../../src/ledger/ledger-store.ts";
import { type RefusalCount, type RefusedRequest, UNKNOWN_MODEL } from "../../../src/ledger/refusal-store.ts";
import { STEP_MS, type UsageQuery } from "../../../src/ledger/usage-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { entry, NOON } from "./entries.ts";

const ALL = { sinceMs: 0, untilMs: 2 * NOON, by: "none", step: "all" } as const;

function count(changes: Partial<RefusalCount> = {}): RefusalCount {
  return {
    atMs: NOON,
    accountId: "acct_a",
    keyId: "key_a",
    model: "m",
    outcome: "rate_limited",
    refused: 1,
    ...changes,
  };
}

function sample(changes: Partial<LedgerEntry> = {}): RefusedRequest {
  return { entry: entry({ servedModel: undefined, outcome: "rate_limited", ...changes }), message: "Slow down." };
}

/** Registers the suite that every RefusalStore has to pass. */
export function describeRefusalStore(open: () => Promise<Store>): void {
  describe("refused requests", () => {
    it("are added to the sums of usage, beside completions", async () => {
      const { ledger, refusals, usage } = await open();
      await ledger.insert([entry({ accountId: "acct_a", keyId: "key_a" })]);
      const nobody = { accountId: NO_CALLER, keyId: NO_CALLER, model: UNKNOWN_MODEL, outcome: "unauthenticated" };
      await refusals.add([count({ refused: 3 }), count({ outcome: "budget_spent" }), count({ ...nobody })], []);
      await refusals.add([count({ refused: 2 }), count({ ...nobody, atMs: NOON + STEP_MS.hour })], []);
      const sums = async (query: Partial<UsageQuery>) =>
        (await usage.summarize({ ...ALL, ...query })).rows.map(({ group, sums: { completions, failed, refused } }) => [
          group,
          completions,
          failed,
          refused,
        ]);
      expect(await sums({})).toEqual([["", 1, 0, 8]]);
      expect(await sums({ outcome: "rate_limited" })).toEqual([["", 0, 0, 5]]);
      expect(await sums({ outcome: "failed" })).toEqual([["", 0, 0, 8]]);
      expect(await sums({ outcome: "served" })).toEqual([["", 1, 0, 0]]);
      expect(await sums({ accountId: "acct_a" })).toEqual([["", 1, 0, 6]]);
      expect(await sums({ by: "key" })).toEqual([
        ["key_a", 1, 0, 6],
        [NO_CALLER, 0, 0, 2],
      ]);
      expect(await sums({ by: "key", maxGroups: 1 })).toEqual([
        ["key_a", 1, 0, 6],
        ["", 0, 0, 2],
      ]);
      expect(await sums({ by: "model" })).toEqual([
        ["m", 1, 0, 6],
        [UNKNOWN_MODEL, 0, 0, 2],
      ]);
      expect(await sums({ keyId: NO_CALLER, step: "hour" })).toEqual([
        ["", 0, 0, 1],
        ["", 0, 0, 1],
      ]);
    });

    it("are counted once when several processes add to the same rows", async () => {
      const { ledger, refusals, usage } = await open();
      const keys = Array.from({ length: 30 }, (_, index) => `key_${index}`);
      const adding = Array.from({ length: 8 }, (_, run) => {
        const counts = keys.map((keyId) => count({ keyId }));
        const entries = keys.map((keyId) => entry({ keyId }));
        return [refusals.add(run % 2 === 0 ? counts : counts.toReversed(), []), ledger.insert(entries)];
      });
      await Promise.all(adding.flat());
      const [all] = (await usage.summarize(ALL)).rows;
      expect(all?.sums).toMatchObject({ refused: 240, completions: 240 });
    });

    it("are listed as samples, latest end first, in pages and with filters", async () => {
      const { refusals } = await open();
      const all = Array.from({ length: 9 }, (_, index) =>
        sample({ endedAtMs: NOON + (index % 3), keyId: index < 3 ? "key_a" : "key_b", accountId: "acct_a" }),
      );
      const theirs = sample({ accountId: "acct_b", requestedModel: "n", outcome: "budget_spent", endedAtMs: NOON + 5 });
      await refusals.add([], [...all, theirs]);
      // A write that is repeated after a lost answer.
      await refusals.add([], all);
      const inOrder = [theirs, ...all].toSorted(
        ({ entry: a }, { entry: b }) => b.endedAtMs - a.endedAtMs || (a.completionId < b.completionId ? 1 : -1),
      );
      const read = async (query: Partial<LogQuery>): Promise<readonly RefusedRequest[]> => {
        const found: RefusedRequest[] = [];
        for (let after: LogPosition | undefined; ;) {
          const { requests, next } = await refusals.list({ limit: 4, ...query, after });
          found.push(...requests);
          if (next === undefined) return found;
          after = next;
        }
      };
      expect(await read({})).toEqual(inOrder);
      expect(await read({ accountId: "acct_b" })).toEqual([theirs]);
      expect(await read({ keyId: "key_a" })).toHaveLength(3);
      expect(await read({ model: "n" })).toEqual([theirs]);
      expect(await read({ outcome: "budget_spent" })).toEqual([theirs]);
      expect(await read({ outcome: "failed", accountId: "acct_a" })).toHaveLength(9);
      expect(await read({ outcome: "served" })).toEqual([]);
      expect(await read({ sinceMs: NOON + 5, untilMs: NOON + 6 })).toEqual([theirs]);
    });

    it("are found by completion ID and request ID, within an account", async () => {
      const { refusals } = await open();
      const first = sample({ accountId: "acct_a", requestId: "req_same" });
      const second = sample({ accountId: "acct_a", requestId: "req_same", endedAtMs: NOON + 1501 });
      await refusals.add([], [second, first]);
      expect(await refusals.find(first.entry.completionId)).toEqual(first);
      expect(await refusals.find("req_same", ["acct_a"])).toEqual(second);
      expect(await refusals.find("req_same", ["acct_b"])).toBeUndefined();
      expect(await refusals.find(first.entry.completionId, ["acct_b"])).toBeUndefined();
    });

    it("are found by a request ID that another account repeats, among the latest thousand with it", async () => {
      const { refusals } = await open();
      const own = sample({ accountId: "acct_a", requestId: "req_common", endedAtMs: NOON });
      const others = Array.from({ length: 1_000 }, (_, index) =>
        sample({ accountId: "acct_b", requestId: "req_common", endedAtMs: NOON + 1 + index }),
      );
      await refusals.add([], [own, ...others.slice(0, 999)]);
      expect(await refusals.find("req_common", ["acct_a", "acct_c"])).toEqual(own);
      // Without this limit, one account could make the look-ups of others read all that it has sent in a week.
      await refusals.add([], others.slice(999));
      expect(await refusals.find("req_common", ["acct_a", "acct_c"])).toBeUndefined();
    });

    it("may have any text", async () => {
      const { refusals } = await open();
      const odd = { ...sample({ requestedModel: "a\0b\ud800", requestId: "\0" }), message: "\ud800" };
      await refusals.add([], [odd]);
      expect(await refusals.list({ limit: 9 })).toMatchObject({ requests: [{ message: "\uFFFD" }] });
    });

    it("are pruned by whole past days", async () => {
      const { refusals } = await open();
      const old = Array.from({ length: 1_500 }, () => sample({ endedAtMs: NOON - STEP_MS.day }));
      await refusals.prepareDays([NOON - STEP_MS.day, NOON]);
      expect(await refusals.prepareDays([NOON])).toBe(0);
      await refusals.add([], [...old, sample({ endedAtMs: NOON })]);
      while ((await refusals.prune(NOON)) > 0);
      expect((await refusals.list({ limit: 9 })).requests).toHaveLength(1);
    });
  });

  describe("usage by the minute", () => {
    const nowMs = Math.floor(Date.now() / STEP_MS.day) * STEP_MS.day - STEP_MS.hour;
    const minutes = { ...ALL, untilMs: nowMs + STEP_MS.day, grain: "minute" } as const;

    it("has the completions and refused requests of each minute, and of five", async () => {
      const { ledger, refusals, usage } = await open();
      const at = (startedAtMs: number) => entry({ startedAtMs, endedAtMs: startedAtMs + 1 });
      await ledger.insert([at(nowMs), at(nowMs + 59_999), at(nowMs + STEP_MS.minute)]);
      await refusals.add([count({ atMs: nowMs + 7 * STEP_MS.minute, refused: 2 })], []);
      const steps = async (step: UsageQuery["step"]) =>
        (await usage.summarize({ ...minutes, step })).rows.map(({ stepMs, sums: { completions, refused } }) => [
          stepMs! - nowMs,
          completions,
          refused,
        ]);
      expect(await steps("minute")).toEqual([
        [0, 2, 0],
        [STEP_MS.minute, 1, 0],
        [7 * STEP_MS.minute, 0, 2],
      ]);
      expect(await steps("five_minutes")).toEqual([
        [0, 3, 0],
        [STEP_MS.five_minutes, 0, 2],
      ]);
      const within = { ...minutes, sinceMs: nowMs + STEP_MS.minute, untilMs: nowMs + 2 * STEP_MS.minute };
      expect((await usage.summarize(within)).rows[0]?.sums.completions).toBe(1);
    });

    it("is kept for 48 hours", async () => {
      const { ledger, refusals, usage } = await open();
      const before = Date.now() - 49 * STEP_MS.hour;
      await ledger.insert([entry({ startedAtMs: before, endedAtMs: before }), entry({ startedAtMs: nowMs })]);
      await refusals.add([count({ atMs: before }), count({ atMs: nowMs })], []);
      expect((await usage.summarize(minutes)).rows[0]?.sums).toMatchObject({ completions: 1, refused: 1 });
      expect((await usage.summarize({ ...minutes, grain: "hour" })).rows[0]?.sums).toMatchObject({
        completions: 2,
        refused: 2,
      });
      while ((await usage.pruneMinutes(nowMs + 2 * STEP_MS.day)) > 0);
      expect((await usage.summarize(minutes)).rows).toEqual([]);
    });
  });
}
