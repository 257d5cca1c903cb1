import { appendFileSync, mkdtempSync, readdirSync, renameSync, rmSync, statSync } from "node:fs";
import { tmpdir } from "node:os";
import { join } from "node:path";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type { NewLedgerEntry } from "../../src/core/ledger.ts";
import type { Note } from "../../src/ledger/ledger-store.ts";
import { BegunFiles } from "../../src/store/sqlite/begun-files.ts";
import { entry } from "./contracts/entries.ts";

let directory: string;
let files: BegunFiles;
beforeEach(() => {
  directory = mkdtempSync(join(tmpdir(), "parley-begun-"));
  files = new BegunFiles(directory);
});
afterEach(() => {
  files.close();
  rmSync(directory, { recursive: true });
});

/** Length of a note that fills a fifth of a file. */
const FIFTH = 2 ** 20 / 5;

let made = 0;

function note(length = 1): Note {
  return { id: `p/${++made}`, process: "p", entries: [entry({ requestId: "x".repeat(length) })] };
}

function write(length?: number): Note {
  const written = note(length);
  files.write(written);
  return written;
}

/** Settles all files, and returns the IDs of their completions. */
async function settleAll(): Promise<string[]> {
  const begun: NewLedgerEntry[] = [];
  for (const { path } of await files.list()) await files.settle(path, async (entries) => void begun.push(...entries));
  return begun.map(({ completionId }) => completionId);
}

const idsOf = (...notes: readonly Note[]): string[] =>
  notes.flatMap(({ entries }) => entries.map(({ completionId }) => completionId));

describe("files of begun completions", () => {
  it("are readable by their user only, and removed when they are settled", async () => {
    const notes = [write(), write()];
    const [name = ""] = readdirSync(directory);
    expect(statSync(join(directory, name)).mode & 0o777).toBe(0o600);
    expect((await files.list()).map(({ process }) => process)).toEqual(["p"]);
    expect(await settleAll()).toEqual(idsOf(...notes));
    expect(readdirSync(directory)).toEqual([]);
  });

  it("are left to the next settlement when one fails", async () => {
    const written = write();
    const [{ path } = { path: "" }] = await files.list();
    await expect(files.settle(path, () => Promise.reject(new Error("locked")))).rejects.toThrow("locked");
    expect(await settleAll()).toEqual(idsOf(written));
  });

  it("are settled when any of several processes that do it together is done", async () => {
    const written = write();
    const [{ path } = { path: "" }] = await files.list();
    const first = Promise.withResolvers<void>();
    const settled: string[] = [];
    const settleFirst = files.settle(path, () => first.promise);
    await files.settle(path, async (entries) => void settled.push(...entries.map(({ completionId }) => completionId)));
    expect(settled).toEqual(idsOf(written));
    first.resolve();
    await settleFirst;
    await files.settle(path, () => Promise.reject(new Error("again")));
  });

  it("are settled without the note that the end of the process cut off", async () => {
    const written = write();
    appendFileSync(join(directory, readdirSync(directory)[0]!), '"p/9"\t[{"completionId":"cut');
    expect(await settleAll()).toEqual(idsOf(written));
  });

  it("are replaced by a new one when a process writes that was only late", async () => {
    write();
    await settleAll();
    const later = write();
    expect(await settleAll()).toEqual(idsOf(later));
    const [name = ""] = (write(), readdirSync(directory));
    renameSync(join(directory, name), join(directory, name.replace("jsonl", "lost")));
    const last = write();
    expect((await settleAll()).at(-1)).toBe(idsOf(last)[0]);
  });

  it("are removed when none of their notes is needed, full ones and the last one", () => {
    let before = write();
    for (let count = 0; count < 50; count++) {
      const next = write(FIFTH);
      files.remove([before.id]);
      before = next;
    }
    expect(readdirSync(directory).length).toBeLessThanOrEqual(2);
    files.remove([before.id]);
    expect(readdirSync(directory)).toEqual([]);
  });

  it("are not kept by single long calls, whose notes are copied", async () => {
    const long: Note[] = [];
    for (let count = 0; count < 300; count++) {
      const written = write(FIFTH);
      if (count % 10 === 0) long.push(written);
      else files.remove([written.id]);
    }
    // Without copies there would be a file for each of the thirty.
    expect(readdirSync(directory).length).toBeLessThan(20);
    expect(await settleAll()).toEqual(expect.arrayContaining(idsOf(...long)));
  });
});
