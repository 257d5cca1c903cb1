import type { NewLedgerEntry } from "../../src/core/ledger.ts";
import type { LedgerOptions } from "../../src/ledger/ledger.ts";

/** In-memory replacement of the files for ledger entries that the database has not accepted. */
export interface MemoryFiles {
  readonly files: LedgerOptions["files"];
  readonly entries: readonly NewLedgerEntry[];
}

/** `fails`: whether a write fails, as on a full disk. Default: none does. */
export function memoryFiles(fails: () => boolean = () => false): MemoryFiles {
  const entries: NewLedgerEntry[] = [];
  return {
    entries,
    files: {
      async append(added) {
        if (fails()) throw new Error("the disk is full");
        entries.push(...added);
      },
      async recover(store, inserted) {
        const found = [...entries];
        if (found.length === 0) return 0;
        await store.insert(found);
        inserted?.(found.length);
        entries.splice(0, found.length);
        return found.length;
      },
      left: 0,
      close: async () => undefined,
    },
  };
}
