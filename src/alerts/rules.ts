import { budgetFormat, type FormattedBudget } from "../core/budget-amounts.ts";
import type { Finding } from "./alert.ts";
import type {
  BudgetFact,
  EndUserBudgetFact,
  ExpiryFact,
  KeyFact,
  LatencyFact,
  SpendFact,
  TrafficFact,
} from "./alert-store.ts";
import type { Thresholds } from "./thresholds.ts";

const DAY_MS = 24 * 60 * 60_000;

/** A month of budgets. */
export interface Month {
  /** `2026-11`. */
  readonly name: string;
  readonly nowMs: number;
  readonly untilMs: number;
  /** Length of the time whose cost is `recentMicroUsd`. */
  readonly recentMs: number;
}

/** Budgets that have reached a threshold, at the highest one reached, and those that will be exceeded at the present pace. */
export function findBudgets(facts: readonly BudgetFact[], month: Month, { budgetPercent }: Thresholds): Finding[] {
  return facts.flatMap((fact): Finding[] => {
    if (fact.budgetMicroUsd <= 0) return [];
    const { spentMicroUsd: spent, budgetMicroUsd: budget } = fact;
    const percent = budgetPercent.findLast((each) => spent * 100 >= budget * each);
    const reached = percent === undefined ? [] : [ofBudget(fact, { month, percent })];
    const forecast = Math.round(spent + (fact.recentMicroUsd / month.recentMs) * (month.untilMs - month.nowMs));
    const isForecast = budgetPercent.length > 0 && spent < budget && forecast > budget;
    return isForecast ? [...reached, ofForecast(fact, { month, forecast })] : reached;
  });
}

function ofBudget(fact: BudgetFact, { month, percent }: { readonly month: Month; readonly percent: number }): Finding {
  const { spent, budget } = amountsOf(fact);
  const isSpent = percent >= 100;
  return {
    rule: "budget",
    severity: isSpent ? "critical" : "warning",
    ...ownedBy(fact),
    period: `${month.name}/${percent}`,
    title: `The ${nameOf(fact)} has used ${percent} % of its monthly budget`,
    detail: `${spent} of ${budget} is spent in ${month.name} (UTC).${isSpent ? " Further requests are refused until the budget is raised or the month ends." : ""}`,
  };
}

function ofForecast(
  fact: BudgetFact,
  { month, forecast }: { readonly month: Month; readonly forecast: number },
): Finding {
  const { spent, budget } = amountsOf(fact);
  const { spent: expected } = amountsOf({ ...fact, spentMicroUsd: forecast });
  return {
    rule: "budget_forecast",
    severity: "warning",
    ...ownedBy(fact),
    period: month.name,
    title: `The ${nameOf(fact)} is going to exceed its monthly budget`,
    detail: `At the pace of the last seven days ${month.name} comes to ${expected} of ${budget}; ${spent} is spent.`,
  };
}

/** Lowest threshold that the alert about end users uses. */
const MIN_END_USER_PERCENT = 80;

/** Thresholds of the budgets of end users. */
export function endUserPercents({ budgetPercent }: Thresholds): readonly number[] {
  return budgetPercent.filter((percent) => percent >= MIN_END_USER_PERCENT);
}

/** Keys of which an end user has reached a threshold of its budget, at the highest one: one finding however many have. */
export function findEndUserBudgets(facts: readonly EndUserBudgetFact[]): Finding[] {
  return facts.flatMap((fact): Finding[] => {
    const { period, budgetMicroUsd, reached } = fact;
    const highest = reached.findLast(({ endUsers }) => endUsers > 0);
    if (highest === undefined) return [];
    const { percent, endUsers } = highest;
    const [who, has] = endUsers === 1 ? ["An end user", "has"] : [`${endUsers} end users`, "have"];
    const isMonth = period.length === "2026-11".length;
    const length = isMonth ? "month" : "day";
    const refused = `Further requests of ${endUsers === 1 ? "this end user" : "these end users"} are refused until the ${length} ends. `;
    return [
      {
        rule: "end_user_budget",
        severity: "warning",
        ...ownedBy(fact),
        period: `${period}/${percent}`,
        title: `${who} of the ${nameOf(fact)} ${has} used ${percent} % of the ${isMonth ? "monthly" : "daily"} budget`,
        detail: `The key gives ${formatUsd(budgetMicroUsd)} a ${length} to each; it is about ${period} (UTC). ${percent >= 100 ? refused : ""}The page Keys lists what each has spent, and gives single ones another budget.`,
      },
    ];
  });
}

