import { setImmediate as nextTurn } from "node:timers/promises";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { NewLedgerEntry } from "../core/ledger.ts";
import type { LedgerStore } from "../ledger/ledger-store.ts";
import { createLedger, type OwnedLedger } from "../ledger/ledger.ts";
import { recoverEntries, reserveSpace, spillEntries } from "../ledger/spill.ts";
import { isUnwritable } from "../store/store-error.ts";
import type { Logger } from "../telemetry/logger.ts";

/** The ledger of one process, which recovers at the start and spills at the end. */
export interface Accounting {
  readonly ledger: OwnedLedger;
  /**
   * Writes the pending entries into the database or, if that is unavailable, into the data directory or, if that takes no file, into
   * the log.
   */
  close(): Promise<void>;
}

interface AccountingPorts {
  readonly store: LedgerStore;
  readonly clock: Clock;
  /** ID of this process among the replicas. */
  readonly replica: string;
  /** Its number among the workers of its program, from 1. */
  readonly worker: number;
  readonly log: Logger;
}

/** Opens the ledger and writes the entries that an earlier process left in the data directory. Rejects when that fails. */
export async function openAccounting(
  config: Config,
  { store, clock, replica, worker, log }: AccountingPorts,
): Promise<Accounting> {
  const place = { dataDir: config.dataDir, worker };
  const recovered = await recoverEntries(config.dataDir, store);
  if (recovered > 0) log.info({ entries: recovered }, "ledger entries of an earlier process were written");
  await reserveSpace(place).catch((cause: unknown) =>
    log.warn({ cause: String(cause) }, "no space on the disk is reserved for ledger entries"),
  );
  const ledger = createLedger({
    store,
    clock,
    process: replica,
    isUnwritable,
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
      try {
        const file = await spillEntries(place, left);
        log.error({ entries: left.length, file }, "the database is away: the next start writes these entries");
      } catch (cause) {
        log.fatal(
          { entries: left.length, cause: String(cause) },
          "unwritten ledger entries are in this log only, one a line in `ledger_entry`",
        );
        await logEntries(left, log);
      }
    },
  };
}

/** Writes one line for each entry: `jq -c .ledger_entry` makes the lines of a file that the next start reads. */
async function logEntries(entries: readonly NewLedgerEntry[], log: Logger): Promise<void> {
  for (const entry of entries) {
    log.fatal({ ledger_entry: entry }, "unwritten ledger entry");
    // The log's buffer is bounded: it is written in between.
    await nextTurn();
  }
}
