import { randomUUID } from "node:crypto";
import { mkdir, open, readdir, readFile, rename, rm } from "node:fs/promises";
import { join } from "node:path";
import type { NewLedgerEntry } from "../core/ledger.ts";
import type { LedgerStore } from "./ledger-store.ts";

const NAME = /^unwritten-ledger-[0-9a-f-]+\.jsonl$/;

/**
 * Keeps entries that the database could not take before the process had to end: in a file of the data directory, one entry a
 * line, readable for this user only. Answers with the file's path, when it is durable. Rejects, and leaves nothing that the
 * next start would read, when not all of it can be written: on a disk that is full, which may be why the database is away.
 */
export async function spillEntries(dataDir: string, entries: readonly NewLedgerEntry[]): Promise<string> {
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, `unwritten-ledger-${randomUUID()}.jsonl`);
  // Under another name until it is whole: half an entry would keep every later process from starting.
  const unfinished = `${path}.part`;
  try {
    await writeDurably(unfinished, entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
  return path;
}

async function writeDurably(path: string, text: string): Promise<void> {
  const file = await open(path, "wx", 0o600);
  try {
    await file.writeFile(text);
    await file.sync();
  } finally {
    await file.close();
  }
}

/**
 * Writes what earlier processes had to leave behind, and removes their files. Answers how many entries there were. An entry
 * that is in the ledger already changes nothing, so two processes may do this at once.
 */
export async function recoverEntries(dataDir: string, store: Pick<LedgerStore, "insert">): Promise<number> {
  const names = (await unlessMissing(readdir(dataDir))) ?? [];
  let count = 0;
  for (const name of names.filter((each) => NAME.test(each))) {
    const path = join(dataDir, name);
    const text = await unlessMissing(readFile(path, "utf8"));
    // Another process was faster.
    if (text === undefined) continue;
    const lines = text.split("\n").filter((line) => line !== "");
    await store.insert(lines.map((line) => JSON.parse(line) as NewLedgerEntry));
    await rm(path, { force: true });
    count += lines.length;
  }
  return count;
}

function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}
