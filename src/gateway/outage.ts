import type { Authenticator } from "../access/key-cache.ts";
import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { OwnedLedger } from "../ledger/ledger.ts";
import { createBudgetSlices, type SlicedBudgets } from "../limits/budget-slices.ts";
import type { BudgetStore } from "../limits/budgets.ts";
import { MIGRATIONS } from "../store/migrations.ts";
import type { Store } from "../store/store.ts";
import type { Logger } from "../telemetry/logger.ts";
import { KeyFile, type KnownBefore } from "./key-file.ts";

/** State by which a process can serve without its database. */
export interface Outage {
  /**
   * Data of an earlier process, to serve by while the database is unavailable from the start; undefined without a usable
   * file of known keys.
   */
  readonly before: KnownBefore | undefined;
  /** Logs how the database is opened. `failed` resolves when it cannot be used, and is undefined for one that is open. */
  tell(store: Pick<Store, "opening" | "versions">): { readonly failed?: Promise<Error> };
  /** Keeps the file of known keys. The returned function writes it once more. */
  keep(
    keys: Authenticator,
    facts: { readonly stateSecret: Buffer; readonly replicas: () => number },
  ): () => Promise<void>;
  /** Time since this process has written its known keys, or since its start; undefined where it keeps no file. */
  fileAgeMs(): number | undefined;
}

interface OutagePorts {
  readonly clock: Clock;
  readonly log: Logger;
  /** Number of this worker. */
  readonly worker: number;
}

/** Reads what an earlier process has left. SQLite is in the data directory itself, so nothing is kept for it. */
export async function openOutage(config: Config, ports: OutagePorts): Promise<Outage> {
  const { log } = ports;
  const isKept = config.databaseUrl !== undefined && config.outage.serveMs > 0;
  const file = isKept ? new KeyFile(config, ports) : undefined;
  return {
    before: await file?.read(),
    tell({ opening, versions }) {
      const tellMigration = (): void => {
        const { before, after } = versions();
        if (before !== after) log.info({ schema_before: before, schema: after }, "database migrated");
        if (after > MIGRATIONS.length)
          log.info({ schema: after, known: MIGRATIONS.length }, "the database has been migrated by a newer version");
      };
      if (opening === undefined) {
        tellMigration();
        return {};
      }
      log.error("the database cannot be reached: serving the keys that were known before");
      const failed = opening.then(
        () => {
          tellMigration();
          log.info("the database is open");
          return new Promise<never>(() => undefined);
        },
        (error: Error) => error,
      );
      return { failed };
    },
    keep: (keys, facts) => file?.keep(keys, facts) ?? (async () => undefined),
    fileAgeMs: () => file?.ageMs,
  };
}

interface SlicePorts {
  readonly store: Pick<Store, "kind" | "health" | "ledger">;
  readonly budgets: BudgetStore;
  readonly ledger: Pick<OwnedLedger, "isBooked">;
  readonly clock: Clock;
}

/** Budgets of which a part can be spent without PostgreSQL; undefined without such a part. */
export function slicesOf(
  { outage: { budgetShare: share, serveMs: lastsMs } }: Config,
  { store, budgets, ledger, clock }: SlicePorts,
): SlicedBudgets | undefined {
  if (store.kind === "sqlite" || share === 0 || lastsMs === 0) return undefined;
  return createBudgetSlices({
    budgets,
    clock,
    share,
    lastsMs,
    isAway: () => !store.health().up,
    async book() {
      if (!ledger.isBooked()) return false;
      await store.ledger.flush();
      return true;
    },
  });
}
