import { endOfPeriod, monthOf } from "../core/clock.ts";
import { type AlertRecord, type Finding, identityOf, RESOLVE_AFTER_MS, TELLS_END } from "./alert.ts";
import { type AlertFacts, type AlertStore, type LatencyFact, MAX_OPEN, type Receiver } from "./alert-store.ts";
import { limitOpenings, OPENINGS_MS } from "./openings.ts";
import {
  endUserPercents,
  findBudgets,
  findDown,
  findEndUserBudgets,
  findExpiring,
  findKeyErrors,
  findModelErrors,
  findSlow,
  findUnusualSpend,
  type UpstreamState,
} from "./rules.ts";
import type { Thresholds } from "./thresholds.ts";

const MINUTE_MS = 60_000;
const HOUR_MS = 60 * MINUTE_MS;
const DAY_MS = 24 * HOUR_MS;
/** Time in which error rate and latency are measured. */
const WINDOW_MS = 10 * MINUTE_MS;
/** Time for the pace of the forecast, and for the usual latency. */
const USUAL_MS = 7 * DAY_MS;
/** Days whose same hour is compared with the latest hour. */
const SPEND_DAYS = 14;
/** Time for which the usual latency is kept: reading it takes as long as a report. */
const USUAL_KEPT_MS = HOUR_MS;
/** Share of a budget from which its forecast is evaluated. */
const FORECAST_SHARE = 0.2;
/** Limits of facts of each kind beside those with open alerts: per account, and in total. */
const FACT_LIMITS = { ofAccount: 100, limit: MAX_OPEN + 1_000 };
/** Limit of accounts whose spending is evaluated. */
const MAX_SPENDING = 1_000;
/** Alerts opened by one evaluation, so that a mistake in a threshold does not send thousands of messages at once. */
const MAX_OPENED = 50;
/** Shorter than the job's shortest interval, so that one replica evaluates in each minute. */
const CLAIM_MS = 45_000;

/** Ports of the evaluation. */
export interface EvaluationPorts {
  readonly store: AlertStore;
  readonly facts: AlertFacts;
  readonly thresholds: () => Promise<Thresholds>;
  /** Budget of accounts without their own. */
  readonly defaultBudgetMicroUsd: () => number | undefined;
  /** The provider models of this process. */
  readonly upstreams: () => readonly UpstreamState[];
  /** Receivers of messages about these findings; asked only when there are new ones. */
  readonly receivers: (findings: readonly Finding[]) => Promise<(finding: Finding) => readonly Receiver[]>;
}

/**
 * Evaluates the rules. In each minute one process reads the database for all; every process evaluates providers, because
 * each has its own circuit breakers. Answers the number of opened and resolved alerts.
 */
export class Evaluation {
  readonly #ports: EvaluationPorts;
  #usual: { readonly facts: readonly LatencyFact[]; readonly untilMs: number } | undefined;

  constructor(ports: EvaluationPorts) {
    this.#ports = ports;
  }

