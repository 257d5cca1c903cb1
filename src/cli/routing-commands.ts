import {
  findRouting,
  removeCredential,
  type RoutingContext,
  setAliases,
  setCredential,
} from "../access/account-routing.ts";
import type { AccountStore, StoredCredential } from "../access/account-store.ts";
import type { Config } from "../config/config.ts";
import { systemClock } from "../core/clock.ts";
import { type CredentialCipher, credentialCipherOf, providersForAccounts } from "../gateway/account-credentials.ts";
import type { ProviderCredentialRow } from "../store/schema.ts";
import { ACTOR, withAccounts } from "./accounts-commands.ts";
import {
  type CliContext,
  type Command,
  CONFIG_FLAG,
  EXIT,
  type Invocation,
  JSON_FLAG,
  readSecret,
  UsageError,
  writeJson,
} from "./command.ts";
import { formatTable } from "./output.ts";
import { pagesOf } from "./pages.ts";
import { commandLog, findAccountByIdOrEmail, withStore } from "./with-store.ts";

const PROVIDER_FLAG = { provider: { value: "NAME", help: "name of the provider (required)" } } as const;

export const credentialsSet: Command = {
  name: "credentials set",
  summary: "set an account's own credential for a provider, which is used for the account's keys only",
  positionals: ["ID|EMAIL"],
  flags: {
    ...PROVIDER_FLAG,
    "secret-stdin": { help: "read the credential from standard input (required)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withRouting(invocation, context, async (routing, accountId) => {
      const provider = providerOf(invocation);
      if (!invocation.switches.has("secret-stdin"))
        throw new UsageError("--secret-stdin is required: the credential is read from standard input");
      const secret = await readSecret(context, "--secret-stdin");
      const credential = await setCredential(routing, { accountId, provider, secret, actor: ACTOR });
      if (invocation.switches.has("json")) writeJson(context.stdout, toJson(credential));
      else context.stdout.write(`${accountId} has its own credential for ${provider}.\n`);
    }),
};

