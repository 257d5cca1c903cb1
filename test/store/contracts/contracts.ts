import type { Store } from "../../../src/store/store.ts";
import { describeAccountStore } from "../../access/account-store-contract.ts";
import { describeSharedAccounts } from "./shared-accounts.ts";
import { describeBegunCompletions } from "./begun-completions.ts";
import { describeBudgetStore } from "./budget-store.ts";
import { describeHealthNotes } from "./health-notes.ts";
import { describeKeyStore } from "./key-store.ts";
import { describeLedgerStore } from "./ledger-store.ts";
import { describeRefusalStore } from "./refusal-store.ts";
import { describeResponseStore } from "./response-store.ts";
import { describeSecrets } from "./secrets.ts";
import { describeUsageStore } from "./usage-store.ts";

/**
 * Registers the suites that every database has to pass. `open` returns a store on an empty one, and closes it after the
 * test.
 */
export function describeStore(open: () => Promise<Store>): void {
  describeKeyStore(open);
  describeAccountStore("the database", open);
  describeSharedAccounts(open);
  describeLedgerStore(open);
  describeBegunCompletions(open);
  describeUsageStore(open);
  describeRefusalStore(open);
  describeBudgetStore(open);
  describeResponseStore(open);
  describeHealthNotes(open);
  describeSecrets(open);
}
