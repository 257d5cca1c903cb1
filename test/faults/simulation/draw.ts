import { create } from "@bufbuild/protobuf";
import { toPrice } from "../../support/prices.ts";
import { type CompletionRequest, CompletionRequestSchema } from "../../../gen/parley/v1/completion_pb.js";
import { MessageSchema, Role } from "../../../gen/parley/v1/message_pb.js";
import type { KeyGrant } from "../../../src/access/key-store.ts";
import type { Attribution, AttributionLimits } from "../../../src/core/attribution.ts";
import type { Limits } from "../../../src/core/principal.ts";
import type { Chance } from "./chance.ts";
import type { Habits } from "./journey.ts";
import type { ModelSpec } from "./process.ts";
import { type Weather, WEATHERS } from "./scripts.ts";

/** All possible models of a configuration. */
const IDS = ["m0", "m1", "m2", "m3", "m4"] as const;

/** The longest timeout of a completion. */
export const MAX_TOTAL_MS = 90_000;

/** Names of the upstream models. */
export const UPSTREAMS = IDS.map((id) => `${id}-upstream`);

/** Draws the next behaviour of an upstream model. */
export function drawWeather(chance: Chance): Weather {
  return chance.percent(50) ? "fair" : chance.pick(WEATHERS);
}

/** Draws a configuration: the first model is always present, the others mostly. */
export function drawModels(chance: Chance): ModelSpec[] {
  const present = IDS.filter((id) => id === "m0" || chance.percent(99));
  return present.map((id): ModelSpec => {
    const price = { input: chance.between(1, 30), output: chance.between(1, 90) };
    const million = 1_000_000;
    return {
      id,
      provider: chance.percent(50) ? "north" : "south",
      upstream: `${id}-upstream`,
      timeouts: {
        firstContentMs: chance.between(200, 3_000),
        idleMs: chance.between(100, 3_000),
        totalMs: chance.percent(80) ? chance.between(1_000, 20_000) : chance.between(20_000, MAX_TOTAL_MS),
        settleMs: chance.percent(30) ? 0 : chance.between(1, 3_000),
      },
      maxTokensPerSecond: chance.between(10, 400),
      price: chance.percent(99.7)
        ? toPrice({
            input: price.input * million,
            output: price.output * million,
            cachedInput: million,
            imageOutput: 0,
          })
        : undefined,
    };
  });
}

/** Draws keys of two accounts. Which limits are set stays fixed; their values may change. */
export function drawGrants(chance: Chance, beganMs: number): KeyGrant[] {
  const accounts = [drawLimits(chance, 4), drawLimits(chance, 4)];
  const ofFirst = drawLimits(chance, 1);
  const attributionOfFirst = drawAttributionLimits(chance);
  return Array.from({ length: chance.between(2, 8) }, (_, index): KeyGrant => {
    // Some are rotations of the first one.
    const isOfFirst = index === 0 || chance.percent(20);
    const account = isOfFirst ? 0 : chance.between(0, 1);
    return {
      record: {
        id: `key_${index}`,
        keyFamilyId: isOfFirst ? "key_0" : `key_${index}`,
        accountId: `acct_${account}`,
        name: `key ${index}`,
        models: chance.percent(90) ? "all" : ["m0", "m1", "m2"],
        capabilities: ["chat"],
        limits: isOfFirst ? ofFirst : drawLimits(chance, 1),
        attributionLimits: isOfFirst ? attributionOfFirst : drawAttributionLimits(chance),
        options: "default",
        requiredLabels: {},
        tags: [],
        storesContent: false,
        expiresAtMs: chance.percent(10) ? beganMs + chance.between(0, 60_000) : undefined,
        revokedAtMs: undefined,
      },
      accountLimits: accounts[account]!,
      accountDisabled: false,
    };
  });
}

function drawLimits(chance: Chance, times: number): Limits {
  return {
    requestsPerMinute: chance.percent(30) ? chance.between(60, 3_000) * times : undefined,
    tokensPerMinute: chance.percent(30) ? chance.between(5_000, 300_000) * times : undefined,
    concurrentRequests: chance.percent(40) ? chance.between(1, 12) * times : undefined,
    monthlyBudgetMicroUsd: chance.percent(40) ? chance.between(10_000, 1_500_000) * times : undefined,
  };
}

/** Half of the keys limit their end users and sessions. */
function drawAttributionLimits(chance: Chance): AttributionLimits | undefined {
  if (chance.percent(50)) return undefined;
  return {
    endUserRequestsPerMinute: chance.percent(40) ? chance.between(60, 1_000) : undefined,
    endUserTokensPerMinute: chance.percent(30) ? chance.between(5_000, 100_000) : undefined,
    endUserBudgetMicroUsd: chance.percent(70) ? chance.between(10_000, 500_000) : undefined,
    endUserBudgetPeriod: chance.pick(["day", "month", undefined]),
    sessionBudgetMicroUsd: chance.percent(50) ? chance.between(10_000, 500_000) : undefined,
    requiresEndUser: chance.percent(15),
  };
}

/** End users and sessions: few, so that each makes many requests. */
export const NAMES = ["ann", "bob@example.com", "Zoë"] as const;

/** Draws whom a request is for. */
export function drawAttribution(chance: Chance): Attribution | undefined {
  if (chance.percent(15)) return undefined;
  return {
    endUser: chance.percent(85) ? chance.pick(NAMES) : undefined,
    session: chance.percent(70) ? chance.pick(NAMES) : undefined,
  };
}

/** Draws new values for the limits that are set. */
export function redrawLimits(chance: Chance, limits: Limits): Limits {
  const fresh = drawLimits(chance, 1);
  const again = (name: keyof Limits): number | undefined =>
    limits[name] === undefined ? undefined : (fresh[name] ?? limits[name]);
  return {
    requestsPerMinute: again("requestsPerMinute"),
    tokensPerMinute: again("tokensPerMinute"),
    concurrentRequests: again("concurrentRequests"),
    monthlyBudgetMicroUsd: again("monthlyBudgetMicroUsd"),
  };
}

/** Draws a request that contains its number. */
export function drawRequest(chance: Chance, number: number): CompletionRequest {
  const fallbackModels = IDS.filter(() => chance.percent(25));
  const text = `completion ${number} ${"words ".repeat(chance.between(0, 5))}`;
  const parts = [{ kind: { case: "text" as const, value: text } }];
  return create(CompletionRequestSchema, {
    model: chance.percent(1) ? "nobody" : chance.pick(IDS),
    fallbackModels,
    messages: [create(MessageSchema, { role: Role.USER, parts })],
    maxOutputTokens: chance.between(1, 200),
    endUserId: String(number),
    strict: chance.percent(3),
  });
}

/** Draws the caller's behaviour. Most callers just wait. */
export function drawHabits(chance: Chance): Habits {
  const patience = chance.weighted({ waits: 60, hurries: 12, leaves: 12, tastes: 8, dawdles: 12 });
  return {
    deadlineMs: patience === "hurries" ? chance.pick([1, chance.between(1, 400), chance.between(1, 8_000)]) : undefined,
    leavesAfterMs:
      patience === "leaves" ? chance.pick([0, chance.between(0, 400), chance.between(0, 8_000)]) : undefined,
    takes: patience === "tastes" ? chance.between(1, 4) : Infinity,
    pauses: patience === "dawdles" ? chance.pick([20, 60, 100]) : 0,
    pauseMs: chance.pick([
      1,
      chance.between(1, 200),
      chance.between(1, 5_000),
      chance.between(5_000, 25_000),
      Infinity,
    ]),
  };
}
