import { randomBytes, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { NewLedgerEntry } from "../core/ledger.ts";
import { unlessMissing } from "./unless-missing.ts";

/** The place of the entries that the database did not accept before the end of a process. */
export interface SpillPlace {
  readonly dataDir: string;
  /** Number of the process among those that serve together. */
  readonly worker: number;
}

/** Disk space that each process reserves: `MAX_WAITING` entries of 1.6 KB. Most entries have 1 KB. */
export const RESERVED_BYTES = 16 * 1024 * 1024;
const BLOCK_BYTES = 1024 * 1024;
/** An unfinished file, and the age from which its process must have been killed. Finishing a file takes seconds. */
const UNFINISHED = /^unwritten-ledger-.+\.part$/;
const ABANDONED_MS = 60_000;

const reserveOf = ({ dataDir, worker }: SpillPlace): string => join(dataDir, `unwritten-ledger-${worker}.reserve`);

/**
 * Creates the file that reserves space for entries on a full disk, unless it exists. Rejects when there is no space for it. Removes
 * unfinished files of killed processes, each of which takes the same space.
 */
export async function reserveSpace(place: SpillPlace): Promise<void> {
  await mkdir(place.dataDir, { recursive: true, mode: 0o700 });
  await removeAbandoned(place.dataDir);
  const path = reserveOf(place);
  const existing = await unlessMissing(stat(path));
  if (existing !== undefined && existing.size >= RESERVED_BYTES) return;
  await complete(path, async (unfinished) => {
    const file = await open(unfinished, "wx", 0o600);
    try {
      // Random, because zeros would take no space on a file system that compresses.
      const block = randomBytes(BLOCK_BYTES);
      for (let size = 0; size < RESERVED_BYTES; size += BLOCK_BYTES) await file.write(block);
    } finally {
      await file.close();
    }
  });
}

/**
 * Writes entries that the database did not accept before the end of the process to a file in the data directory, one per line,
 * readable only by this user. Returns its path when the file is durable. The file uses the reserved space, so it fits on a full disk.
 * Rejects when it cannot be written completely, and then leaves nothing that the next start would read.
 */
export async function spillEntries(place: SpillPlace, entries: readonly NewLedgerEntry[]): Promise<string> {
  const { dataDir } = place;
  await mkdir(dataDir, { recursive: true, mode: 0o700 });
  const path = join(dataDir, `unwritten-ledger-${randomUUID()}.jsonl`);
  const bytes = Buffer.from(entries.map((entry) => `${JSON.stringify(entry)}\n`).join(""));
  const spill = (): Promise<void> =>
    complete(path, async (unfinished) => {
      await unlessMissing(rename(reserveOf(place), unfinished));
      await writeOver(unfinished, bytes);
    });
  // The second attempt is for file systems that never overwrite in place: there the space is free only after the reserve is removed.
  await spill().catch(spill);
  return path;
}

/** Removes unfinished files of processes that were killed. Files of running processes stay. */
async function removeAbandoned(dataDir: string): Promise<void> {
  for (const name of (await readdir(dataDir)).filter((each) => UNFINISHED.test(each))) {
    const path = join(dataDir, name);
    // The time of the last change includes renames: a part that was the reserve has old contents.
    const changed = (await stat(path).catch(() => undefined))?.ctimeMs ?? Infinity;
    if (changed < Date.now() - ABANDONED_MS) await rm(path).catch(() => undefined);
  }
}

/** Creates a file under a temporary name, so that a later start reads all of it or nothing. Removes it when that fails. */
async function complete(path: string, make: (unfinished: string) => Promise<void>): Promise<void> {
  const unfinished = `${path}.${randomUUID()}.part`;
  try {
    await make(unfinished);
    await rename(unfinished, path);
  } catch (error) {
    await rm(unfinished, { force: true });
    throw error;
  }
}

/** Replaces the contents of a file, or creates it, durably. */
async function writeOver(path: string, bytes: Buffer): Promise<void> {
  const file = await open(path, constants.O_RDWR | constants.O_CREAT, 0o600);
  try {
    await file.writeFile(bytes);
    await file.truncate(bytes.length);
    await file.sync();
  } finally {
    await file.close();
  }
}
