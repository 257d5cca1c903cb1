import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { LedgerStore } from "../ledger/ledger-store.ts";
import { createLedger, type OwnedLedger, recoverEntries, spillEntries } from "../ledger/ledger.ts";
import type { Logger } from "../telemetry/logger.ts";

/** The ledger of one process, which recovers at the start and spills at the end. */
export interface Accounting {
  readonly ledger: OwnedLedger;
  /** Writes the pending entries into the database or, if that is unavailable, into the data directory. */
  close(): Promise<void>;
}

interface AccountingPorts {
  readonly store: LedgerStore;
  readonly clock: Clock;
  /** ID of this process among the replicas. */
  readonly replica: string;
  readonly log: Logger;
}

/** Opens the ledger and writes the entries that an earlier process left in the data directory. Rejects when that fails. */
export async function openAccounting(
  config: Config,
  { store, clock, replica, log }: AccountingPorts,
): Promise<Accounting> {
  const recovered = await recoverEntries(config.dataDir, store);
  if (recovered > 0) log.info({ entries: recovered }, "ledger entries of an earlier process were written");
  const ledger = createLedger({
    store,
    clock,
    process: replica,
    onTrouble(trouble) {
      if (trouble === undefined) log.info("the ledger is written again");
      else log.error({ cause: String(trouble.cause) }, "the ledger cannot be written; entries wait in memory");
    },
  });
  return {
    ledger,
    async close() {
      const left = await ledger.close();
      if (left.length === 0) return;
      const file = await spillEntries(config.dataDir, left);
      log.error({ entries: left.length, file }, "the database is away: the next start writes these entries");
    },
  };
}
