import { type AuditEntry, type ChainLink, formatLink, hashOf } from "./audit-entry.ts";
import { AUDIT_KEPT_MS, type AuditStore, MOST_AUDIT_ENTRIES } from "./audit-store.ts";

/** Entries of one query. */
const BATCH = 250;

/** Tolerated difference of clocks, when a pruned entry is checked for its age. */
const CLOCK_TOLERANCE_MS = 24 * 60 * 60 * 1000;

/** Result of a verification. */
export interface Verification {
  /** Verified entries. */
  readonly entries: number;
  readonly anchor: ChainLink;
  readonly head: ChainLink;
  /** The first problem and where it is; undefined for a chain without one. */
  readonly problem: string | undefined;
}

/**
 * Verifies the chain from its anchor to the head of this moment: every entry, their order, and that none is missing. `kept` is an earlier
 * head that was kept elsewhere: without it, entries that were cut off the end together with the stored head are not missed. `nowMs` is the
 * Unix time by which entries before the anchor have to be old enough.
 */
export async function verifyChain(
  store: Pick<AuditStore, "ends" | "follow">,
  kept: ChainLink | undefined,
  nowMs: number,
): Promise<Verification> {
  const { head, ...ends } = await store.ends();
  let { anchor } = ends;
  let last = anchor;
  let entries = 0;
  let problem = differsFrom(kept, anchor);
  while (problem === undefined && last.sequence < head.sequence) {
    const batch = await store.follow({
      sequence: last.sequence,
      limit: Math.min(BATCH, head.sequence - last.sequence),
    });
    const moved = batch[0]?.sequence === last.sequence + 1 ? anchor : (await store.ends()).anchor;
    if (moved.sequence > last.sequence) {
      // Pruned meanwhile.
      anchor = last = moved;
      problem = differsFrom(kept, anchor);
      continue;
    }
    if (batch.length === 0) problem = describeGap(last.sequence + 1, head.sequence);
    else if (last.sequence === anchor.sequence) problem = cutBefore(batch[0]!, { anchor, head, nowMs });
    for (const entry of batch) {
      problem ??= problemOf(last, entry) ?? differsFrom(kept, entry);
      if (problem !== undefined) break;
      last = entry;
      entries += 1;
    }
  }
  if (anchor.sequence > 0 && anchor.sequence === head.sequence) problem ??= describeGap(1, head.sequence);
  problem ??= problemAtEnd({ anchor, last, head }, kept);
  problem ??= (await entryBefore(store)) ?? (await entryAfter(store));
  return { entries, anchor, head, problem };
}

/**
 * Describes a chain whose beginning was cut off. Pruning leaves an entry that could be pruned too, and its hash names the
 * anchor, so that neither another time nor another entry can take its place.
 */
function cutBefore(
  first: AuditEntry,
  { anchor, head, nowMs }: { readonly anchor: ChainLink; readonly head: ChainLink; readonly nowMs: number },
): string | undefined {
  const isOld = first.atMs < nowMs - AUDIT_KEPT_MS + CLOCK_TOLERANCE_MS;
  if (anchor.sequence === 0 || isOld || head.sequence - first.sequence >= MOST_AUDIT_ENTRIES) return undefined;
  const date = new Date(first.atMs).toISOString().slice(0, 10);
  return `entries up to ${anchor.sequence} were cut off the beginning, not pruned: entry ${first.sequence} after them is of ${date} only`;
}

/** Describes an entry before the anchor, which is no part of the chain, but of lists and exports. */
async function entryBefore(store: Pick<AuditStore, "ends" | "follow">): Promise<string | undefined> {
  // Read first: pruning removes the entries and moves the anchor in one transaction.
  const { anchor } = await store.ends();
  const [first] = await store.follow({ sequence: Number.MIN_SAFE_INTEGER, limit: 1 });
  if (first === undefined || first.sequence > anchor.sequence) return undefined;
  return `entry ${first.sequence} is before the anchor ${formatLink(anchor)}: it was inserted`;
}

/** Describes an entry after the stored head, which is no part of the chain, but of lists, exports and messages to receivers. */
async function entryAfter(store: Pick<AuditStore, "ends" | "follow">): Promise<string | undefined> {
  const { head } = await store.ends();
  const [next] = await store.follow({ sequence: head.sequence, limit: 1 });
  // Entries that were appended meanwhile have moved the head.
  if (next === undefined || next.sequence <= (await store.ends()).head.sequence) return undefined;
  return `entry ${next.sequence} is after the stored head ${formatLink(head)}: it was inserted`;
}

function differsFrom(kept: ChainLink | undefined, { sequence, hash }: ChainLink): string | undefined {
  if (kept?.sequence !== sequence || kept.hash === hash) return undefined;
  return `entry ${sequence} has the hash ${hash}, not that of the kept head`;
}

function problemOf(last: ChainLink, entry: AuditEntry): string | undefined {
  const expected = last.sequence + 1;
  if (entry.sequence !== expected) return describeGap(expected, entry.sequence - 1);
  if (hashOf(last.hash, expected, entry) === entry.hash) return undefined;
  return `entry ${expected} was changed: its hash does not follow from its contents and entry ${last.sequence}`;
}

function describeGap(from: number, to: number): string {
  return from === to ? `entry ${from} is missing` : `entries ${from} to ${to} are missing`;
}

function problemAtEnd(
  { anchor, last, head }: Record<"anchor" | "last" | "head", ChainLink>,
  kept: ChainLink | undefined,
): string | undefined {
  if (last.hash !== head.hash) return `the last entry is not the stored head ${formatLink(head)}`;
  if (kept === undefined) return undefined;
  if (kept.sequence > last.sequence)
    return `the log ends with entry ${last.sequence}, the kept head is entry ${kept.sequence}: entries were cut off the end`;
  if (kept.sequence < anchor.sequence)
    return `the kept head is entry ${kept.sequence}, and entries up to ${anchor.sequence} are pruned: give a later head`;
  return undefined;
}
