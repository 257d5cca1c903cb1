import type { Store } from "../../../src/store/store.ts";
import { describeAccountStore } from "../../access/account-store-contract.ts";
import { describeSharedAccounts } from "./shared-accounts.ts";
import { describeBudgetStore } from "./budget-store.ts";
import { describeKeyStore } from "./key-store.ts";
import { describeLedgerStore } from "./ledger-store.ts";
import { describeUsageStore } from "./usage-store.ts";

/** What every database promises. `open` gives a store on an empty one, and closes it when the test has ended. */
export function describeStore(open: () => Promise<Store>): void {
  describeKeyStore(open);
  describeAccountStore("the database", open);
  describeSharedAccounts(open);
  describeLedgerStore(open);
  describeUsageStore(open);
  describeBudgetStore(open);
}
