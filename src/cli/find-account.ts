import type { AccountRecord, AccountStore } from "../access/account-store.ts";
import { toEmail } from "../access/address.ts";
import { UsageError } from "./command.ts";

/** The account with this ID or e-mail address. Throws UsageError when there is none. */
export async function findAccountByIdOrEmail(accounts: AccountStore, idOrEmail: string): Promise<AccountRecord> {
  const found = idOrEmail.includes("@")
    ? await accounts.findByEmail(toEmail(idOrEmail))
    : await accounts.find(idOrEmail);
  if (found !== undefined) return found;
  throw new UsageError(`there is no account ${idOrEmail}; parley accounts list shows all`);
}