  async run(): Promise<number> {
    const { store, upstreams } = this.#ports;
    const nowMs = await store.nowMs();
    const down = findDown(upstreams());
    const isClaimed = await store.claimEvaluation(nowMs, CLAIM_MS);
    if (!isClaimed && down.length === 0) return 0;
    const found = isClaimed ? [...down, ...(await this.#findAll(nowMs))] : down;
    const open = await store.open();
    const accountIds = new Set(found.flatMap(({ accountId }) => accountId ?? []));
    const findings = limitOpenings(found, {
      open,
      openings: await store.openings([...accountIds], nowMs - OPENINGS_MS),
    });
    const changes = compareFindings({ findings, open, nowMs, isComplete: isClaimed });
    const announced = [...changes.opened, ...changes.resolved.filter(({ rule }) => TELLS_END.has(rule))];
    const receivers = announced.length === 0 ? () => [] : await this.#ports.receivers(announced);
    const { opened, resolved } = await store.apply({
      nowMs,
      seen: changes.seen,
      open: changes.opened.map((finding) => ({ finding, receivers: receivers(finding) })),
      resolve: changes.resolved.map((alert) => ({
        alert,
        receivers: TELLS_END.has(alert.rule) ? receivers(alert) : [],
      })),
    });
    return opened + resolved;
  }

  async #findAll(nowMs: number): Promise<Finding[]> {
    const { facts, defaultBudgetMicroUsd } = this.#ports;
    const thresholds = await this.#ports.thresholds();
    const month = { name: monthOf(nowMs), nowMs, untilMs: endOfPeriod(nowMs, "month"), recentMs: USUAL_MS };
    const span = { sinceMs: floor(nowMs - WINDOW_MS, MINUTE_MS), untilMs: floor(nowMs, MINUTE_MS) };
    const hourMs = floor(nowMs, HOUR_MS);
    const { budgetPercent, keyExpiryDays, errorPercent, latencyFactor, spendFactor, minRequests } = thresholds;
    // In sequence: each query is a report, and readers of the dashboard should not wait for all of them.
    const budgets =
      budgetPercent.length === 0
        ? []
        : await facts.budgets({
            nowMs,
            month: month.name,
            share: Math.min(budgetPercent[0]! / 100, FORECAST_SHARE),
            defaultMicroUsd: defaultBudgetMicroUsd(),
            ...FACT_LIMITS,
            recentSinceMs: floor(nowMs - USUAL_MS, HOUR_MS),
          });
    const percents = endUserPercents(thresholds);
    const endUsers = percents.length === 0 ? [] : await facts.endUserBudgets({ nowMs, percents, ...FACT_LIMITS });
    const untilMs = nowMs + keyExpiryDays * DAY_MS;
    const expiring = keyExpiryDays === 0 ? [] : await facts.expiringKeys({ nowMs, untilMs, ...FACT_LIMITS });
    const models = errorPercent === 0 ? [] : await facts.modelTraffic(span);
    const keys =
      errorPercent === 0 ? [] : await facts.keyTraffic({ ...span, minRequests, errorPercent, ...FACT_LIMITS });
    const latencies = latencyFactor === 0 ? [] : await facts.latencies({ sinceMs: nowMs - WINDOW_MS, untilMs: nowMs });
    const usual = latencies.length === 0 ? [] : await this.#usualLatencies(nowMs);
    const minMicroUsd = thresholds.spendMinimumUsd * 1_000_000;
    const spend =
      spendFactor === 0 ? [] : await facts.hourlySpend({ hourMs, minMicroUsd, days: SPEND_DAYS, limit: MAX_SPENDING });
    return [
      ...findModelErrors(models, thresholds),
      ...findBudgets(budgets, month, thresholds),
      ...findEndUserBudgets(endUsers),
      ...findSlow(latencies, usual, thresholds),
      ...findUnusualSpend(spend, hourMs, thresholds),
      ...findExpiring(expiring, nowMs, thresholds),
      ...findKeyErrors(keys, thresholds),
    ];
  }

  async #usualLatencies(nowMs: number): Promise<readonly LatencyFact[]> {
    if (this.#usual === undefined || this.#usual.untilMs <= nowMs) {
      const facts = await this.#ports.facts.latencies({ sinceMs: nowMs - USUAL_MS, untilMs: nowMs - WINDOW_MS });
      this.#usual = { facts, untilMs: nowMs + USUAL_KEPT_MS };
    }
    return this.#usual.facts;
  }
}

interface Compared {
  readonly seen: readonly string[];
  readonly opened: readonly Finding[];
  readonly resolved: readonly AlertRecord[];
}

/**
 * Compares findings with the open alerts. `isComplete`: whether all rules were evaluated, so that alerts without a finding
 * have ended.
 */
export function compareFindings({
  findings,
  open,
  nowMs,
  isComplete,
}: {
  readonly findings: readonly Finding[];
  readonly open: readonly AlertRecord[];
  readonly nowMs: number;
  readonly isComplete: boolean;
}): Compared {
  const known = new Map(open.map((alert) => [identityOf(alert), alert]));
  const current = new Set(findings.map(identityOf));
  const opened = findings.filter((finding) => !known.has(identityOf(finding)));
  const gone = open.filter((alert) => !current.has(identityOf(alert)));
  return {
    seen: open.filter((alert) => current.has(identityOf(alert)) && isNoted(alert, nowMs)).map(({ id }) => id),
    opened: opened.slice(0, Math.max(0, Math.min(MAX_OPENED, MAX_OPEN - open.length))),
    resolved: isComplete ? gone.filter(({ rule, seenAtMs }) => nowMs - seenAtMs >= RESOLVE_AFTER_MS[rule]) : [],
  };
}

/** Part of RESOLVE_AFTER_MS by which `seenAtMs` may be out of date, so that not every row is written in every minute. */
const LATE = 0.1;

/** Whether to update an alert's `seenAtMs`; never for rules whose alerts the next evaluation resolves. */
function isNoted({ rule, seenAtMs }: AlertRecord, nowMs: number): boolean {
  const afterMs = RESOLVE_AFTER_MS[rule];
  return afterMs > 0 && nowMs - seenAtMs >= afterMs * LATE;
}

function floor(atMs: number, stepMs: number): number {
  return Math.floor(atMs / stepMs) * stepMs;
}
