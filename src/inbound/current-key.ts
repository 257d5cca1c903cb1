import { create } from "@bufbuild/protobuf";
import { Capability, type Key, KeySchema, type Limits, LimitsSchema } from "../../gen/parley/v1/key_pb.js";
import { type Authenticator, refused, STALE_LIMIT_MS, unavailable } from "../access/key-cache.ts";
import type { KeyGrant } from "../access/key-store.ts";
import { CAPABILITIES, isExpired, type KeyPrincipal, permit } from "../access/principal.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Limits as CoreLimits, Principal } from "../core/principal.ts";
import type { Calls, KeyedCall } from "./calls.ts";

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

/**
 * The `Authorization` header of a request, or what stands for it: some clients send the key in `x-api-key`.
 * Undefined when there is neither.
 */
export function authorizationOf(headers: {
  readonly authorization?: string | undefined;
  readonly "x-api-key"?: string | readonly string[] | undefined;
}): string | undefined {
  const { authorization, "x-api-key": key } = headers;
  return authorization ?? (typeof key === "string" && key !== "" ? `Bearer ${key}` : undefined);
}

/** The token of an `Authorization: Bearer …` header; undefined when there is none. The scheme's case does not matter. */
export function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const found = /^Bearer +(\S+) *$/i.exec(authorization);
  return found?.[1];
}

/**
 * Pause between two checks. The cache of keys forgets at once what it is told of and asks the store about the rest every
 * three seconds, so a change ends calls within this time, and one that no notification told of within five seconds.
 */
const CHECK_MS = 250;

interface KeyWatchPorts {
  readonly calls: Pick<Calls, "active" | "keyed">;
  readonly keys: Pick<Authenticator, "recheck">;
  readonly clock: Clock;
}

/**
 * Ends calls in flight whose key no longer allows them: with `unauthenticated` when it was revoked, has expired or its
 * account was disabled, with `permission_denied` when it has lost a model or the capability that the completion needs, and
 * with `overloaded` when the store could not confirm it for as long as it would still be accepted. Returns what stops it.
 */
export function startKeyWatch({ calls, keys, clock }: KeyWatchPorts): () => void {
  let stopped = false;
  let cancelTimer = (): void => undefined;

  const check = async (): Promise<void> => {
    // Not those that begin meanwhile: their keys have been confirmed later than what is asked now.
    const checked = [...calls.keyed()];
    if (checked.length === 0) return;
    const answers = await keys.recheck(new Set(checked.map(({ principal }) => principal.hash)));
    for (const call of checked) {
      const ending = update(call, answers);
      if (ending !== undefined) call.end(ending);
    }
  };

  /** Takes over what the store has said of a call's key. Returns what ends the call, if anything does. */
  const update = (call: KeyedCall, answers: ReadonlyMap<string, KeyPrincipal | undefined>): Failure | undefined => {
    const { hash } = call.principal;
    if (answers.has(hash)) {
      const principal = answers.get(hash);
      if (principal === undefined) return refused();
      call.principal = principal;
    }
    if (isExpired(call.principal, clock)) return refused();
    if (clock.monotonic() - call.principal.confirmedAtMs > STALE_LIMIT_MS) return unavailable();
    if (call.needs === undefined) return undefined;
    try {
      permit(call.principal, call.needs);
    } catch (reason) {
      return Failure.from(reason);
    }
    return undefined;
  };

  const wait = (): void => {
    cancelTimer = clock.after(CHECK_MS, () => {
      if (calls.active === 0) return wait();
      void check().then(() => stopped || wait());
    });
  };
  wait();
  return () => {
    stopped = true;
    cancelTimer();
  };
}
