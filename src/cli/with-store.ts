import { existsSync } from "node:fs";
import { userInfo } from "node:os";
import { resolve } from "node:path";
import type { AccountRecord, AccountStore } from "../access/account-store.ts";
import { toEmail } from "../access/address.ts";
import { type AuditLog, createAuditLog } from "../access/audit-log.ts";
import type { Config } from "../config/config.ts";
import { type LoadOptions, readSource, withKeys } from "../config/load.ts";
import { type ConfigSource, parseConfig } from "../config/parse.ts";
import { NOTHING_STORED, UNREAD } from "../config/stored.ts";
import { credentialCipherOf } from "../gateway/account-credentials.ts";
import { toStored } from "../gateway/stored-watch.ts";
import { systemClock } from "../core/clock.ts";
import { sqliteFile } from "../store/database.ts";
import { databaseExists } from "../store/open-database.ts";
import { connectConfiguration, openStore, type Store } from "../store/store.ts";
import { type CliContext, EXIT, type Invocation, UsageError } from "./command.ts";

/** The context of a command, and whether it creates a missing database. Default: false. */
export type DatabaseContext = CliContext & { readonly createsDatabase?: boolean };

/**
 * Runs a command's action on the configured database, and closes it in any case. Answers with the exit code. The configuration has the
 * stored entries too. No such command calls a provider, so credentials need not be in its environment. Throws when there is no database yet, unless
 * the command `createsDatabase`: then the new one is named on standard error.
 */
export async function withStore(
  { flags }: Invocation,
  { env, stderr, createsDatabase = false }: DatabaseContext,
  action: (store: Store, config: Config, source: ConfigSource) => Promise<void>,
): Promise<number> {
  const source = await withKeys(readSource({ file: flags["config"], env, unused: ["providers"] }));
  const config = parseConfig({ ...source, stored: UNREAD });
  const file = resolve(sqliteFile(config.dataDir));
  const isNew = config.databaseUrl === undefined && !databaseExists(file);
  const hint = "run this in the folder of the gateway, or name its configuration with --config FILE";
  if (isNew && !createsDatabase) throw new Error(`there is no database at ${file}; ${hint}`);
  const store = await openStore(config);
  if (isNew) stderr.write(`Made a new database: ${file}. A gateway that runs already uses another one: ${hint}.\n`);
  try {
    // No key is made for providers of the file.
    const cipher = credentialCipherOf({ ...config, providers: [] });
    const complete = { ...source, stored: toStored(await store.configuration.read(), cipher) };
    await action(store, parseConfig(complete), complete);
    return EXIT.ok;
  } finally {
    await store.close();
  }
}

/**
 * The configuration with the stored entries, if there is a database that answers; a command that needs none must work without it.
 * Throws ConfigError.
 */
export async function loadWithStored(options: LoadOptions): Promise<Config> {
  const source = await withKeys(readSource(options));
  const config = parseConfig({ ...source, stored: UNREAD });
  if (config.databaseUrl === undefined && !existsSync(sqliteFile(config.dataDir)))
    return parseConfig({ ...source, stored: NOTHING_STORED });
  const connection = connectConfiguration(config);
  try {
    const rows = await (await connection.store()).read();
    return parseConfig({ ...source, stored: toStored(rows, credentialCipherOf({ ...config, providers: [] })) });
  } catch {
    return config;
  } finally {
    await connection.close();
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

/** The audit log for a command: the actor is the user of the operating system. Warns of an entry that could not be stored. */
export function commandLog(store: Store["audit"], { stderr }: Pick<CliContext, "stderr">): AuditLog {
  return createAuditLog({
    store,
    clock: systemClock,
    actor: { kind: "command_line", id: systemUser() },
    listener({ action }, lost) {
      if (lost === undefined) return;
      const cause = lost instanceof Error ? lost.message : "unknown";
      stderr.write(`warning: the change is made, but the audit log has no entry of it (${action}): ${cause}\n`);
    },
  });
}

/** The name of the process's user; undefined for a user without one. */
function systemUser(): string | undefined {
  try {
    return userInfo().username;
  } catch {
    return undefined;
  }
}
