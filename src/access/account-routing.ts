import { randomUUID } from "node:crypto";
import { type Failure, invalidField } from "../core/failure.ts";
import type { AccountRouting } from "../core/principal.ts";
import type { AccountStore, StoredCredential, StoredRouting } from "./account-store.ts";
import type { Actor } from "./accounts.ts";
import { differenceOf } from "./audit-fields.ts";
import type { NewEntry } from "./audit-log.ts";
import { isId, unknownId } from "./checks.ts";
import type { AccessContext } from "./context.ts";

/** Facts by which an account's credentials and aliases are checked, and the encryption of credentials. */
export interface RoutingRules {
  /** Names of the providers for which accounts may have credentials. */
  readonly providers: () => readonly string[];
  /** IDs of all models and names with targets. */
  readonly models: () => ReadonlySet<string>;
  /** Encrypts a credential, bound to its account and provider. */
  readonly seal: (secret: string, boundTo: CredentialPlace) => string;
}

/** Where a credential belongs. */
export interface CredentialPlace {
  readonly accountId: string;
  readonly provider: string;
}

/** Dependencies of the changes. */
export type RoutingContext = Pick<AccessContext, "clock" | "log"> & {
  readonly store: Pick<AccountStore, "routing" | "changeRouting">;
  readonly rules: RoutingRules;
};

const MIN_SECRET_CHARS = 8;
const MAX_SECRET_CHARS = 2_048;
const MAX_ALIASES = 50;

/** Length of all credentials, and of all aliases of an account, as stored: the grant of each of its keys contains them. */
const MAX_STORED_CHARS = 16_384;

/** As in the configuration. */
const ALIAS = /^(?:[A-Za-z0-9._:/@-]{1,256}\*?|\*)$/;

/** Returns an account's own credentials and aliases. Throws `invalid_request` for an unknown account. */
export async function findRouting(store: Pick<AccountStore, "routing">, accountId: string): Promise<StoredRouting> {
  const routing = isId(accountId) ? await store.routing(accountId) : undefined;
  return routing ?? throwFailure(unknownId("account", accountId));
}

/**
 * Sets the account's own credential for a provider, in place of the one before. Throws `invalid_request` for a provider that the
 * operator has not released for that, for a text that is no API key, and for an unknown account. No failure repeats the secret.
 */
export async function setCredential(
  context: RoutingContext,
  { accountId, provider, secret, actor }: CredentialPlace & { readonly secret: string; readonly actor: Actor },
): Promise<StoredCredential> {
  const { clock, rules } = context;
  const names = rules.providers();
  if (!names.includes(provider)) {
    const others = names.length === 0 ? "there are none" : `these are: ${names.join(", ")}`;
    throw invalidField("provider", `is not a provider for which accounts may have credentials (${others})`);
  }
  checkSecret(secret);
  const credential: StoredCredential = {
    provider,
    id: randomUUID(),
    sealed: rules.seal(secret, { accountId, provider }),
    setAtMs: clock.now(),
    setBy: actor.actorId,
  };
  let hadOne = false;
  await change(context, accountId, (before) => {
    hadOne = before.credentials.some((other) => other.provider === provider);
    const credentials = [...before.credentials.filter((other) => other.provider !== provider), credential];
    if (JSON.stringify(credentials).length > MAX_STORED_CHARS)
      throw invalidField("secret", "is too long beside the other credentials of this account; remove one");
    return { ...before, credentials };
  });
  await context.log.record({
    action: "credential_set",
    accountId,
    ...actor,
    before: { credential: hadOne ? "set" : null },
    after: { credential: "set" },
    details: { provider },
  });
  return credential;
}

/** Removes the account's credential for a provider; false when it has none. Throws `invalid_request` for an unknown account. */
export async function removeCredential(
  context: RoutingContext,
  { accountId, provider, actor }: CredentialPlace & { readonly actor: Actor },
): Promise<boolean> {
  let isRemoved = false;
  await change(context, accountId, (before) => {
    const credentials = before.credentials.filter((other) => other.provider !== provider);
    isRemoved = credentials.length < before.credentials.length;
    return { ...before, credentials };
  });
  if (isRemoved) {
    const fields = { before: { credential: "set" }, after: { credential: null }, details: { provider } };
    await context.log.record({ action: "credential_removed", accountId, ...actor, ...fields });
  }
  return isRemoved;
}

/**
 * Replaces all aliases of an account. Throws `invalid_request` for a name that is no alias, is listed twice or is the ID of a model, for
 * an unknown model, and for an unknown account.
 */
export async function setAliases(
  context: RoutingContext,
  {
    accountId,
    aliases,
    actor,
  }: { readonly accountId: string; readonly aliases: AccountRouting["aliases"]; readonly actor: Actor },
): Promise<AccountRouting["aliases"]> {
  checkAliases(aliases, context.rules.models());
  let fields: Pick<NewEntry, "before" | "after"> = {};
  await change(context, accountId, (before) => {
    const changed = differenceOf(Object.fromEntries(before.aliases), Object.fromEntries(aliases));
    // All aliases are one field of the audit log: the account chooses their names, which must not become field names.
    fields = { before: { aliases: changed.before }, after: { aliases: changed.after } };
    return { ...before, aliases };
  });
  await context.log.record({ action: "aliases_changed", accountId, ...actor, ...fields });
  return aliases;
}

async function change(
  { store }: Pick<RoutingContext, "store">,
  accountId: string,
  apply: (before: StoredRouting) => StoredRouting,
): Promise<void> {
  const changed = isId(accountId) ? await store.changeRouting(accountId, apply) : undefined;
  if (changed === undefined) throw unknownId("account", accountId);
}

function checkSecret(secret: string): void {
  if (!/^[\x21-\x7e]*$/.test(secret)) throw invalidField("secret", "must be one word of ASCII characters");
  if (secret.length < MIN_SECRET_CHARS || secret.length > MAX_SECRET_CHARS)
    throw invalidField("secret", `must have ${MIN_SECRET_CHARS} to ${MAX_SECRET_CHARS} characters`);
}

function checkAliases(aliases: AccountRouting["aliases"], models: ReadonlySet<string>): void {
  if (aliases.length > MAX_ALIASES || JSON.stringify(aliases).length > MAX_STORED_CHARS)
    throw invalidField("aliases", `must be at most ${MAX_ALIASES}, with ${MAX_STORED_CHARS} characters together`);
  const names = aliases.map(([name]) => name);
  aliases.forEach(([name, model], index) => {
    const field = `aliases[${index}]`;
    if (!ALIAS.test(name)) throw invalidField(`${field}.name`, "must be a model's name, or the beginning of one and *");
    if (models.has(name)) throw invalidField(`${field}.name`, `${name} is the ID of a model already`);
    if (names.indexOf(name) !== index) throw invalidField(`${field}.name`, `${name} is listed twice`);
    if (!models.has(model)) throw invalidField(`${field}.model`, `there is no model ${model.slice(0, 256)}`);
  });
}

function throwFailure(failure: Failure): never {
  throw failure;
}
