import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import {
  type AttributionLimits as AttributionLimitsMessage,
  type AttributionLimitsSchema,
  BudgetPeriod,
  type CapabilitySelection,
  type KeySchema,
  type KeyService,
  KeyState,
  ProviderOption as OptionMessage,
  type ProviderOptionSelection,
  RotationGrace,
  RevocationScope as ScopeMessage,
  type TagSelection,
} from "../../../gen/parley/console/v1/key_pb.js";
import { KeyCapability, type ModelSelection } from "../../../gen/parley/v1/key_pb.js";
import { findAccount } from "../../access/accounts.ts";
import { isId, unknownId } from "../../access/checks.ts";
import { changedKeyEntry, newKeyEntry, revokedKeyEntry, transferredKeyEntries } from "../../access/audit-fields.ts";
import type { AccessContext } from "../../access/context.ts";
import type { KeyRecord, KeyStore } from "../../access/key-store.ts";
import { transferKey } from "../../access/key-transfer.ts";
import {
  createKey,
  DEFAULT_GRACE,
  type Grace,
  type KeyActor,
  keyState,
  requireContentStorage,
  type RevocationScope,
  revokeKey,
  rotateKey,
  updateKey,
} from "../../access/keys.ts";
import { permitsEverywhere, permitsIn } from "../../access/permissions.ts";
import { requireIn } from "../../access/sessions.ts";
import type { AttributionLimits } from "../../core/attribution.ts";
import { monthOf } from "../../core/clock.ts";
import { Failure, invalidField } from "../../core/failure.ts";
import { fromMessage } from "../../core/labels.ts";
import type { Capability } from "../../core/principal.ts";
import type { ProviderOption } from "../../core/provider-options.ts";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import { Turns } from "../../scheduling/turns.ts";
import { fromLimitsMessage, optionalTime, toLimitsMessage, toNumber } from "./account-messages.ts";
import { accountsInView, accountToUse, actorOf, callOf, signedInOf } from "./call.ts";
import { listKeys } from "./key-list.ts";

const LIFETIME_MS = [60_000, 3650 * 24 * 60 * 60 * 1000] as const;

/** Ports of the key service. */
export interface KeyServicePorts {
  readonly access: AccessContext;
  readonly keys: KeyStore;
  readonly ledger: Pick<LedgerStore, "spending">;
  /** IDs of the current models. */
  readonly models: () => ReadonlySet<string>;
  /** How long prompts and answers are kept; undefined: no key may store them. */
  readonly contentKeptMs?: number | undefined;
}

/** Lists of keys that are made at a time, one of an account. */
const MAX_LISTS = 4;

