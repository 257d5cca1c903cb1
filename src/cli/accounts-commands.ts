import { createAccount, requireFirstOwner, updateAccount } from "../access/accounts.ts";
import type { AccessContext } from "../access/context.ts";
import { createInvitation } from "../access/invitations.ts";
import { ROLES } from "../access/permissions.ts";
import { resetFactors } from "../access/factors/reset-factors.ts";
import { offboard } from "../access/offboarding.ts";
import { resetPassword } from "../access/password-change.ts";
import { createPasswordHasher } from "../access/password-hash.ts";
import { createThrottle } from "../access/throttle.ts";
import { SignInQueue } from "../access/sign-in-queue.ts";
import type { Config } from "../config/config.ts";
import { factorSecretsOf, signInRulesOf } from "../gateway/access.ts";
import { credentialCipherOf } from "../gateway/account-credentials.ts";
import { isExposed } from "../config/warnings.ts";
import { systemClock } from "../core/clock.ts";
import { type Command, CONFIG_FLAG, type Invocation, JSON_FLAG, readSecret, UsageError, writeJson } from "./command.ts";
import { describeLimits, LIMIT_FLAGS, readLimits } from "./limit-flags.ts";
import { ACCOUNT_HEADING, toAccountJson, toAccountRow, toInvitationJson, writeInvitation } from "./output.ts";
import { pagesOf, writeJsonPages, writeTablePages } from "./pages.ts";
import { commandLog, type DatabaseContext, findAccountByIdOrEmail, withStore } from "./with-store.ts";

/** Actor of changes in the audit log: no account and no network. */
export const ACTOR = { actorId: undefined, network: undefined };

const PASSWORD_FLAG = {
  "password-stdin": { help: "read the password from standard input" },
} as const;

export const accountsCreate: Command = {
  name: "accounts create",
  summary:
    "invite a person and print the invitation's token, if passwords are on, or create an account with a password",
  positionals: [],
  flags: {
    email: { value: "ADDRESS", help: "e-mail address of the account (required)" },
    name: { value: "NAME", help: "name of the account, with --password-stdin (default: the address up to the @)" },
    role: { value: ROLES.join("|"), help: "role of the account (default: developer)" },
    ...PASSWORD_FLAG,
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withAccounts(invocation, { ...context, createsDatabase: true }, async (access) => {
      const { email, name, role: word = "developer" } = invocation.flags;
      if (email === undefined) throw new UsageError("--email is required: --email ADDRESS");
      const role = ROLES.find((known) => known === word);
      if (role === undefined) throw new UsageError(`--role is one of ${ROLES.join(", ")}`);
      const asJson = invocation.switches.has("json");
      if (invocation.switches.has("password-stdin")) {
        const password = await readSecret(context, "--password-stdin");
        const account = await createAccount(access, { email, name, role, password });
        if (asJson) writeJson(context.stdout, toAccountJson(account));
        else context.stdout.write(`Created ${account.id} (${account.email}, ${account.role}).\n`);
        return;
      }
      if (name !== undefined)
        throw new UsageError("--name needs --password-stdin: an invited person chooses the name at sign-up");
      await requireFirstOwner(access.store, role);
      const invitation = await createInvitation(access, { email, role, ...ACTOR });
      if (asJson) writeJson(context.stdout, toInvitationJson(invitation));
      else writeInvitation(context, invitation, access.signIn);
    }),
};

export const accountsList: Command = {
  name: "accounts list",
  summary: "list all accounts",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async ({ store }) => {
      const pages = pagesOf((page) => store.list(page));
      if (invocation.switches.has("json")) await writeJsonPages(context.stdout, pages, toAccountJson);
      else await writeTablePages(context.stdout, pages, { heading: ACCOUNT_HEADING, toRow: toAccountRow });
    }),
};

export const accountsDisable = switching({
  name: "accounts disable",
  summary: "end an account's sessions, and refuse its keys within five seconds",
  disabled: true,
});

export const accountsEnable = switching({
  name: "accounts enable",
  summary: "enable a disabled account and its keys again",
  disabled: false,
});

