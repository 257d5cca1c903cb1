import { setImmediate as nextTurn } from "node:timers/promises";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Ledger, NewLedgerEntry } from "../core/ledger.ts";
import type { LedgerStore } from "../ledger/ledger-store.ts";
import { EntryFiles } from "../ledger/entry-files.ts";
import { createLedger, type OwnedLedger } from "../ledger/ledger.ts";
import { reserveSpace, spillEntries } from "../ledger/spill.ts";
import type { Logger } from "../telemetry/logger.ts";

/** The ledger of one process, with the files of its data directory. */
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
  /** Whether the database is unavailable, so that entries of earlier processes stay in their files until it is back. */
  readonly isAway: boolean;
}

/** Age of the oldest entry at which all are written, when no answer waits for them. */
const INTERVAL_MS = 50;

/** The ledger as completions use it: by `ledger.durability`, answers wait for it or not. */
export function ledgerOfAnswers({ ledger: { durability } }: Config, ledger: Ledger): Ledger {
  if (durability === "reply") return ledger;
  return {
    admit: () => ledger.admit(),
    begin(entry) {
      void ledger.begin(entry);
      return undefined;
    },
    append(entry) {
      void ledger.append(entry);
      return undefined;
    },
  };
}

/** Opens the ledger and writes the entries that an earlier process left in files. Rejects when that fails. */
export async function openAccounting(
  config: Config,
  { store, clock, replica, worker, log, isAway }: AccountingPorts,
): Promise<Accounting> {
  const place = { dataDir: config.dataDir, worker };
  const files = new EntryFiles(config.dataDir, ({ path, cause }) =>
    log.error(
      { file: path, cause: String(cause) },
      "this file of ledger entries is left as it is: correct its access or disk; the next start writes its entries",
    ),
  );
  const recovered = isAway ? 0 : await files.recover(store);
  if (recovered > 0) log.info({ entries: recovered }, "ledger entries of an earlier process were written");
  await reserveSpace(place).catch((cause: unknown) =>
    log.warn({ cause: String(cause) }, "no space on the disk is reserved for ledger entries"),
  );
  const ledger = createLedger({
    store,
    files,
    clock,
    process: replica,
    intervalMs: config.ledger.durability === "interval" ? INTERVAL_MS : 0,
    isAway,
    onTrouble(trouble) {
      if (trouble === undefined) return log.info("the ledger is written again");
      const text =
        trouble.of === "database"
          ? "the ledger cannot be written; entries are kept in files of data_dir"
          : "entries of the ledger cannot be kept in files; no completion is admitted";
      log.error({ cause: String(trouble.cause) }, text);
    },
  });
  return {
    ledger,
    async close() {
      const { filed, left } = await ledger.close();
      if (filed > 0)
        log.error({ entries: filed }, "the database is unavailable: the next start writes the entries in data_dir");
      if (left.length === 0) return;
      try {
        const file = await spillEntries(place, left);
        log.error({ entries: left.length, file }, "the database is unavailable: the next start writes these entries");
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
