import { create } from "@bufbuild/protobuf";
import { Capability, type Key, KeySchema, type Limits, LimitsSchema } from "../../gen/parley/v1/key_pb.js";
import type { KeyGrant } from "../access/key-store.ts";
import { CAPABILITIES } from "../access/principal.ts";
import type { Limits as CoreLimits, Principal } from "../core/principal.ts";

const WORDS = { chat: Capability.CHAT, images: Capability.IMAGES } as const;

/** What the holder of a key is told of it. */
export function toKey(principal: Principal): Key {
  const { keyId: id, keyName: name, accountId, models, capabilities, expiresAtMs, limits, accountLimits } = principal;
  return create(KeySchema, {
    id,
    name,
    accountId,
    models: [...(models ?? [])],
    capabilities: [...capabilities].map((capability) => WORDS[capability]),
    // Rounded up: who reads it may let the key live too long by less than a second, and is refused in the end.
    ...(expiresAtMs !== undefined && { expiresAt: BigInt(Math.ceil(expiresAtMs / 1000)) }),
    limits: toLimits(limits),
    accountLimits: toLimits(accountLimits),
  });
}

/** What such a message grants to its holder. A capability that this process does not know is left out. */
export function toGrant({
  id,
  name,
  accountId,
  models,
  capabilities,
  expiresAt,
  limits,
  accountLimits,
}: Key): KeyGrant {
  return {
    record: {
      id,
      // A front counts nothing: its core knows.
      keyFamilyId: id,
      name,
      accountId,
      models: models.length === 0 ? "all" : models,
      capabilities: CAPABILITIES.filter((capability) => capabilities.includes(WORDS[capability])),
      limits: fromLimits(limits),
      // Likewise.
      options: "default",
      expiresAtMs: expiresAt === undefined ? undefined : Number(expiresAt) * 1000,
      revokedAtMs: undefined,
    },
    accountLimits: fromLimits(accountLimits),
    accountDisabled: false,
  };
}

function toLimits(limits: CoreLimits): Limits {
  const message = create(LimitsSchema);
  for (const name of NAMES) {
    const value = limits[name];
    if (value !== undefined) message[name] = BigInt(value);
  }
  return message;
}

function fromLimits(message: Limits | undefined): CoreLimits {
  const read = (name: keyof CoreLimits): number | undefined => {
    const value = message?.[name];
    return value === undefined ? undefined : Number(value);
  };
  return {
    requestsPerMinute: read("requestsPerMinute"),
    tokensPerMinute: read("tokensPerMinute"),
    concurrentRequests: read("concurrentRequests"),
    monthlyBudgetMicroUsd: read("monthlyBudgetMicroUsd"),
  };
}

const NAMES = [
  "requestsPerMinute",
  "tokensPerMinute",
  "concurrentRequests",
  "monthlyBudgetMicroUsd",
] as const satisfies readonly (keyof CoreLimits)[];
