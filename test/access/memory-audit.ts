import { type AuditEntry, chain, GENESIS } from "../../src/access/audit-entry.ts";
import type { AuditStore } from "../../src/access/audit-store.ts";

export interface MemoryAudit extends Pick<AuditStore, "append" | "list" | "prune"> {
  /** Oldest first. */
  readonly entries: AuditEntry[];
}

/** An in-memory part of the AuditStore, whose entries are narrowed by account and action only. */
export function memoryAuditStore(): MemoryAudit {
  const entries: AuditEntry[] = [];
  return {
    entries,
    async append(entry) {
      entries.push(...chain(entries.at(-1) ?? GENESIS, [entry]));
    },
    list: async ({ limit, before, accountId, action }) =>
      entries
        .toReversed()
        .filter((entry) => accountId === undefined || entry.accountId === accountId)
        .filter((entry) => action === undefined || entry.action === action)
        .filter(({ sequence }) => before === undefined || sequence < before.sequence)
        .slice(0, limit),
    async prune({ beforeMs }) {
      const kept = entries.filter(({ atMs }) => atMs >= beforeMs);
      return entries.splice(0, entries.length, ...kept).length - kept.length;
    },
  };
}
