import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { LedgerStore } from "../ledger/ledger-store.ts";
import { EntryFiles } from "../ledger/entry-files.ts";
import { createLedger, type OwnedLedger } from "../ledger/ledger.ts";
import type { Logger } from "../telemetry/logger.ts";

/** The ledger of one process, with the files of its data directory. */
export interface Accounting {
  readonly ledger: OwnedLedger;
  /** Writes the pending entries into the database or, if that is unavailable, into a file. */
  close(): Promise<void>;
}

interface AccountingPorts {
  readonly store: LedgerStore;
  readonly clock: Clock;
  /** ID of this process among the replicas. */
  readonly replica: string;
  readonly log: Logger;
  /** Whether the database is unavailable, so that entries of earlier processes stay in their files until it is back. */
  readonly isAway: boolean;
}

/** Opens the ledger and writes the entries that an earlier process left in files. Rejects when that fails. */
export async function openAccounting(
  config: Config,
  { store, clock, replica, log, isAway }: AccountingPorts,
): Promise<Accounting> {
  const files = new EntryFiles(config.dataDir);
  const recovered = isAway ? 0 : await files.recover(store);
  if (recovered > 0) log.info({ entries: recovered }, "ledger entries of an earlier process were written");
  const ledger = createLedger({
    store,
    files,
    clock,
    process: replica,
    isAway,
    onTrouble(trouble) {
      if (trouble === undefined) return log.info("the ledger is written again");
      const text =
        trouble.of === "database"
          ? "the ledger cannot be written; entries are kept in files of data_dir"
          : "entries of the ledger cannot be kept in files; they wait in memory";
      log.error({ cause: String(trouble.cause) }, text);
    },
  });
  return {
    ledger,
    async close() {
      const left = await ledger.close();
      if (left > 0) log.error({ entries: left }, "the database is away: the next start writes the entries in data_dir");
    },
  };
}
