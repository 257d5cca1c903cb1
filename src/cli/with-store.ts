import type { AccountRecord, AccountStore } from "../access/account-store.ts";
import { toEmail } from "../access/address.ts";
import type { Config } from "../config/config.ts";
import { loadConfig } from "../config/load.ts";
import { openStore, type Store } from "../store/store.ts";
import { type CliContext, EXIT, type Invocation, UsageError } from "./command.ts";

/** Runs a command's action on the configured database, and closes it in any case. Answers with the exit code. */
export async function withStore(
  { flags }: Invocation,
  { env }: CliContext,
  action: (store: Store, config: Config) => Promise<void>,
): Promise<number> {
  const config = loadConfig({ file: flags["config"], env });
  const store = await openStore(config);
  try {
    await action(store, config);
    return EXIT.ok;
  } finally {
    await store.close();
  }
}

/** The account with this ID or e-mail address. Throws UsageError when there is none. */
export async function findAccountByIdOrEmail(accounts: AccountStore, idOrEmail: string): Promise<AccountRecord> {
  const found = idOrEmail.includes("@")
    ? await accounts.findByEmail(toEmail(idOrEmail))
    : await accounts.find(idOrEmail);
  if (found !== undefined) return found;
  throw new UsageError(`there is no account ${idOrEmail}; parley accounts list shows all`);
}
