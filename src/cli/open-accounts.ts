import type { AccountStore, ThrottleStore } from "../access/account-store.ts";
import type { Config } from "../config/config.ts";
import { openStore } from "../store/store.ts";

/** The part of the database that is about accounts, until it is closed. */
export interface OpenAccounts {
  readonly accounts: AccountStore;
  readonly throttles: ThrottleStore;
  close(): Promise<void>;
}

/** Opens the configured database. Throws when it cannot be opened, or keeps no accounts. */
export async function openAccounts(config: Config): Promise<OpenAccounts> {
  const store: Partial<OpenAccounts> & Pick<OpenAccounts, "close"> = await openStore(config.dataDir);
  const { accounts, throttles } = store;
  if (accounts !== undefined && throttles !== undefined) return { accounts, throttles, close: () => store.close() };
  await store.close();
  throw new Error("this database keeps no accounts");
}