export const accountsLimit: Command = {
  name: "accounts limit",
  summary: "change an account's limits, which all its keys share; limits without a flag stay",
  positionals: ["ID|EMAIL"],
  flags: { ...LIMIT_FLAGS, ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const { id, limits: before } = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
      const limits = readLimits(invocation.flags, before);
      const account = await updateAccount(access, { id, update: { limits }, actor: ACTOR });
      if (invocation.switches.has("json")) writeJson(context.stdout, toAccountJson(account));
      else context.stdout.write(`${id} has the limits: ${describeLimits(limits)}.\n`);
    }),
};

export const accountsOffboard: Command = {
  name: "accounts offboard",
  summary: "disable a person's account, end its sessions and memberships, and transfer or revoke its keys",
  positionals: ["ID|EMAIL"],
  flags: {
    "transfer-keys-to": { value: "ID|EMAIL", help: "account that becomes the owner of the keys, such as a team" },
    "revoke-keys": { help: "revoke the keys, for good" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const receiver = invocation.flags["transfer-keys-to"];
      if ((receiver === undefined) !== invocation.switches.has("revoke-keys"))
        throw new UsageError("give one of --transfer-keys-to ID|EMAIL and --revoke-keys");
      const { id } = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
      const keysTo = receiver && (await findAccountByIdOrEmail(access.store, receiver)).id;
      const { keyIds, teams, sessions } = await offboard(access, { id, keysTo, actor: ACTOR });
      if (invocation.switches.has("json"))
        writeJson(context.stdout, {
          id,
          keys: keyIds,
          keys_to: keysTo ?? null,
          teams: teams.map(({ teamId }) => teamId),
          sessions,
        });
      else {
        const fate = keysTo === undefined ? "revoked" : `transferred to ${keysTo}`;
        const counts = `${keyIds.length} keys ${fate}, ${teams.length} teams left, ${sessions} sessions ended`;
        context.stdout.write(`Offboarded ${id}: ${counts}.\n`);
      }
    }),
};

export const accountsResetPassword: Command = {
  name: "accounts reset-password",
  summary: "set an account's password, and end all its sessions",
  positionals: ["ID|EMAIL"],
  flags: { ...PASSWORD_FLAG, ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      if (!invocation.switches.has("password-stdin")) {
        throw new UsageError("--password-stdin is required: the new password is read from standard input");
      }
      const account = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
      await resetPassword(access, account, await readSecret(context, "--password-stdin"));
      if (invocation.switches.has("json")) writeJson(context.stdout, { id: account.id, password: "reset" });
      else context.stdout.write(`${account.email} has a new password.\n`);
    }),
};

export const accountsResetFactors: Command = {
  name: "accounts reset-factors",
  summary: "remove a person's passkeys, authenticator app and recovery codes, and end all sessions",
  positionals: ["ID|EMAIL"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const account = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
      const { passkeys, totp } = await resetFactors(access, account, ACTOR);
      if (invocation.switches.has("json")) writeJson(context.stdout, { id: account.id, passkeys, totp });
      else
        context.stdout.write(
          `Removed ${passkeys} passkeys and ${totp ? "the" : "no"} authenticator app of ${account.id}.\n`,
        );
    }),
};

function switching({ name, summary, disabled }: { name: string; summary: string; disabled: boolean }): Command {
  return {
    name,
    summary,
    positionals: ["ID|EMAIL"],
    flags: { ...CONFIG_FLAG, ...JSON_FLAG },
    run: (invocation, context) =>
      withAccounts(invocation, context, async (access) => {
        const { id } = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
        const account = await updateAccount(access, { id, update: { disabled }, actor: ACTOR });
        if (invocation.switches.has("json")) writeJson(context.stdout, toAccountJson(account));
        else context.stdout.write(`${disabled ? "Disabled" : "Enabled"} ${id}.\n`);
      }),
  };
}

export function withAccounts(
  invocation: Invocation,
  context: DatabaseContext,
  action: (access: AccessContext, config: Config) => Promise<void>,
): Promise<number> {
  const clock = systemClock;
  return withStore(invocation, context, (store, config) =>
    action(
      {
        store: store.accounts,
        throttle: createThrottle(store.throttles, clock),
        signInQueue: new SignInQueue(),
        passwords: createPasswordHasher(),
        factors: factorSecretsOf({ store, inForce: () => config, cipher: () => credentialCipherOf(config) }),
        resetMail: () => undefined,
        log: commandLog(store.audit, context),
        clock,
        signUp: config.signUp,
        signIn: signInRulesOf(config),
        isExposed: isExposed(config),
      },
      config,
    ),
  );
}
