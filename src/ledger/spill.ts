import { randomBytes, randomUUID } from "node:crypto";
import { constants } from "node:fs";
import { mkdir, open, readdir, rename, rm, stat } from "node:fs/promises";
import { join } from "node:path";
import type { NewLedgerEntry } from "../core/ledger.ts";

/** Where a process keeps the entries that the database did not accept before its end. */
export interface SpillPlace {
  readonly dataDir: string;
  /** Number of the process among those that serve together. */
  readonly worker: number;
}

/** Space that each process keeps on the disk: for `MAX_WAITING` entries of 1.6 KB; most have one. */
export const RESERVED_BYTES = 16 * 1024 * 1024;
const BLOCK_BYTES = 1024 * 1024;
/** An unfinished file, and its age from which its process was killed: to finish one takes seconds. */
const UNFINISHED = /^unwritten-ledger-.+\.part$/;
const ABANDONED_MS = 60_000;

const reserveOf = ({ dataDir, worker }: SpillPlace): string => join(dataDir, `unwritten-ledger-${worker}.reserve`);

/**
 * Creates the file whose space the entries get when the disk is full, unless it exists. Rejects without space for it. Removes the
 * unfinished files of killed processes, which have such a space each.
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
 * readable for this user only. Returns its path when it is durable. It takes the place of the reserved space, which a full disk
 * still has. Rejects when it cannot be written completely, and leaves nothing that the next start would read.
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
  // A file system that never overwrites in place has the space of the reserve only once that is removed.
  await spill().catch(spill);
  return path;
}

/** Removes unfinished files of processes that were killed. Those of running ones stay, and those that cannot be removed. */
async function removeAbandoned(dataDir: string): Promise<void> {
  for (const name of (await readdir(dataDir)).filter((each) => UNFINISHED.test(each))) {
    const path = join(dataDir, name);
    // The time of the last change includes renames: a part that was the reserve has old contents.
    const changed = (await stat(path).catch(() => undefined))?.ctimeMs ?? Infinity;
    if (changed < Date.now() - ABANDONED_MS) await rm(path).catch(() => undefined);
  }
}

/** Makes a file under a temporary name, so that a later start reads all of it or nothing. Leaves nothing when it fails. */
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

function unlessMissing<T>(reading: Promise<T>): Promise<T | undefined> {
  return reading.catch((error: NodeJS.ErrnoException) => {
    if (error.code === "ENOENT") return undefined;
    throw error;
  });
}
