import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { recoverEntries, spillEntries } from "../../src/ledger/ledger.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "parley-spill-"));
});
afterEach(() => rmSync(home, { recursive: true }));

const entryOf = (completionId: string) => ({ completionId, requestId: "line\nbreak \u2028" }) as LedgerEntry;

describe("entries that a process could not write before it exits", () => {
  it("are stored in a file for its user only, and written by the next process", async () => {
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

  it("stay in the file when the next process cannot write them either", async () => {
    await spillEntries(home, [entryOf("a")]);
    const insert = () => Promise.reject(new Error("away"));
    await expect(recoverEntries(home, { insert })).rejects.toThrow("away");
    expect(readdirSync(home)).toHaveLength(1);
  });

  it("do not prevent later starts when the file is incomplete", async () => {
    const path = await spillEntries(home, [entryOf("a")]);
    // State after a process was killed during the write.
    writeFileSync(`${path}.part`, '{"completionId":"b","requ');
    const written: LedgerEntry[] = [];
    const insert = async (entries: readonly LedgerEntry[]) => void written.push(...entries);
    expect(await recoverEntries(home, { insert })).toBe(1);
    expect(written).toEqual([entryOf("a")]);
  });

  it("leave no file when they cannot be stored, such as on a full disk", async () => {
    // A file size limit simulates the full disk.
    const limited = `ulimit -f 8; exec "$0" --input-type=module -e "$1" "$2"`;
    const spill = new URL("../../src/ledger/ledger.ts", import.meta.url).href;
    const program = `
      process.on("SIGXFSZ", () => undefined);
      const { spillEntries } = await import("${spill}");
      const entries = [{ completionId: "x".repeat(65_536) }];
      await spillEntries(process.argv[1], entries).catch(() => process.exit(3));`;
    const { status } = spawnSync("sh", ["-c", limited, process.execPath, program, home]);
    expect(status).toBe(3);
    expect(readdirSync(home)).toEqual([]);
  });

  it("are written once when another process writes them at the same time", async () => {
    const paths = [await spillEntries(home, [entryOf("a")]), await spillEntries(home, [entryOf("b")])];
    const insert = async () => paths.forEach((path) => rmSync(path, { force: true }));
    expect(await recoverEntries(home, { insert })).toBe(1);
  });

  it("are absent without a data directory", async () => {
    expect(await recoverEntries(join(home, "none"), { insert: async () => undefined })).toBe(0);
  });
});
