import { describe, expect, it } from "vitest";
import { type AuditEntry, chain, formatLink, GENESIS, type UnchainedEntry } from "../../../src/access/audit-entry.ts";
import { type AuditStore, mayContinue } from "../../../src/access/audit-store.ts";
import { verifyChain } from "../../../src/access/audit-verification.ts";
import type { Store } from "../../../src/store/store.ts";

const NOW_MS = 1_700_000_000_000;
/** When entries of `auditEntry` may have been pruned. */
export const LATER_MS = NOW_MS + 500 * 24 * 60 * 60 * 1000;

/** An entry as `createAuditLog` makes it. */
export function auditEntry(changes: Partial<UnchainedEntry> = {}): UnchainedEntry {
  return {
    atMs: NOW_MS,
    action: "key_updated",
    actor: { kind: "account", id: "acct_ada" },
    network: "192.0.2.0/24",
    client: "Firefox on Linux",
    object: { kind: "key", id: "key_1" },
    accountId: "acct_bob",
    result: "done",
    before: '{"name":"old"}',
    after: '{"name":"new"}',
    details: undefined,
    ...changes,
  };
}

async function appendAt(audit: AuditStore, ...timesMs: number[]): Promise<void> {
  for (const atMs of timesMs) await audit.append(auditEntry({ atMs }));
}

const sequences = (entries: readonly AuditEntry[]): number[] => entries.map(({ sequence }) => sequence);

/** Registers the suite of the audit log. */
export function describeAuditStore(open: () => Promise<Store>): void {
  describe("the audit log", () => {
    it("is an empty chain at first", async () => {
      const { audit } = await open();
      expect(await audit.ends()).toEqual({ anchor: GENESIS, head: GENESIS });
      expect(await verifyChain(audit, undefined, LATER_MS)).toEqual({
        entries: 0,
        anchor: GENESIS,
        head: GENESIS,
        problem: undefined,
      });
    });

    it("has entries as they were appended, with what a database does not accept replaced", async () => {
      const { audit } = await open();
      const entries = [
        auditEntry(),
        auditEntry({
          actor: { kind: "nobody", id: undefined },
          network: undefined,
          client: "a\0b\uD800",
          object: undefined,
          accountId: undefined,
          result: "failed",
          before: undefined,
          after: undefined,
          details: '{"attempts":"200"}',
        }),
      ];
      for (const each of entries) await audit.append(each);
      expect(await audit.list({ limit: 10 })).toEqual(
        chain(GENESIS, [entries[0]!, { ...entries[1]!, client: "a\uFFFDb\uFFFD" }]).toReversed(),
      );
      expect(await verifyChain(audit, undefined, LATER_MS)).toMatchObject({ entries: 2, problem: undefined });
    });

    it("has one unbroken chain of what is appended at the same time", async () => {
      const { audit } = await open();
      await Promise.all(Array.from({ length: 40 }, (_, index) => audit.append(auditEntry({ atMs: NOW_MS + index }))));
      expect(await verifyChain(audit, undefined, LATER_MS)).toMatchObject({ entries: 40, problem: undefined });
    });

    it("is listed newest first, page by page, also with equal times", async () => {
      const { audit } = await open();
      await appendAt(audit, NOW_MS, NOW_MS + 2, NOW_MS + 1, NOW_MS + 1, NOW_MS + 1);
      const first = await audit.list({ limit: 3 });
      const second = await audit.list({ limit: 3, before: first.at(-1)! });
      expect(sequences([...first, ...second])).toEqual([2, 5, 4, 3, 1]);
    });

    it("is listed in pages of bounded size, of one entry at least", async () => {
      const { audit } = await open();
      const sizes = [1, 120_000, 120_000, 120_000, 400_000, 1];
      for (const size of sizes) await audit.append(auditEntry({ after: `"${"é".repeat(size)}"` }));
      const pages: number[][] = [];
      for (let before: AuditEntry | undefined; ;) {
        const page = await audit.list({ limit: 5, before });
        pages.push(sequences(page));
        if (!mayContinue(page, 5)) break;
        before = page.at(-1);
      }
      expect(pages).toEqual([[6, 5], [4, 3, 2], [1]]);
    });

    it("is narrowed by time, action, actor, object, account and result", async () => {
      const { audit } = await open();
      await audit.append(auditEntry());
      await audit.append(auditEntry({ atMs: NOW_MS + 10, action: "key_revoked" }));
      await audit.append(auditEntry({ actor: { kind: "command_line", id: "root" } }));
      await audit.append(auditEntry({ object: { kind: "account", id: "acct_bob" } }));
      await audit.append(auditEntry({ accountId: undefined, result: "failed" }));
      const found = async (filter: Omit<Parameters<AuditStore["list"]>[0], "limit">) =>
        sequences(await audit.list({ ...filter, limit: 10 })).toSorted((one, other) => one - other);
      expect(await found({ sinceMs: NOW_MS + 10 })).toEqual([2]);
      expect(await found({ untilMs: NOW_MS + 10 })).toEqual([1, 3, 4, 5]);
      expect(await found({ action: "key_revoked" })).toEqual([2]);
      expect(await found({ actorKind: "command_line" })).toEqual([3]);
      expect(await found({ actorId: "root" })).toEqual([3]);
      expect(await found({ objectKind: "account" })).toEqual([4]);
      expect(await found({ objectId: "key_1", accountId: "acct_bob" })).toEqual([1, 2, 3]);
      expect(await found({ result: "failed" })).toEqual([5]);
    });

    it("verifies from the last pruned entry, whose hash it keeps", async () => {
      const { audit } = await open();
      await appendAt(audit, NOW_MS, NOW_MS + 1, NOW_MS + 5, NOW_MS + 2, NOW_MS + 6);
      const all = (await audit.list({ limit: 10 })).toSorted((a, b) => a.sequence - b.sequence);
      const limits = { beforeMs: NOW_MS + 3, most: 100 };
      // The second shows that the first was old. The fourth is old too, but stays behind the third until that one is pruned.
      expect([await audit.prune(limits), await audit.prune(limits)]).toEqual([1, 0]);
      const { anchor } = await audit.ends();
      expect(formatLink(anchor)).toBe(`1:${all[0]!.hash}`);
      expect(await verifyChain(audit, undefined, LATER_MS)).toMatchObject({ entries: 4, problem: undefined });
      expect((await verifyChain(audit, all[0], LATER_MS)).problem).toBeUndefined();
      expect((await verifyChain(audit, GENESIS, LATER_MS)).problem).toContain("entries up to 1 are pruned");
    });

    it("keeps the latest entries when there are too many, and one more, and goes on after that", async () => {
      const { audit } = await open();
      await appendAt(audit, NOW_MS, NOW_MS, NOW_MS);
      expect(await audit.prune({ beforeMs: 0, most: 1 })).toBe(1);
      expect(sequences(await audit.list({ limit: 10 }))).toEqual([3, 2]);
      expect(await audit.prune({ beforeMs: NOW_MS + 1, most: 1 })).toBe(1);
      await appendAt(audit, NOW_MS);
      expect(await verifyChain(audit, undefined, LATER_MS)).toMatchObject({ entries: 2, problem: undefined });
      expect(sequences(await audit.list({ limit: 10 }))).toEqual([4, 3]);
    });
  });
}
