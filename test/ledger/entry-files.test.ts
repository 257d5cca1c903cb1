import { spawnSync } from "node:child_process";
import { mkdirSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync, writeFileSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it, onTestFinished } from "vitest";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { EntryFiles } from "../../src/ledger/entry-files.ts";

let home: string;
beforeEach(() => {
  home = mkdtempSync(join(tmpdir(), "parley-files-"));
});
afterEach(() => rmSync(home, { recursive: true }));

/** As EntryFiles; closed after the test, whose process serves other tests. */
function openFiles(...given: ConstructorParameters<typeof EntryFiles>): EntryFiles {
  const files = new EntryFiles(...given);
  onTestFinished(() => files.close());
  return files;
}

const entryOf = (completionId: string) => ({ completionId, requestId: "line\nbreak \u2028" }) as LedgerEntry;

/** A store that keeps the IDs of what is inserted. */
function store() {
  const ids: string[] = [];
  const insert = async (entries: readonly LedgerEntry[]) => void ids.push(...entries.map((one) => one.completionId));
  return { ids, insert };
}

const pathsIn = (folder: string): string[] => readdirSync(folder).map((name) => join(folder, name));

describe("entries that the database does not take", () => {
  it("are stored in a file for its user only, and written by the next process, however this one ends", async () => {
    const dataDir = join(home, "data");
    const files = openFiles(dataDir);
    await files.append([entryOf("a"), entryOf("b")]);
    await files.append([entryOf("c")]);
    expect(pathsIn(dataDir).map((path) => statSync(path).mode & 0o777)).toEqual([0o600]);
    expect(statSync(dataDir).mode & 0o777).toBe(0o700);
    const { ids, insert } = store();
    expect(await openFiles(dataDir).recover({ insert })).toBe(3);
    expect(ids).toEqual(["a", "b", "c"]);
    expect(readdirSync(dataDir)).toEqual([]);
    expect(await openFiles(dataDir).recover({ insert })).toBe(0);
  });

  it("stay in the file when they cannot be written yet", async () => {
    const files = openFiles(home);
    await files.append([entryOf("a")]);
    await files.close();
    const insert = () => Promise.reject(new Error("away"));
    await expect(openFiles(home).recover({ insert })).rejects.toThrow("away");
    expect(await openFiles(home).recover(store())).toBe(1);
  });

  it("are not lost when another process takes over the file that is written to", async () => {
    const files = openFiles(home);
    await files.append([entryOf("a")]);
    const other = store();
    expect(await openFiles(home).recover(other)).toBe(1);
    await files.append([entryOf("b")]);
    await files.append([entryOf("c")]);
    const next = store();
    expect(await openFiles(home).recover(next)).toBe(2);
    expect([other.ids, next.ids]).toEqual([["a"], ["b", "c"]]);
  });

  it("are not lost when the file is taken over during a write", async () => {
    const files = openFiles(home);
    await files.append([entryOf("a")]);
    const [path] = pathsIn(home);
    const writing = files.append([entryOf("b")]);
    renameSync(path!, path!.replace(/open$/, "jsonl"));
    await writing;
    const { ids, insert } = store();
    await openFiles(home).recover({ insert });
    expect(new Set(ids)).toEqual(new Set(["a", "b"]));
  });

  it("are all written but the one during whose write the process was killed", async () => {
    const files = openFiles(home);
    await files.append([entryOf("a")]);
    const [path] = pathsIn(home);
    writeFileSync(path!, '{"completionId":"b","requ', { flag: "a" });
    const { ids, insert } = store();
    expect(await openFiles(home).recover({ insert })).toBe(1);
    expect([ids, readdirSync(home)]).toEqual([["a"], []]);
  });

  it("in a damaged file are written as far as they can be read, and the file is kept", async () => {
    const name = "unwritten-ledger-a0.jsonl";
    writeFileSync(join(home, name), `\0\0\0\n${JSON.stringify(entryOf("a"))}\n`);
    const { ids, insert } = store();
    expect(await openFiles(home).recover({ insert })).toBe(1);
    expect([ids, readdirSync(home)]).toEqual([["a"], [`${name}.damaged`]]);
    expect(await openFiles(home).recover({ insert })).toBe(0);
  });

  it("of a file that cannot be used stay in it, and those of the others are written", async () => {
    // Root may read everything, so directories in the way simulate a broken disk.
    const unreadable = join(home, "unwritten-ledger-a0.jsonl");
    mkdirSync(unreadable);
    const unnamed = join(home, "unwritten-ledger-b0.open");
    writeFileSync(unnamed, `${JSON.stringify(entryOf("b"))}\n`);
    mkdirSync(join(home, "unwritten-ledger-b0.jsonl"));
    writeFileSync(join(home, "unwritten-ledger-c0.jsonl"), `${JSON.stringify(entryOf("c"))}\n`);
    const kept = join(home, "unwritten-ledger-d0.jsonl");
    writeFileSync(kept, `\0\n${JSON.stringify(entryOf("d"))}\n`);
    mkdirSync(`${kept}.damaged`);
    const troubles: string[] = [];
    const files = openFiles(home, ({ path }) => void troubles.push(path));
    const { ids, insert } = store();
    expect(await files.recover({ insert })).toBe(2);
    expect([ids.toSorted(), files.left]).toEqual([["c", "d"], 0]);
    const told = [unreadable, unnamed, unnamed.replace("open", "jsonl"), kept];
    expect(troubles.toSorted()).toEqual(told.toSorted());
    await files.recover({ insert });
    expect(troubles).toHaveLength(4);

    for (const path of [unreadable, unnamed.replace("open", "jsonl"), `${kept}.damaged`])
      rmSync(path, { recursive: true });
    await files.recover({ insert });
    expect(ids.slice(-2).toSorted()).toEqual(["b", "d"]);
  });

  it("of its own that had to be left are counted until they are written", async () => {
    const files = openFiles(home);
    await files.append([entryOf("a")]);
    const inTheWay = pathsIn(home)[0]!.replace(/open$/, "jsonl");
    mkdirSync(inTheWay);
    const { ids, insert } = store();
    expect([await files.recover({ insert }), files.left]).toEqual([0, 2]);
    rmSync(inTheWay, { recursive: true });
    expect([await files.recover({ insert }), files.left, ids]).toEqual([1, 0, ["a"]]);
  });

  it("leave no file when they cannot be stored, such as on a full disk", async () => {
    // A file size limit simulates the full disk.
    const limited = `ulimit -f 8; exec "$0" --input-type=module -e "$1" "$2"`;
    const module = new URL("../../src/ledger/entry-files.ts", import.meta.url).href;
    const program = `
      process.on("SIGXFSZ", () => undefined);
      const { EntryFiles } = await import("${module}");
      const entries = [{ completionId: "x".repeat(65_536) }];
      await new EntryFiles(process.argv[1]).append(entries).catch(() => process.exit(3));`;
    const { status } = spawnSync("sh", ["-c", limited, process.execPath, program, home]);
    expect(status).toBe(3);
    expect(readdirSync(home)).toEqual([]);
  });

  it("are refused beyond the limit of all files together", async () => {
    const file = join(home, "unwritten-ledger-b0.jsonl");
    // Sparse.
    spawnSync("truncate", ["-s", "512M", file]);
    await expect(openFiles(home).append([entryOf("a")])).rejects.toThrow("512 MiB");
  });

  it("are written once when another process writes them at the same time", async () => {
    for (const id of ["a", "b"]) {
      const files = openFiles(home);
      await files.append([entryOf(id)]);
      await files.close();
    }
    const insert = async () => pathsIn(home).forEach((path) => rmSync(path, { force: true }));
    expect(await openFiles(home).recover({ insert })).toBe(1);
  });

  it("are absent without a data directory", async () => {
    expect(await openFiles(join(home, "none")).recover(store())).toBe(0);
  });
});
