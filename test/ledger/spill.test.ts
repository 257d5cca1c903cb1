import { mkdtempSync, readdirSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { recoverEntries, spillEntries } from "../../src/ledger/spill.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "parley-spill-"));
});
afterEach(() => rmSync(home, { recursive: true }));

const entryOf = (completionId: string) => ({ completionId, requestId: "line\nbreak \u2028" }) as LedgerEntry;

describe("entries that a process could not write before its end", () => {
  it("are kept for its user only, and written by the next one", async () => {
    const dataDir = join(home, "data");
    const path = await spillEntries(dataDir, [entryOf("a"), entryOf("b")]);
    await spillEntries(dataDir, [entryOf("c")]);
    expect([statSync(path).mode & 0o777, statSync(dataDir).mode & 0o777]).toEqual([0o600, 0o700]);
    const written: LedgerEntry[] = [];
    const store = { insert: async (entries: readonly LedgerEntry[]) => void written.push(...entries) };
    expect(await recoverEntries(dataDir, store)).toBe(3);
    expect(written.toSorted((a, b) => a.completionId.localeCompare(b.completionId))).toEqual(
      ["a", "b", "c"].map(entryOf),
    );
    expect(readdirSync(dataDir)).toEqual([]);
    expect(await recoverEntries(dataDir, store)).toBe(0);
  });

  it("stay where they are when the next one cannot write them either", async () => {
    await spillEntries(home, [entryOf("a")]);
    const insert = () => Promise.reject(new Error("away"));
    await expect(recoverEntries(home, { insert })).rejects.toThrow("away");
    expect(readdirSync(home)).toHaveLength(1);
  });

  it("are none where there is no data directory", async () => {
    expect(await recoverEntries(join(home, "none"), { insert: async () => undefined })).toBe(0);
  });
});