/** API keys: of the accounts in which the caller has the permission. */
export function createKeyService({
  access,
  keys: store,
  ledger,
  models,
  contentKeptMs,
}: KeyServicePorts): ServiceImpl<typeof KeyService> {
  const { clock, log } = access;
  const keys = { store, clock };
  const lists = new Turns(MAX_LISTS, { ofKey: 1 });
  /** Finds a key that the caller may change. */
  const find = async (id: string, context: HandlerContext): Promise<KeyRecord> => {
    const record = await keyInView(store, { id }, context);
    requireIn(signedInOf(context), "keys.write", record.accountId);
    return record;
  };
  const readStoreContent = (storeContent: boolean, context: HandlerContext): boolean => {
    requireRestricting("storage of prompts and answers", context);
    return requireContentStorage(storeContent, contentKeptMs);
  };
  const toMessage = (key: KeyRecord) => toKeyMessage(key, clock.now());
  /** By key family, which has the budget. */
  const spentThisMonth = async (listed: readonly KeyRecord[]): Promise<ReadonlyMap<string, bigint>> => {
    const lines = [...new Set(listed.map(({ keyFamilyId }) => keyFamilyId))];
    const subjects = lines.map((line) => `key:${line}`);
    const spending = await ledger.spending(subjects, monthOf(clock.now()));
    return new Map(spending.map(({ spentMicroUsd }, index) => [lines[index]!, BigInt(spentMicroUsd)]));
  };
  const withSpending = async (listed: readonly KeyRecord[]) => {
    const spent = await spentThisMonth(listed);
    return listed.map((key) => ({ ...toMessage(key), monthSpentMicroUsd: spent.get(key.keyFamilyId) ?? 0n }));
  };

  return {
    async list(request, context) {
      const signedIn = signedInOf(context);
      const accountIds = accountsInView(signedIn, "keys.read", request.accountId);
      return lists.run(signedIn.account.id, callOf(context).open.signal, async () => {
        const { listed, ...page } = await listKeys(store, request, { accountIds, nowMs: clock.now() });
        return { keys: await withSpending(listed), ...page };
      });
    },

    async get({ id }, context) {
      const [key] = await withSpending([await keyInView(store, { id }, context)]);
      return { key: key! };
    },

    async create(request, context) {
      const { name, models: selection, capabilities, limits, lifetime, accountId, providerOptions } = request;
      const { attributionLimits, requiredLabels, tags, storeContent } = request;
      const owner = accountToUse(signedInOf(context), "keys.write", accountId);
      await findAccount(access.store, owner);
      const made = await createKey(keys, {
        name,
        models: selection && fromModelSelection(selection, models()),
        capabilities: capabilities && fromCapabilitySelection(capabilities),
        limits: limits && fromLimitsMessage(limits),
        attributionLimits: attributionLimits && fromAttributionMessage(attributionLimits),
        options: providerOptions && readOptions(providerOptions, context),
        requiredLabels: requiredLabels && fromMessage(requiredLabels),
        tags: tags && readTags(tags, context),
        storesContent: storeContent === undefined ? undefined : readStoreContent(storeContent, context),
        lifetimeMs: lifetime && checkLifetime(Math.round(durationMs(lifetime))),
        accountId: owner,
        by: actorFor(context),
      });
      await log.record({ ...newKeyEntry(made.record), ...actorOf(context) });
      return { key: toMessage(made.record), secret: made.secret };
    },

    async update(request, context) {
      const { id, name, models: selection, capabilities, limits, providerOptions, requiredLabels, tags } = request;
      const { attributionLimits, storeContent } = request;
      const before = await find(id, context);
      await updateKey(keys, id, {
        by: actorFor(context),
        ...(name !== undefined && { name }),
        ...(selection !== undefined && { models: fromModelSelection(selection, models()) }),
        ...(capabilities !== undefined && { capabilities: fromCapabilitySelection(capabilities) }),
        ...(limits !== undefined && { limits: fromLimitsMessage(limits) }),
        ...(attributionLimits !== undefined && { attributionLimits: fromAttributionMessage(attributionLimits) }),
        ...(providerOptions !== undefined && { options: readOptions(providerOptions, context) }),
        ...(requiredLabels !== undefined && { requiredLabels: fromMessage(requiredLabels) }),
        ...(tags !== undefined && { tags: readTags(tags, context) }),
        ...(storeContent !== undefined && { storesContent: readStoreContent(storeContent, context) }),
      });
      const after = await find(id, context);
      await log.record({ ...changedKeyEntry("key_updated", before, after), ...actorOf(context) });
      return { key: toMessage(after) };
    },

    async rotate({ id, grace }, context) {
      const before = await find(id, context);
      const made = await rotateKey(keys, id, { grace: fromRotationGrace(grace), by: actorFor(context) });
      await log.record({ ...changedKeyEntry("key_rotated", before, await find(id, context)), ...actorOf(context) });
      return { key: toMessage(made.record), secret: made.secret };
    },

    async transfer({ id, accountId }, context) {
      const before = await find(id, context);
      if (accountId === "") throw invalidField("account_id", "is required");
      const to = accountToUse(signedInOf(context), "keys.write", accountId);
      await transferKey({ ...keys, accounts: access.store }, before, { to, by: actorFor(context) });
      for (const entry of transferredKeyEntries(id, { from: before.accountId, to }))
        await log.record({ ...entry, ...actorOf(context) });
      return { key: toMessage({ ...before, accountId: to }) };
    },

    async revoke({ id, scope }, context) {
      const before = await find(id, context);
      const revoked = await revokeKey(keys, id, fromRevocationScope(scope));
      for (const each of revoked)
        await log.record({ ...revokedKeyEntry({ ...before, id: each }, clock.now()), ...actorOf(context) });
      return { key: toMessage(await find(id, context)), revokedPredecessors: revoked.slice(1) };
    },
  };
}

/** Finds a key that the caller may see. Another one gets the answer of a missing one. */
export async function keyInView(
  store: Pick<KeyStore, "find">,
  { id, field = "id" }: { readonly id: string; readonly field?: string },
  context: HandlerContext,
): Promise<KeyRecord> {
  const record = isId(id) ? await store.find(id) : undefined;
  if (record === undefined || !permitsIn(signedInOf(context), "keys.read", record.accountId))
    throw unknownId("key", id, field);
  return record;
}

