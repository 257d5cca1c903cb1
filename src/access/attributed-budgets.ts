import type { AttributionLimits } from "../core/attribution.ts";
import { readName } from "../core/attribution-names.ts";
import { type BudgetPeriod, periodAt } from "../core/clock.ts";
import { invalidField } from "../core/failure.ts";
import type { StopKind } from "../core/stops.ts";
import type { Actor } from "./accounts.ts";
import { hashEmail } from "./address.ts";
import type { AccessContext } from "./context.ts";
import type { KeyRecord } from "./key-store.ts";
import { isForAdministrators, type KeyActor, keyState } from "./keys.ts";

/** Use of the budget of an end user or a session of a key in a period. */
export interface AttributedBudget {
  /** Digest of the end user or session; the cursor of lists. */
  readonly id: string;
  /** Undefined before its first request since names are stored. */
  readonly name: string | undefined;
  readonly spentMicroUsd: number;
  /** Reserved for completions in flight. */
  readonly heldMicroUsd: number;
  /** Its own limit, in place of the one that the key gives to every end user or session. */
  readonly limitMicroUsd: number | undefined;
}

/** The end users or the sessions of a key family in one period, by `periodAt`. */
export interface BudgetHolders {
  readonly kind: StopKind;
  readonly keyFamilyId: string;
  readonly period: string;
}

/** A page of a list. */
export interface AttributedBudgetQuery extends BudgetHolders {
  /** Part of the names in any case, or a whole name; empty for all. */
  readonly search: string;
  readonly limit: number;
  /** The last one of the page before. */
  readonly after?: Pick<AttributedBudget, "id" | "spentMicroUsd"> | undefined;
}

/** The store of what end users and sessions have spent of their budgets. */
export interface AttributedBudgetStore {
  /** Lists the end users or sessions, largest spending first. `count` is their number on all pages. */
  list(
    query: AttributedBudgetQuery,
  ): Promise<{ readonly budgets: readonly AttributedBudget[]; readonly count: number }>;
  find(of: BudgetHolders, name: string): Promise<AttributedBudget | undefined>;
  /** Sets the limit of one end user or session in this period, for all processes; undefined: that of the key. */
  setLimit(of: BudgetHolders, name: string, limitMicroUsd: number | undefined): Promise<void>;
}

/** The budget that a key gives to each end user or session. */
export interface GivenBudget {
  readonly limitMicroUsd: number;
  readonly period: BudgetPeriod;
}

/** The budget that these limits give to each end user or session; undefined for none. */
export function givenBudget(limits: AttributionLimits | undefined, kind: StopKind): GivenBudget | undefined {
  const { endUserBudgetMicroUsd, endUserBudgetPeriod = "day", sessionBudgetMicroUsd } = limits ?? {};
  const isSession = kind === "session";
  const limitMicroUsd = isSession ? sessionBudgetMicroUsd : endUserBudgetMicroUsd;
  return limitMicroUsd === undefined
    ? undefined
    : { limitMicroUsd, period: isSession ? "session" : endUserBudgetPeriod };
}

/** Dependencies of changes. */
export type AttributedBudgetContext = Pick<AccessContext, "clock" | "log"> & {
  readonly budgets: AttributedBudgetStore;
};

/** A budget for one end user or session. */
export interface OwnBudget {
  readonly kind: StopKind;
  readonly name: string;
  /** Undefined: that of the key. */
  readonly limitMicroUsd: number | undefined;
  readonly by: KeyActor;
  readonly actor: Actor;
}

/** As `end_user_budget_micro_usd` of a key. */
const MAX_MICRO_USD = 1e15;

/**
 * Gives an end user or a session of a key a budget of its own for the present period. Throws `invalid_request` for a key that gives
 * none or does not work any more, and `permission_denied` for a developer, of a key that an administrator has limited.
 */
export async function setOwnBudget(
  { budgets, clock, log }: AttributedBudgetContext,
  key: KeyRecord,
  { kind, name: asked, limitMicroUsd, by, actor }: OwnBudget,
): Promise<AttributedBudget> {
  const name = readName("name", asked);
  if (
    limitMicroUsd !== undefined &&
    !(Number.isSafeInteger(limitMicroUsd) && limitMicroUsd >= 0 && limitMicroUsd <= MAX_MICRO_USD)
  )
    throw invalidField("budget_micro_usd", `must be a whole number from 0 to ${MAX_MICRO_USD}`);
  const state = keyState(key, clock.now());
  // One that has expired after its rotation has not the lock and the limits of its successor, whose end users these are.
  if (state !== "active") throw invalidField("key_id", `${key.id} is ${state}`);
  if (by === "developer" && key.limitedByAdministrator) throw isForAdministrators();
  const given = givenBudget(key.attributionLimits, kind);
  if (given === undefined)
    throw invalidField(
      "key_id",
      `is of a key without a budget for each ${kind === "session" ? "session" : "end user"}; set one first`,
    );
  const of = { kind, keyFamilyId: key.keyFamilyId, period: periodAt(clock.now(), given.period) };
  const before = await budgets.find(of, name);
  await budgets.setLimit(of, name, limitMicroUsd);
  const fieldsOf = (budget: number | undefined) => ({
    // The audit log contains no e-mail addresses, and an end user's name may be one.
    [kind]: name.includes("@") ? hashEmail(name) : name,
    period: of.period,
    budget_micro_usd: budget ?? given.limitMicroUsd,
  });
  await log.record({
    action: "attributed_budget_changed",
    accountId: key.accountId,
    ...actor,
    before: fieldsOf(before?.limitMicroUsd),
    after: fieldsOf(limitMicroUsd),
    details: { key: key.id },
  });
  const unused = { id: "", name, spentMicroUsd: 0, heldMicroUsd: 0 };
  return { ...(before ?? unused), name, limitMicroUsd };
}
