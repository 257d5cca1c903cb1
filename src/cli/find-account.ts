import type { AccountRecord, AccountStore } from "../access/account-store.ts";
import { UsageError } from "./command.ts";

/** The account with this ID or e-mail address. Throws UsageError when there is none. */
export async function findAccount(accounts: AccountStore, idOrEmail: string): Promise<AccountRecord> {
  const found = idOrEmail.includes("@")
    ? await accounts.findByEmail(idOrEmail.toLowerCase())
    : await accounts.find(idOrEmail);
  if (found !== undefined) return found;
  throw new UsageError(`there is no account ${idOrEmail}; parley accounts list shows all`);
}