/** The role in which the caller changes a key: restrictions by administrators bind developers only. */
export function actorFor(context: HandlerContext): KeyActor {
  return permitsEverywhere(signedInOf(context), "keys.restrict") ? "administrator" : "developer";
}

function readOptions(selection: ProviderOptionSelection, context: HandlerContext): KeyRecord["options"] {
  requireRestricting("provider options", context);
  return fromOptionSelection(selection);
}

function readTags({ tags }: TagSelection, context: HandlerContext): KeyRecord["tags"] {
  requireRestricting("tags", context);
  return tags;
}

/** Throws `permission_denied` for developers. */
function requireRestricting(what: string, context: HandlerContext): void {
  if (actorFor(context) === "administrator") return;
  throw new Failure("permission_denied", `Only an administrator may choose a key's ${what}.`);
}

export function checkLifetime(lifetimeMs: number): number {
  const [min, max] = LIFETIME_MS;
  if (lifetimeMs >= min && lifetimeMs <= max) return lifetimeMs;
  throw invalidField("lifetime", "must be one minute to ten years");
}

const CAPABILITIES: Readonly<Record<Capability, KeyCapability>> = {
  chat: KeyCapability.CHAT,
  images: KeyCapability.IMAGES,
  embeddings: KeyCapability.EMBEDDINGS,
};
const CAPABILITY_NAMES = Object.values(CAPABILITIES).map((one) => `KEY_CAPABILITY_${KeyCapability[one]}`);

const PROVIDER_OPTIONS: Readonly<Record<ProviderOption, OptionMessage>> = {
  service_tier: OptionMessage.SERVICE_TIER,
  web_search: OptionMessage.WEB_SEARCH,
  store: OptionMessage.STORE,
  prompt_cache_retention: OptionMessage.PROMPT_CACHE_RETENTION,
  provider_tools: OptionMessage.PROVIDER_TOOLS,
  other_fields: OptionMessage.OTHER_FIELDS,
};

const STATES: Readonly<Record<ReturnType<typeof keyState>, KeyState>> = {
  active: KeyState.ACTIVE,
  expired: KeyState.EXPIRED,
  revoked: KeyState.REVOKED,
};

const GRACES: Readonly<Record<RotationGrace, Grace>> = {
  [RotationGrace.UNSPECIFIED]: DEFAULT_GRACE,
  [RotationGrace.NONE]: "0",
  [RotationGrace.ONE_HOUR]: "1h",
  [RotationGrace.ONE_DAY]: "24h",
  [RotationGrace.SEVEN_DAYS]: "7d",
};

/** A key without its hash. */
function toKeyMessage(record: KeyRecord, nowMs: number): MessageInitShape<typeof KeySchema> {
  const {
    id,
    accountId,
    name,
    display,
    models,
    capabilities,
    limits,
    attributionLimits = {},
    options,
    requiredLabels,
    tags,
    storesContent: storeContent,
    replacedBy = "",
    limitedByAdministrator,
  } = record;
  return {
    id,
    accountId,
    name,
    display,
    state: STATES[keyState(record, nowMs)],
    models: models === "all" ? { all: true } : { ids: [...models] },
    capabilities: capabilities.map((capability) => CAPABILITIES[capability]),
    limits: toLimitsMessage(limits),
    attributionLimits: toAttributionMessage(attributionLimits),
    limitedByAdministrator,
    providerOptions:
      options === "default" ? { byBudget: true } : { options: options.map((option) => PROVIDER_OPTIONS[option]) },
    requiredLabels: {
      regions: [...(requiredLabels.region ?? [])],
      retentions: [...(requiredLabels.retention ?? [])],
    },
    tags: [...tags],
    storeContent,
    createTime: timestampFromMs(record.createdAtMs),
    ...optionalTime("expireTime", record.expiresAtMs),
    ...optionalTime("revokeTime", record.revokedAtMs),
    replacedBy,
    familyId: record.keyFamilyId,
    ...optionalTime("lastUseTime", record.lastUsedAtMs),
  };
}

