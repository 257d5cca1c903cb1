import type { Config } from "../config/config.ts";
import type { Clock } from "../core/clock.ts";
import type { Store } from "../store/store.ts";
import type { Chore } from "./housekeeping.ts";

const MINUTE_MS = 60_000;

/** What is tidied up in the database while the gateway runs. Replicas may all do it. */
export function choresOf(
  { ledger }: Config,
  { store, clock }: { readonly store: Store; readonly clock: Clock },
): Chore[] {
  return [
    { name: "free budgets held by processes that are gone", everyMs: MINUTE_MS, run: () => store.budgets.reap() },
    {
      name: "remove ledger entries past their retention",
      everyMs: 10 * MINUTE_MS,
      run: () => store.ledger.prune(clock.now() - ledger.retentionMs),
    },
  ];
}
