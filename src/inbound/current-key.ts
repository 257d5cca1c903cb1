import { create } from "@bufbuild/protobuf";
import { timestampFromMs, timestampMs } from "@bufbuild/protobuf/wkt";
import { type Key, KeyCapability, KeySchema, type UsageLimits, UsageLimitsSchema } from "../../gen/parley/v1/key_pb.js";
import { type Authenticator, refused, STALE_LIMIT_MS, unavailable } from "../access/key-cache.ts";
import type { KeyGrant } from "../access/key-store.ts";
import { CAPABILITIES, isExpired, type KeyPrincipal, permit } from "../access/principal.ts";
import type { Clock } from "../core/clock.ts";
import { Failure } from "../core/failure.ts";
import type { Capability, Limits as CoreLimits, Principal } from "../core/principal.ts";
import type { Calls, KeyedCall } from "./calls.ts";

const WORDS = {
  chat: KeyCapability.CHAT,
  images: KeyCapability.IMAGES,
  embeddings: KeyCapability.EMBEDDINGS,
} as const satisfies Record<Capability, KeyCapability>;

/** Builds the message that describes a key to its holder. */
export function toKey(principal: Principal): Key {
  const { keyId: id, keyName: name, accountId, models, capabilities, expiresAtMs, limits, accountLimits } = principal;
  return create(KeySchema, {
    id,
    name,
    accountId,
    models: { all: models === undefined, ids: [...(models ?? [])] },
    capabilities: [...capabilities].map((capability) => WORDS[capability]),
    ...(expiresAtMs !== undefined && { expireTime: timestampFromMs(expiresAtMs) }),
    limits: toLimits(limits),
    accountLimits: toLimits(accountLimits),
  });
}

/** Reads the permissions of such a message. Unknown capabilities are omitted. */
export function toGrant({
  id,
  name,
  accountId,
  models,
  capabilities,
  expireTime,
  limits,
  accountLimits,
}: Key): KeyGrant {
  return {
    record: {
      id,
      // A front counts nothing: its core does.
      keyFamilyId: id,
      name,
      accountId,
      models: models === undefined || models.all ? "all" : models.ids,
      capabilities: CAPABILITIES.filter((capability) => capabilities.includes(WORDS[capability])),
      limits: fromLimits(limits),
      // A front does not check options: its core does.
      options: "default",
      requiredLabels: {},
      tags: [],
      storesContent: false,
      expiresAtMs: expireTime && timestampMs(expireTime),
      revokedAtMs: undefined,
    },
    accountLimits: fromLimits(accountLimits),
    accountDisabled: false,
  };
}

function toLimits(limits: CoreLimits): UsageLimits {
  const message = create(UsageLimitsSchema);
  for (const name of NAMES) {
    const value = limits[name];
    if (value !== undefined) message[name] = BigInt(value);
  }
  return message;
}

function fromLimits(message: UsageLimits | undefined): CoreLimits {
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
 * The `Authorization` header of a request, or its equivalent for clients that send the key in `x-api-key`, `x-goog-api-key` or, as
 * clients of Gemini may, in the parameter `key` of the query. Undefined without a key. Throws `unauthenticated` for different keys.
 */
export function authorizationOf(
  headers: Readonly<Record<string, string | readonly string[] | undefined>>,
  query: URLSearchParams,
): string | undefined {
  const { authorization: given } = headers;
  const authorization = typeof given === "string" ? given : undefined;
  const others = [headers["x-api-key"], headers["x-goog-api-key"], query.get("key")].filter(isKey);
  if (others.length === 0) return authorization;
  const keys = new Set(others);
  const bearer = bearerToken(authorization);
  if (bearer !== undefined) keys.add(bearer);
  if (keys.size > 1) throw new Failure("unauthenticated", "The request has two different API keys. Send one of them.");
  return `Bearer ${others[0]}`;
}

const isKey = (value: unknown): value is string => typeof value === "string" && value !== "";

/** The token of an `Authorization: Bearer …` header; undefined when there is none. The scheme's case does not matter. */
export function bearerToken(authorization: string | undefined): string | undefined {
  if (authorization === undefined) return undefined;
  const found = /^Bearer +(\S+) *$/i.exec(authorization);
  return found?.[1];
}

/**
 * Interval of the checks. The key cache drops keys on notification and reads others again every three seconds, so a change ends
 * calls within this interval, or within five seconds without a notification.
 */
const CHECK_MS = 250;

function unbound(): Failure {
  return new Failure("unauthenticated", "The client certificate or token of this call no longer stands for its key.");
}

interface KeyWatchPorts {
  readonly calls: Pick<Calls, "active" | "keyed">;
  /** Undefined in a front, whose cores look keys up: only what stands for a key is checked then. */
  readonly keys?: Pick<Authenticator, "recheck">;
  readonly clock: Clock;
  /** The `staleLimitMs` of the authenticator. */
  readonly staleLimitMs?: number | undefined;
}

/**
 * Ends calls in flight that their key no longer permits: with `unauthenticated` for a revoked or expired key, a disabled account, a
 * revoked certificate, or a certificate or token that stands for another key or none, with `permission_denied` for a lost model or
 * capability, with `stopped` for a session or end user that was stopped, and with `overloaded` when the store cannot confirm the key
 * within the time that it is accepted without. Returns a function that stops the checks.
 */
export function startKeyWatch({ calls, keys, clock, staleLimitMs = STALE_LIMIT_MS }: KeyWatchPorts): () => void {
  let stopped = false;
  let cancelTimer = (): void => undefined;

  const check = async (): Promise<void> => {
    // Not calls that start meanwhile: their keys were confirmed later.
    const checked = [...calls.keyed()];
    if (checked.length === 0) return;
    const answers = await keys?.recheck(new Set(checked.map(({ principal }) => principal.hash)));
    for (const call of checked) {
      const ending = update(call, answers);
      if (ending !== undefined) call.end(ending);
    }
  };

  /** Updates the key of a call from the store. Returns the failure that ends the call; undefined when it continues. */
  const update = (call: KeyedCall, answers?: ReadonlyMap<string, KeyPrincipal | undefined>): Failure | undefined => {
    const { hash, isBound } = call.principal;
    if (isBound?.() === false) return unbound();
    if (answers === undefined) return undefined;
    if (answers.has(hash)) {
      const principal = answers.get(hash);
      if (principal === undefined) return refused();
      call.principal = isBound === undefined ? principal : { ...principal, isBound };
    }
    if (isExpired(call.principal, clock)) return refused();
    if (clock.monotonic() - call.principal.confirmedAtMs > staleLimitMs) return unavailable();
    if (call.needs === undefined) return undefined;
    try {
      permit(call.principal, call.needs, clock);
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
