import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type CapabilitySelection,
  KeyCapability,
  type KeySchema,
  KeyState,
  type ModelSelection,
  ProviderOption as OptionMessage,
  type ProviderOptionSelection,
  RevocationScope as ScopeMessage,
  RotationGrace,
} from "../../../gen/parley/console/v1/key_pb.js";
import type { KeyRecord } from "../../access/key-store.ts";
import { DEFAULT_GRACE, type Grace, keyState, type RevocationScope } from "../../access/keys.ts";
import { invalidField } from "../../core/failure.ts";
import type { Capability } from "../../core/principal.ts";
import type { ProviderOption } from "../../core/provider-options.ts";
import { optionalTime } from "./account-messages.ts";
import { toLimitsMessage } from "./limits-message.ts";

const CAPABILITIES: Readonly<Record<Capability, KeyCapability>> = {
  chat: KeyCapability.CHAT,
  images: KeyCapability.IMAGES,
};

const PROVIDER_OPTIONS: Readonly<Record<ProviderOption, OptionMessage>> = {
  service_tier: OptionMessage.SERVICE_TIER,
  web_search: OptionMessage.WEB_SEARCH,
  store: OptionMessage.STORE,
  prompt_cache_retention: OptionMessage.PROMPT_CACHE_RETENTION,
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
export function toKeyMessage(record: KeyRecord, nowMs: number): MessageInitShape<typeof KeySchema> {
  const {
    id,
    accountId,
    name,
    display,
    models,
    capabilities,
    limits,
    options,
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
    limitedByAdministrator,
    providerOptions:
      options === "default" ? { byBudget: true } : { options: options.map((option) => PROVIDER_OPTIONS[option]) },
    createTime: timestampFromMs(record.createdAtMs),
    ...optionalTime("expireTime", record.expiresAtMs),
    ...optionalTime("revokeTime", record.revokedAtMs),
    replacedBy,
    ...optionalTime("lastUseTime", record.lastUsedAtMs),
  };
}

/** The models that a request names. Throws `invalid_request` when they are contradictory, or one of them is not known. */
export function fromModelSelection(
  { all, ids }: ModelSelection,
  known: ReadonlySet<string>,
): readonly string[] | "all" {
  if (all === ids.length > 0) throw invalidField("models", "set either all or the IDs of models");
  const stranger = ids.find((id) => !known.has(id));
  if (stranger !== undefined) throw invalidField("models.ids", `unknown model ${stranger.slice(0, 64)}`);
  return all ? "all" : ids;
}

/** The capabilities that a request names. Throws `invalid_request` for one that is none. */
export function fromCapabilitySelection({ capabilities }: CapabilitySelection): Capability[] {
  return capabilities.map((asked) => {
    const found = Object.entries(CAPABILITIES).find(([, message]) => message === asked);
    if (found === undefined) throw invalidField("capabilities", "must be KEY_CAPABILITY_CHAT or KEY_CAPABILITY_IMAGES");
    return found[0] as Capability;
  });
}

/** The provider options that a request names. Throws `invalid_request` for contradictory ones and for one that is none. */
export function fromOptionSelection({ byBudget, options }: ProviderOptionSelection): KeyRecord["options"] {
  if (byBudget && options.length > 0) throw invalidField("provider_options", "set either by_budget or the options");
  if (byBudget) return "default";
  return options.map((asked) => {
    const found = Object.entries(PROVIDER_OPTIONS).find(([, message]) => message === asked);
    if (found === undefined) throw invalidField("provider_options.options", "is not one of ProviderOption");
    return found[0] as ProviderOption;
  });
}

/** The grace that a request names. Throws `invalid_request` for one that is none. */
export function fromRotationGrace(grace: RotationGrace): Grace {
  // A number that this version does not know comes through as it is.
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

/** What a request wants to end. Throws `invalid_request` for a scope that is none. */
export function fromRevocationScope(scope: ScopeMessage): RevocationScope {
  // A number that this version does not know comes through as it is.
  const known: Readonly<Record<number, RevocationScope>> = SCOPES;
  const found = known[scope];
  if (found === undefined) throw invalidField("scope", "is not one of RevocationScope");
  return found;
}