/** Keys that expire within the threshold. */
export function findExpiring(facts: readonly ExpiryFact[], nowMs: number, { keyExpiryDays }: Thresholds): Finding[] {
  return facts
    .filter(({ expiresAtMs }) => expiresAtMs > nowMs && expiresAtMs - nowMs <= keyExpiryDays * DAY_MS)
    .map((fact) => ({
      rule: "key_expiring",
      severity: fact.expiresAtMs - nowMs <= DAY_MS ? "critical" : "warning",
      ...ownedBy(fact),
      // A changed expiry opens another alert.
      period: String(fact.expiresAtMs),
      title: `The ${nameOf(fact)} expires ${formatDay(fact.expiresAtMs)}`,
      detail: "Requests with it are refused from then on. Rotate it, or change its expiry.",
    }));
}

/** Models of whose requests too many failed. Refused requests do not count: their callers caused them. */
export function findModelErrors(facts: readonly TrafficFact[], thresholds: Thresholds): Finding[] {
  return facts
    .filter(({ completions, failed }) => exceeds({ requests: completions, errors: failed }, thresholds))
    .map(({ group, completions, failed }) => ({
      rule: "error_rate",
      severity: failed * 2 >= completions ? "critical" : "warning",
      subject: `model:${group}`,
      period: "",
      accountId: undefined,
      title: `${formatShare(failed / completions)} of the requests to ${group} fail`,
      detail: `${failed} of ${completions} requests of the last ten minutes failed.`,
    }));
}

/** Keys of whose requests too many failed or were refused. */
export function findKeyErrors(facts: readonly (TrafficFact & KeyFact)[], thresholds: Thresholds): Finding[] {
  return facts.flatMap((fact): Finding[] => {
    const [requests, errors] = [fact.completions + fact.refused, fact.failed + fact.refused];
    if (!exceeds({ requests, errors }, thresholds)) return [];
    return [
      {
        rule: "error_rate",
        severity: "warning",
        ...ownedBy(fact),
        period: "",
        title: `${formatShare(errors / requests)} of the requests of the ${nameOf(fact)} fail`,
        detail: `Of ${requests} requests of the last ten minutes ${fact.failed} failed and ${fact.refused} were refused.`,
      },
    ];
  });
}

function exceeds(
  { requests, errors }: { readonly requests: number; readonly errors: number },
  { errorPercent, minRequests }: Thresholds,
): boolean {
  return errorPercent > 0 && requests >= minRequests && errors * 100 >= requests * errorPercent;
}

/** Number of completions in the usual time from which its 95th percentile is used. */
const MIN_USUAL = 100;

/** Models that take much longer than usual. */
export function findSlow(
  facts: readonly LatencyFact[],
  usual: readonly LatencyFact[],
  { latencyFactor, minRequests }: Thresholds,
): Finding[] {
  const usualOf = new Map(usual.filter(({ served }) => served >= MIN_USUAL).map((fact) => [fact.model, fact.p95Ms]));
  return facts.flatMap(({ model, served, p95Ms }): Finding[] => {
    const usualMs = usualOf.get(model);
    if (latencyFactor <= 0 || usualMs === undefined || served < minRequests || p95Ms <= latencyFactor * usualMs)
      return [];
    return [
      {
        rule: "latency",
        severity: "warning",
        subject: `model:${model}`,
        period: "",
        accountId: undefined,
        title: `${model} is slower than usual`,
        detail: `95 % of the requests of the last ten minutes took up to ${formatSeconds(p95Ms)}; in the last seven days it was ${formatSeconds(usualMs)}.`,
      },
    ];
  });
}

