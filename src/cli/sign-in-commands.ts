import { linkIdentity, unlinkIdentity } from "../access/identities.ts";
import { createSignInLink } from "../access/sign-in-link.ts";
import type { Config } from "../config/config.ts";
import { formatAddress } from "../config/settings.ts";
import { withAccounts } from "./accounts-commands.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, UsageError, writeJson } from "./command.ts";
import { findAccountByIdOrEmail } from "./with-store.ts";

export const accountsSignInLink: Command = {
  name: "accounts sign-in-link",
  summary: "print a link that signs an account in once, within ten minutes, without password and provider",
  positionals: ["ID|EMAIL"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access, { http }) => {
      const account = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
      const token = await createSignInLink(access, account);
      const base = http.publicUrl ?? `${http.tls === undefined ? "http" : "https"}://${formatAddress(http.listen)}`;
      const link = `${base}/sign-in#link=${token}`;
      if (invocation.switches.has("json")) writeJson(context.stdout, { id: account.id, link });
      else context.stdout.write(`${link}\n`);
    }),
};

export const accountsLink: Command = {
  name: "accounts link",
  summary:
    "link an account to a person of the OpenID provider, by the subject in the event of the refused sign-in, and end its password, factors and sessions",
  positionals: ["ID|EMAIL"],
  flags: {
    subject: { value: "SUBJECT", help: "the person's subject (sub) at the provider (required)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access, config) => {
      const { subject } = invocation.flags;
      if (subject === undefined || subject === "") throw new UsageError("--subject is required: --subject SUBJECT");
      const account = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
      const issuer = issuerOf(config);
      await linkIdentity(access, account, { issuer, subject });
      if (invocation.switches.has("json")) writeJson(context.stdout, { id: account.id, issuer, subject });
      else context.stdout.write(`Linked ${account.id} to ${subject} of ${issuer}.\n`);
    }),
};

export const accountsUnlink: Command = {
  name: "accounts unlink",
  summary: "remove the link of an account to the OpenID provider, and end its sessions",
  positionals: ["ID|EMAIL"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access, config) => {
      const account = await findAccountByIdOrEmail(access.store, invocation.positionals[0] ?? "");
      const issuer = issuerOf(config);
      const removed = await unlinkIdentity(access, account, issuer);
      if (invocation.switches.has("json")) writeJson(context.stdout, { id: account.id, issuer, removed });
      else context.stdout.write(`${account.id} ${removed ? "is no longer" : "was not"} linked to ${issuer}.\n`);
    }),
};

function issuerOf({ signIn: { oidc } }: Config): string {
  if (oidc === undefined) throw new UsageError("the configuration has no sign_in.oidc");
  return oidc.issuer;
}
