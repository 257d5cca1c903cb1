import type { openStore, Store } from "../../../src/store/store.ts";
import { describeAccountStore } from "../../access/account-store-contract.ts";
import { describeAttributedBudgets } from "./attributed-budgets.ts";
import { describeAuditStore } from "./audit-store.ts";
import { describeAuditStreams } from "./audit-streams.ts";
import { describeSharedAccounts } from "./shared-accounts.ts";
import { describeAlertStore } from "./alert-store.ts";
import { describeBegunCompletions } from "./begun-completions.ts";
import { describeBudgetStore } from "./budget-store.ts";
import { describeConfigurationStore } from "./configuration-store.ts";
import { describeHealthNotes } from "./health-notes.ts";
import { describeKeyStore } from "./key-store.ts";
import { describeLedgerStore } from "./ledger-store.ts";
import { describeRefusalStore } from "./refusal-store.ts";
import { describeResponseStore } from "./response-store.ts";
import { describeContents } from "./sealed-rows.ts";
import { describeSavedFilters } from "./saved-filters.ts";
import { describeSecrets } from "./secrets.ts";
import { describeSortedLog } from "./sorted-log.ts";
import { describeStopStore } from "./stop-store.ts";
import { describeTargetHistory } from "./target-history.ts";
import { describeUsageLeaders } from "./usage-leaders.ts";
import { describeUsageStore } from "./usage-store.ts";

/** Opens a store on an empty database, and closes it after the test. */
export type OpenStore = (
  options?: Pick<NonNullable<Parameters<typeof openStore>[1]>, "exactUsageRows">,
) => Promise<Store>;

/**
 * Registers the suites that every database has to pass.
 */
export function describeStore(open: OpenStore): void {
  describeKeyStore(open);
  describeAccountStore("the database", open);
  describeSharedAccounts(open);
  describeAuditStore(open);
  describeAuditStreams(open);
  describeLedgerStore(open);
  describeSortedLog(open);
  describeBegunCompletions(open);
  describeUsageStore(open);
  describeUsageLeaders(open);
  describeRefusalStore(open);
  describeBudgetStore(open);
  describeAttributedBudgets(open);
  describeResponseStore(open);
  describeContents(open);
  describeConfigurationStore(open);
  describeAlertStore(open);
  describeHealthNotes(open);
  describeTargetHistory(open);
  describeSavedFilters(open);
  describeStopStore(open);
  describeSecrets(open);
}