/** State of an upstream model in this process. */
export interface UpstreamState {
  readonly provider: string;
  readonly isOpen: boolean;
  /** Whether it was called lately. */
  readonly isUsed: boolean;
}

/** Providers all of whose models in use have an open circuit breaker. */
export function findDown(upstreams: readonly UpstreamState[]): Finding[] {
  return [...Map.groupBy(upstreams, ({ provider }) => provider)]
    .filter(
      ([, models]) => models.some(({ isOpen }) => isOpen) && models.every(({ isOpen, isUsed }) => isOpen || !isUsed),
    )
    .map(([provider]) => ({
      rule: "provider_down",
      severity: "critical",
      subject: `provider:${provider}`,
      period: "",
      accountId: undefined,
      title: `The provider ${provider} is down`,
      detail: "The circuit breakers of all its models in use are open: calls fail, or go to other targets.",
    }));
}

/** Days of spending that an account needs before an hour can be unusual for it. */
const MIN_HISTORY_DAYS = 7;

/** Accounts that spend much more in this hour than in this hour of other days. */
export function findUnusualSpend(
  facts: readonly SpendFact[],
  hourMs: number,
  { spendFactor, spendMinimumUsd }: Thresholds,
): Finding[] {
  return facts.flatMap(({ accountId, name, spentMicroUsd, beforeMicroUsd, firstHourMs }): Finding[] => {
    const isKnown = hourMs - firstHourMs >= MIN_HISTORY_DAYS * DAY_MS;
    const usual = median(beforeMicroUsd);
    const isUnusual = spentMicroUsd >= spendMinimumUsd * 1_000_000 && spentMicroUsd > spendFactor * usual;
    if (spendFactor <= 0 || !isKnown || !isUnusual) return [];
    return [
      {
        rule: "unusual_spend",
        severity: "warning",
        subject: `account:${accountId}`,
        period: "",
        accountId,
        title: `The account “${name}” spends much more than usual`,
        detail: `${formatUsd(spentMicroUsd)} since ${new Date(hourMs).toISOString().slice(11, 16)} UTC; usually ${formatUsd(usual)} in this hour of the day.`,
      },
    ];
  });
}

/** The middle value; 0 of none. */
export function median(values: readonly number[]): number {
  const sorted = values.toSorted((one, other) => one - other);
  const middle = Math.floor(sorted.length / 2);
  if (sorted.length === 0) return 0;
  return sorted.length % 2 === 1 ? sorted[middle]! : (sorted[middle - 1]! + sorted[middle]!) / 2;
}

function ownedBy({ keyId, accountId }: KeyFact): Pick<Finding, "subject" | "accountId"> {
  return { subject: keyId === undefined ? `account:${accountId}` : `key:${keyId}`, accountId };
}

function nameOf({ keyId, name }: KeyFact): string {
  return `${keyId === undefined ? "account" : "key"} “${name}”`;
}

const formatBudget = budgetFormat("en-US");

function amountsOf({ spentMicroUsd, budgetMicroUsd }: BudgetFact): FormattedBudget {
  return formatBudget({ spent: BigInt(spentMicroUsd), budget: BigInt(budgetMicroUsd) });
}

function formatUsd(microUsd: number): string {
  const usd = microUsd / 1_000_000;
  return new Intl.NumberFormat("en-US", {
    style: "currency",
    currency: "USD",
    maximumFractionDigits: usd < 1 ? 4 : 2,
  }).format(usd);
}

function formatShare(share: number): string {
  return `${Math.floor(share * 100)} %`;
}

function formatSeconds(ms: number): string {
  return `${(ms / 1000).toFixed(1)} s`;
}

function formatDay(atMs: number): string {
  const text = new Date(atMs).toISOString();
  return `on ${text.slice(0, 10)} at ${text.slice(11, 16)} UTC`;
}
