import { spawnSync } from "node:child_process";
import { mkdtempSync, readdirSync, readFileSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { EntryFiles } from "../../src/ledger/entry-files.ts";
import { reserveSpace, RESERVED_BYTES, spillEntries } from "../../src/ledger/spill.ts";
import { MAY_MOUNT, mountDisk } from "../support/small-disk.ts";

let home: string;
let place: { readonly dataDir: string; readonly worker: number };
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "parley-spill-"));
  place = { dataDir: home, worker: 1 };
});
afterEach(() => rmSync(home, { recursive: true }));

const entryOf = (completionId: string) => ({ completionId, requestId: "line\nbreak \u2028" }) as LedgerEntry;

describe("entries that a process could not write before it exits", () => {
  it("are stored in a file for its user only, and written by the next process", async () => {
    const dataDir = join(home, "data");
    const path = await spillEntries({ dataDir, worker: 1 }, [entryOf("a"), entryOf("b")]);
    await spillEntries({ dataDir, worker: 1 }, [entryOf("c")]);
    expect([statSync(path).mode & 0o777, statSync(dataDir).mode & 0o777]).toEqual([0o600, 0o700]);
    const written: LedgerEntry[] = [];
    const store = { insert: async (entries: readonly LedgerEntry[]) => void written.push(...entries) };
    expect(await new EntryFiles(dataDir).recover(store)).toBe(3);
    expect(written.toSorted((a, b) => a.completionId.localeCompare(b.completionId))).toEqual(
      ["a", "b", "c"].map(entryOf),
    );
    expect(readdirSync(dataDir)).toEqual([]);
    expect(await new EntryFiles(dataDir).recover(store)).toBe(0);
  });

  it("stay in the file when the next process cannot write them either", async () => {
    await spillEntries(place, [entryOf("a")]);
    const insert = () => Promise.reject(new Error("away"));
    await expect(new EntryFiles(home).recover({ insert })).rejects.toThrow("away");
    expect(readdirSync(home)).toHaveLength(1);
  });

  it("do not prevent later starts when the file is incomplete", async () => {
    const path = await spillEntries(place, [entryOf("a")]);
    // State after a process was killed during the write.
    writeFileSync(`${path}.part`, '{"completionId":"b","requ');
    const written: LedgerEntry[] = [];
    const insert = async (entries: readonly LedgerEntry[]) => void written.push(...entries);
    expect(await new EntryFiles(home).recover({ insert })).toBe(1);
    expect(written).toEqual([entryOf("a")]);
  });

  it("leave no file when they cannot be stored, such as on a full disk", async () => {
    // A file size limit simulates the full disk.
    const limited = `ulimit -f 8; exec "$0" --input-type=module -e "$1" "$2"`;
    const spill = new URL("../../src/ledger/spill.ts", import.meta.url).href;
    const program = `
      process.on("SIGXFSZ", () => undefined);
      const { spillEntries } = await import("${spill}");
      const entries = [{ completionId: "x".repeat(65_536) }];
      await spillEntries({ dataDir: process.argv[1], worker: 1 }, entries).catch(() => process.exit(3));`;
    const { status } = spawnSync("sh", ["-c", limited, process.execPath, program, home]);
    expect(status).toBe(3);
    expect(readdirSync(home)).toEqual([]);
  });

  it("take the space that was reserved for them", async () => {
    await reserveSpace(place);
    const reserve = join(home, "unwritten-ledger-1.reserve");
    expect(statSync(reserve)).toMatchObject({ size: RESERVED_BYTES, mode: 0o100600 });
    const { ino } = statSync(reserve);
    await reserveSpace(place);
    const path = await spillEntries(place, [entryOf("a")]);
    expect(statSync(path).ino).toBe(ino);
    expect(readFileSync(path, "utf8")).toBe(`${JSON.stringify(entryOf("a"))}\n`);
    expect(statSync(path).blocks * 512).toBeLessThanOrEqual(64 * 1024);
    expect(readdirSync(home)).toHaveLength(1);
    expect(await new EntryFiles(home).recover({ insert: async () => undefined })).toBe(1);
    await reserveSpace(place);
    expect(readdirSync(home)).toEqual(["unwritten-ledger-1.reserve"]);
  });

  it("have no space taken by unfinished files of killed processes", async () => {
    for (const name of ["1.reserve.a.part", "b.jsonl.c.part"])
      writeFileSync(join(home, `unwritten-ledger-${name}`), "{");
    writeFileSync(join(home, "known-keys-1.sealed.part"), "");
    await reserveSpace(place);
    expect(readdirSync(home)).toHaveLength(4);
    vi.useFakeTimers({ toFake: ["Date"], now: Date.now() + 61_000 });
    onTestFinished(() => void vi.useRealTimers());
    await reserveSpace(place);
    expect(readdirSync(home).toSorted()).toEqual(["known-keys-1.sealed.part", "unwritten-ledger-1.reserve"]);
  });

  it("have their whole space reserved again when a part of it is missing", async () => {
    writeFileSync(join(home, "unwritten-ledger-1.reserve"), "");
    await reserveSpace(place);
    expect(statSync(join(home, "unwritten-ledger-1.reserve")).size).toBe(RESERVED_BYTES);
  });

  it.skipIf(!MAY_MOUNT)(
    "are stored on a full disk that has reserved space, although all other space is taken",
    async () => {
      const dataDir = join(home, "disk");
      const disk = mountDisk(dataDir, RESERVED_BYTES + 1024 * 1024);
      try {
        await reserveSpace({ dataDir, worker: 1 });
        disk.fill();
        const entries = Array.from({ length: 10_000 }, (_, index) => ({
          ...entryOf(String(index)),
          requestId: "x".repeat(1_500),
        }));
        await spillEntries({ dataDir, worker: 1 }, entries);
        const insert = vi.fn<(entries: readonly LedgerEntry[]) => Promise<void>>(async () => undefined);
        expect(await new EntryFiles(dataDir).recover({ insert })).toBe(10_000);
        expect(insert.mock.calls.flat(2)).toEqual(entries);
      } finally {
        disk.unmount();
      }
    },
  );

  it.skipIf(!MAY_MOUNT)("reserve nothing on a disk without space", async () => {
    const dataDir = join(home, "disk");
    const disk = mountDisk(dataDir, 1024 * 1024);
    try {
      await expect(reserveSpace({ dataDir, worker: 1 })).rejects.toThrow("ENOSPC");
      expect(readdirSync(dataDir)).toEqual([]);
    } finally {
      disk.unmount();
    }
  });

  it("are written once when another process writes them at the same time", async () => {
    const paths = [await spillEntries(place, [entryOf("a")]), await spillEntries(place, [entryOf("b")])];
    const insert = async () => paths.forEach((path) => rmSync(path, { force: true }));
    expect(await new EntryFiles(home).recover({ insert })).toBe(1);
  });

  it("are absent without a data directory", async () => {
    expect(await new EntryFiles(join(home, "none")).recover({ insert: async () => undefined })).toBe(0);
  });
});
