import { describe, expect, it } from "vitest";
import type { UnchainedEntry } from "../../../src/access/audit-entry.ts";
import type { Store } from "../../../src/store/store.ts";

const ENTRY: UnchainedEntry = {
  atMs: 1,
  action: "signed_in",
  actor: { kind: "account", id: "acct_1" },
  network: undefined,
  client: undefined,
  object: undefined,
  accountId: "acct_1",
  result: "done",
  before: undefined,
  after: undefined,
  details: undefined,
};

const streamOf = (id: string) => ({
  id,
  target: "https://example.com",
  sealed: `sealed ${id}`,
  createdAtMs: 1,
  createdBy: "acct_1",
});

/** Registers the suite of receivers of the audit log. */
export function describeAuditStreams(open: () => Promise<Store>): void {
  describe("receivers of the audit log", () => {
    it("begin after the entries before them, and are bounded in number", async () => {
      const { audit, auditStreams } = await open();
      const before = (await audit.ends()).head.sequence;
      await audit.append(ENTRY);
      const stream = await auditStreams.insertStream(streamOf("astr_a"), 1);
      expect(stream).toEqual({
        ...streamOf("astr_a"),
        sequence: before + 1,
        failures: 0,
        nextAtMs: 0,
        sentAtMs: undefined,
        problem: "",
      });
      expect(await auditStreams.insertStream(streamOf("astr_b"), 1)).toBeUndefined();
      expect(await auditStreams.streams()).toEqual([stream]);
      expect(await auditStreams.removeStream("astr_a")).toEqual(stream);
      expect(await auditStreams.removeStream("astr_a")).toBeUndefined();
    });

    it("are claimed by one process while they have something to get, until the claim ends or is released", async () => {
      const { audit, auditStreams } = await open();
      await auditStreams.insertStream(streamOf("astr_a"), 9);
      const claim = async (by: string, nowMs: number) =>
        (await auditStreams.claimStreams({ nowMs, untilMs: nowMs + 10, by })).map(({ id }) => id);
      expect(await claim("one", 100)).toEqual([]);
      await audit.append(ENTRY);
      const both = await Promise.all(["one", "two", "three"].map((by) => claim(by, 100)));
      expect(both.flat()).toEqual(["astr_a"]);
      expect(await claim("four", 109)).toEqual([]);
      // The first process has died.
      expect(await claim("four", 110)).toEqual(["astr_a"]);
      const winner = ["one", "two", "three"][both.findIndex(({ length }) => length === 1)]!;
      expect(await auditStreams.noteProgress("astr_a", winner, { claimedUntilMs: 0, sequence: 99 })).toBe(false);
      const failure = { claimedUntilMs: 0, failures: 1, nextAtMs: 130, problem: "away" };
      expect(await auditStreams.noteProgress("astr_a", "four", failure)).toBe(true);
      expect(await auditStreams.noteProgress("astr_a", "four", failure)).toBe(false);
      expect(await claim("five", 129)).toEqual([]);
      expect(await claim("five", 130)).toEqual(["astr_a"]);
      expect(await auditStreams.streams()).toMatchObject([{ failures: 1, nextAtMs: 130, problem: "away" }]);
    });

    it("have their secrets encrypted anew, those that can be read", async () => {
      const { auditStreams } = await open();
      await auditStreams.insertStream(streamOf("astr_a"), 9);
      await auditStreams.insertStream(streamOf("astr_b"), 9);
      const seal = ({ id }: { readonly id: string }) => (id === "astr_a" ? "anew" : undefined);
      expect(await auditStreams.resealStreams(seal)).toEqual({ resealed: 1, unreadable: 1 });
      expect((await auditStreams.streams()).map(({ sealed }) => sealed)).toEqual(["anew", "sealed astr_b"]);
    });
  });
}