export const credentialsList: Command = {
  name: "credentials list",
  summary: "list the providers for which an account has its own credential",
  positionals: ["ID|EMAIL"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withRouting(invocation, context, async ({ store }, accountId) => {
      const { credentials } = await findRouting(store, accountId);
      const rows = credentials.map(({ provider, setAtMs, setBy }) => [
        provider,
        new Date(setAtMs).toISOString(),
        setBy ?? "-",
      ]);
      if (invocation.switches.has("json")) writeJson(context.stdout, credentials.map(toJson));
      else context.stdout.write(`${formatTable([["PROVIDER", "SET", "BY"], ...rows])}\n`);
    }),
};

export const credentialsRemove: Command = {
  name: "credentials remove",
  summary: "remove an account's own credential for a provider",
  positionals: ["ID|EMAIL"],
  flags: { ...PROVIDER_FLAG, ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withRouting(invocation, context, async (routing, accountId) => {
      const provider = providerOf(invocation);
      if (!(await removeCredential(routing, { accountId, provider, actor: ACTOR })))
        throw new UsageError(`${accountId} has no credential of its own for ${provider}`);
      if (invocation.switches.has("json")) writeJson(context.stdout, { account: accountId, provider, removed: true });
      else context.stdout.write(`${accountId} has no credential of its own for ${provider} any more.\n`);
    }),
};

export const credentialsReseal: Command = {
  name: "credentials reseal",
  summary: "encrypt all credentials in the database anew, with account_credentials.encryption_key",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  async run(invocation, context) {
    const total = { resealed: 0, unreadable: 0 };
    const add = ({ resealed, unreadable }: typeof total): void => {
      total.resealed += resealed;
      total.unreadable += unreadable;
    };
    const code = await withStore(invocation, context, async (store, config) => {
      const { configuration, accounts, alerts, auditStreams, audit } = store;
      const cipher = credentialCipherOf(config);
      const facts = { at_ms: systemClock.now(), actor_id: null, comment: "credentials encrypted anew" };
      const sealKeysAgain = (row: ProviderCredentialRow): string | undefined => {
        const apiKeys = cipher.openKeys(row.sealed, row);
        return apiKeys && cipher.sealKeys(apiKeys, row);
      };
      const sealAgain = ({ sealed, id }: { readonly sealed: string; readonly id: string }): string | undefined => {
        const secrets = cipher.openChannel(sealed, id);
        return secrets && cipher.sealChannel(secrets, id);
      };
      const sealTotpAgain = (sealed: string, accountId: string): string | undefined => {
        const secret = cipher.openTotp(sealed, accountId);
        return secret && cipher.sealTotp(secret, accountId);
      };
      add(await configuration.reseal(sealKeysAgain, facts));
      for await (const page of pagesOf((from) => accounts.list(from)))
        for (const { id } of page) add(await resealOwn(accounts, cipher, id));
      add(await alerts.resealChannels(sealAgain));
      add(await auditStreams.resealStreams(sealAgain));
      add(await accounts.resealTotp(sealTotpAgain));
      await commandLog(audit, context).record({
        action: "credentials_resealed",
        details: { resealed: String(total.resealed), unreadable: String(total.unreadable) },
      });
      if (invocation.switches.has("json")) writeJson(context.stdout, total);
      else context.stdout.write(`Encrypted ${total.resealed} credentials anew.\n`);
    });
    if (code !== EXIT.ok || total.unreadable === 0) return code;
    context.stderr.write(
      `parley: ${total.unreadable} cannot be decrypted: give their key as account_credentials.previous_encryption_key\n`,
    );
    return EXIT.failed;
  },
};

/** Encrypts an account's own credentials again. Those that cannot be decrypted stay. */
async function resealOwn(store: AccountStore, cipher: CredentialCipher, accountId: string) {
  const counts = { resealed: 0, unreadable: 0 };
  if ((await findRouting(store, accountId)).credentials.length === 0) return counts;
  await store.changeRouting(accountId, (before) => {
    // Repeated after a conflict.
    Object.assign(counts, { resealed: 0, unreadable: 0 });
    const credentials = before.credentials.map((credential) => {
      const place = { accountId, provider: credential.provider };
      const secret = cipher.open(credential.sealed, place);
      counts[secret === undefined ? "unreadable" : "resealed"] += 1;
      return secret === undefined ? credential : { ...credential, sealed: cipher.seal(secret, place) };
    });
    return { ...before, credentials };
  });
  return counts;
}

export const accountsAliases: Command = {
  name: "accounts aliases",
  summary: "show or replace the aliases of an account, which its keys have before those of the configuration",
  positionals: ["ID|EMAIL"],
  flags: {
    set: {
      value: "NAME=MODEL,…|none",
      help: "the aliases, in the order in which they are tried (default: as they are)",
    },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withRouting(invocation, context, async (routing, accountId) => {
      const text = invocation.flags["set"];
      const aliases =
        text === undefined
          ? (await findRouting(routing.store, accountId)).aliases
          : await setAliases(routing, { accountId, aliases: readAliases(text), actor: ACTOR });
      if (invocation.switches.has("json"))
        writeJson(
          context.stdout,
          aliases.map(([name, model]) => ({ name, model })),
        );
      else context.stdout.write(`${formatTable([["ALIAS", "MODEL"], ...aliases.map((pair) => [...pair])])}\n`);
    }),
};

function withRouting(
  invocation: Invocation,
  context: CliContext,
  action: (routing: RoutingContext, accountId: string) => Promise<void>,
): Promise<number> {
  return withAccounts(invocation, context, async (access, config) => {
    const { id } = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
    await action({ ...access, rules: rulesOf(config) }, id);
  });
}

function rulesOf(config: Config): RoutingContext["rules"] {
  return {
    seal: credentialCipherOf(config).seal,
    providers: () => providersForAccounts(config),
    models: () => new Set([...config.models, ...config.routes].map(({ id }) => id)),
  };
}

function providerOf({ flags: { provider } }: Invocation): string {
  if (provider === undefined) throw new UsageError("--provider is required: --provider NAME");
  return provider;
}

function readAliases(text: string): [name: string, model: string][] {
  if (text === "none") return [];
  return text.split(",").map((pair) => {
    const [name = "", model = "", ...more] = pair.split("=").map((part) => part.trim());
    if (name === "" || model === "" || more.length > 0)
      throw new UsageError('--set is none, or a list such as "gpt-5=chat,claude-*=alpha-sonnet-4.5"');
    return [name, model];
  });
}

function toJson({ provider, setAtMs, setBy }: StoredCredential): object {
  return { provider, set: new Date(setAtMs).toISOString(), set_by: setBy ?? null };
}