/** Limits of end users and sessions in a response. */
function toAttributionMessage(limits: AttributionLimits): MessageInitShape<typeof AttributionLimitsSchema> {
  const { endUserBudgetMicroUsd, endUserBudgetPeriod, requiresEndUser = false } = limits;
  const period = endUserBudgetPeriod === "month" ? BudgetPeriod.MONTH : BudgetPeriod.DAY;
  return {
    ...Object.fromEntries(
      ATTRIBUTION_NUMBERS.flatMap((name) => (limits[name] === undefined ? [] : [[name, BigInt(limits[name])]])),
    ),
    ...(endUserBudgetMicroUsd !== undefined && { endUserBudgetPeriod: period }),
    requireEndUser: requiresEndUser,
  };
}

const ATTRIBUTION_NUMBERS = [
  "endUserRequestsPerMinute",
  "endUserTokensPerMinute",
  "endUserBudgetMicroUsd",
  "sessionBudgetMicroUsd",
] as const satisfies readonly (keyof AttributionLimits)[];

const PERIODS: Readonly<Record<number, AttributionLimits["endUserBudgetPeriod"]>> = {
  [BudgetPeriod.DAY]: "day",
  [BudgetPeriod.MONTH]: "month",
};

/** Reads the limits of end users and sessions of a request. Throws `invalid_request` for an unknown period. */
function fromAttributionMessage(message: AttributionLimitsMessage): AttributionLimits {
  const { endUserBudgetPeriod: asked } = message;
  const period = PERIODS[asked];
  if (asked !== BudgetPeriod.UNSPECIFIED && period === undefined)
    throw invalidField("attribution_limits.end_user_budget_period", "is not one of BudgetPeriod");
  return {
    ...Object.fromEntries(ATTRIBUTION_NUMBERS.map((name) => [name, toNumber(message[name])])),
    endUserBudgetPeriod: period,
    requiresEndUser: message.requireEndUser,
  };
}

/** Reads the models of a request. Throws `invalid_request` for a contradiction or an unknown model. */
function fromModelSelection({ all, ids }: ModelSelection, known: ReadonlySet<string>): readonly string[] | "all" {
  if (all === ids.length > 0) throw invalidField("models", "set either all or the IDs of models");
  const unknown = ids.find((id) => !known.has(id));
  if (unknown !== undefined) throw invalidField("models.ids", `unknown model ${unknown.slice(0, 64)}`);
  return all ? "all" : ids;
}

/** Reads the capabilities of a request. Throws `invalid_request` for an unknown one. */
function fromCapabilitySelection({ capabilities }: CapabilitySelection): Capability[] {
  return capabilities.map((asked) => {
    const found = Object.entries(CAPABILITIES).find(([, message]) => message === asked);
    if (found === undefined) throw invalidField("capabilities", `must be one of ${CAPABILITY_NAMES.join(", ")}`);
    return found[0] as Capability;
  });
}

/** Reads the provider options of a request. Throws `invalid_request` for a contradiction or an unknown option. */
function fromOptionSelection({ byBudget, options }: ProviderOptionSelection): KeyRecord["options"] {
  if (byBudget && options.length > 0) throw invalidField("provider_options", "set either by_budget or the options");
  if (byBudget) return "default";
  return options.map((asked) => {
    const found = Object.entries(PROVIDER_OPTIONS).find(([, message]) => message === asked);
    if (found === undefined) throw invalidField("provider_options.options", "is not one of ProviderOption");
    return found[0] as ProviderOption;
  });
}

/** Reads the grace period of a request. Throws `invalid_request` for an unknown one. */
function fromRotationGrace(grace: RotationGrace): Grace {
  // Unknown enum values arrive as numbers.
  const known: Readonly<Record<number, Grace>> = GRACES;
  const found = known[grace];
  if (found === undefined) throw invalidField("grace", "is not one of RotationGrace");
  return found;
}

const SCOPES: Readonly<Record<ScopeMessage, RevocationScope>> = {
  [ScopeMessage.UNSPECIFIED]: "with predecessors",
  [ScopeMessage.WITH_PREDECESSORS]: "with predecessors",
  [ScopeMessage.KEY_ONLY]: "key only",
};

/** Reads the scope of a revocation. Throws `invalid_request` for an unknown one. */
function fromRevocationScope(scope: ScopeMessage): RevocationScope {
  // Unknown enum values arrive as numbers.
  const known: Readonly<Record<number, RevocationScope>> = SCOPES;
  const found = known[scope];
  if (found === undefined) throw invalidField("scope", "is not one of RevocationScope");
  return found;
}
