import { describe, expect, it } from "vitest";
import type { LogOrder, SortedQuery } from "../../../src/ledger/ledger-store.ts";
import type { Store } from "../../../src/store/store.ts";
import { entry, NOON } from "./entries.ts";

const tokens = (prompt: number, completion: number) => ({ prompt, cached: 0, completion, reasoning: 0, image: 0 });

/** Registers the suite of entries that are listed in another order than that of time. */
export function describeSortedLog(open: () => Promise<Store>): void {
  describe("sorted entries", () => {
    const ENTRIES = [
      { completionId: "a", costMicroUsd: 5, durationMs: 10.5, tokens: tokens(1, 9), firstContentMs: 3.25 },
      { completionId: "b", costMicroUsd: 9, durationMs: 10.25, tokens: tokens(8, 3), firstContentMs: undefined },
      { completionId: "c", costMicroUsd: 5, durationMs: 2000, tokens: tokens(0, 0), firstContentMs: 0.1 },
      { completionId: "D", costMicroUsd: 5, durationMs: 0, tokens: tokens(10, 0), firstContentMs: 1800 },
    ];

    async function listed(store: Store, query: Partial<SortedQuery> & { readonly order: LogOrder }): Promise<string[]> {
      const ids: string[] = [];
      let after: SortedQuery["after"];
      do {
        const page = await store.ledger.listSorted({ limit: 2, ...query, after });
        expect(page.entries.length).toBeLessThanOrEqual(2);
        ids.push(...page.entries.map(({ completionId }) => completionId));
        after = page.next;
      } while (after !== undefined);
      return ids;
    }

    it.each([
      // The same cost: the latest end first, then the largest ID.
      ["cost", ["b", "c", "a", "D"]],
      ["duration", ["c", "a", "b", "D"]],
      ["tokens", ["b", "a", "D", "c"]],
      // Without those that had no content.
      ["firstContent", ["D", "a", "c"]],
      ["time", ["c", "b", "a", "D"]],
    ] as const)("have the largest %s first, page by page, or the smallest", async (order, ids) => {
      const store = await open();
      const ends = { a: NOON, b: NOON, c: NOON + 1, D: NOON };
      await store.ledger.insert(
        ENTRIES.map((each) => entry({ ...each, endedAtMs: ends[each.completionId as keyof typeof ends] })),
      );
      expect(await listed(store, { order })).toEqual(ids);
      expect(await listed(store, { order, isAscending: true })).toEqual(ids.toReversed());
    });

    it("are narrowed by account, key, model, outcome and time", async () => {
      const store = await open();
      await store.ledger.insert([
        entry({ completionId: "a", accountId: "acct_a", costMicroUsd: 1, endedAtMs: NOON }),
        entry({ completionId: "b", keyId: "key_b", costMicroUsd: 2, endedAtMs: NOON + 1 }),
        entry({ completionId: "c", servedModel: "n", costMicroUsd: 3, endedAtMs: NOON + 2 }),
        entry({ completionId: "d", outcome: "cancelled", costMicroUsd: 4, endedAtMs: NOON + 3 }),
      ]);
      const order = "cost";
      expect(await listed(store, { order })).toEqual(["d", "c", "b", "a"]);
      expect(await listed(store, { order, accountId: "acct_a" })).toEqual(["a"]);
      expect(await listed(store, { order, keyId: "key_b" })).toEqual(["b"]);
      expect(await listed(store, { order, model: "n" })).toEqual(["c"]);
      expect(await listed(store, { order, outcome: "failed" })).toEqual(["d"]);
      expect(await listed(store, { order, sinceMs: NOON + 1, untilMs: NOON + 3 })).toEqual(["c", "b"]);
    });

    it("come with all that is kept of them, also of old ones without details", async () => {
      const { ledger } = await open();
      const detailed = entry({
        costMicroUsd: 31,
        attempts: [
          {
            model: "m",
            outcome: "upstream_unavailable",
            reason: "The provider failed.",
            providerError: "overloaded 😀",
            startMs: 1,
            sentMs: 2,
            headMs: 3,
            firstContentMs: 4,
            durationMs: 5,
          },
        ],
        details: {
          format: "openai-chat",
          client: "curl/8 \ud800",
          traceId: "0af7651916cd43dd8448eb211c80319c",
          finishReason: 1,
          omitted: [{ field: "seed", reason: 1 }],
          omittedCount: 30,
          clamped: [{ field: "temperature", requested: 3, sent: 2 }],
        },
      });
      const plain = entry();
      await ledger.insert([plain, detailed]);
      expect((await ledger.listSorted({ limit: 9, order: "cost" })).entries).toEqual([detailed, plain]);
      expect(await ledger.find(detailed.completionId)).toEqual(detailed);
    });
  });
}
