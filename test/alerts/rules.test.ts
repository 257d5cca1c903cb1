import { describe, expect, it } from "vitest";
import type { AlertRecord, Finding } from "../../src/alerts/alert.ts";
import type { BudgetFact, SpendFact } from "../../src/alerts/alert-store.ts";
import { compareFindings } from "../../src/alerts/evaluation.ts";
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
  median,
} from "../../src/alerts/rules.ts";
import {
  checkThresholds,
  DEFAULT_THRESHOLDS,
  type Thresholds,
  thresholdsInForce,
} from "../../src/alerts/thresholds.ts";

const DAY_MS = 24 * 60 * 60_000;
const NOW = Date.UTC(2026, 10, 21);
const MONTH = { name: "2026-11", nowMs: NOW, untilMs: Date.UTC(2026, 11, 1), recentMs: 7 * DAY_MS };
const USD = 1_000_000;

const budget = (spentUsd: number, changes: Partial<BudgetFact> = {}): BudgetFact => ({
  keyId: "key_1",
  accountId: "acct_1",
  name: "billing",
  spentMicroUsd: spentUsd * USD,
  budgetMicroUsd: 100 * USD,
  recentMicroUsd: 0,
  ...changes,
});
const kindsOf = (findings: readonly Finding[]) => findings.map(({ rule, period }) => `${rule} ${period}`);
const withThresholds = (changes: Partial<Thresholds>): Thresholds => ({ ...DEFAULT_THRESHOLDS, ...changes });

describe("the rule of budgets", () => {
  it.each([
    [49.99, []],
    [50, ["budget 2026-11/50"]],
    [79.99, ["budget 2026-11/50"]],
    [80, ["budget 2026-11/80"]],
    [100, ["budget 2026-11/100"]],
    [140, ["budget 2026-11/100"]],
  ])("finds the highest threshold that is reached: $%d of $100", (spent, found) => {
    expect(kindsOf(findBudgets([budget(spent)], MONTH, DEFAULT_THRESHOLDS))).toEqual(found);
  });

  it("says whose it is, in which month, and how much", () => {
    expect(findBudgets([budget(100)], MONTH, DEFAULT_THRESHOLDS)).toEqual([
      {
        rule: "budget",
        severity: "critical",
        subject: "key:key_1",
        accountId: "acct_1",
        period: "2026-11/100",
        title: "The key “billing” has used 100 % of its monthly budget",
        detail:
          "$100.00 of $100.00 is spent in 2026-11 (UTC). Further requests are refused until the budget is raised or the month ends.",
      },
    ]);
    const [ofAccount] = findBudgets([budget(60, { keyId: undefined })], MONTH, DEFAULT_THRESHOLDS);
    expect(ofAccount).toMatchObject({ subject: "account:acct_1", severity: "warning" });
  });

  it("rounds no amount so that the text contradicts itself", () => {
    const [reached, forecast] = findBudgets(
      [budget(0, { spentMicroUsd: 99_999_900, recentMicroUsd: 7 * USD })],
      { ...MONTH, untilMs: NOW + DAY_MS },
      DEFAULT_THRESHOLDS,
    );
    expect(reached?.title).toContain("has used 80 %");
    expect(reached?.detail).toBe("$99.9999 of $100.00 is spent in 2026-11 (UTC).");
    expect(forecast?.detail).toContain("comes to $101.00 of $100.00; $99.9999 is spent.");
  });

  it("finds one alert for all end users of a key, at the highest threshold that one has reached", () => {
    const ofEndUsers = (near: number, spent: number, period = "2026-11-21") =>
      findEndUserBudgets([
        {
          keyId: "key_1",
          accountId: "acct_1",
          name: "shop",
          period,
          budgetMicroUsd: USD / 2,
          reached: [
            { percent: 80, endUsers: near },
            { percent: 100, endUsers: spent },
          ],
        },
      ]);
    expect(endUserPercents(DEFAULT_THRESHOLDS)).toEqual([80, 100]);
    expect(ofEndUsers(0, 0)).toEqual([]);
    expect(ofEndUsers(1, 0)).toEqual([
      {
        rule: "end_user_budget",
        severity: "warning",
        subject: "key:key_1",
        accountId: "acct_1",
        period: "2026-11-21/80",
        title: "An end user of the key “shop” has used 80 % of the daily budget",
        detail:
          "The key gives $0.50 a day to each; it is about 2026-11-21 (UTC). The page Keys lists what each has spent, and gives single ones another budget.",
      },
    ]);
    expect(ofEndUsers(40, 3, "2026-11")).toMatchObject([
      {
        period: "2026-11/100",
        title: "3 end users of the key “shop” have used 100 % of the monthly budget",
        detail: expect.stringContaining(
          "Further requests of these end users are refused until the month ends.",
        ) as string,
      },
    ]);
  });

  it("finds a budget that the present pace exceeds, until it is spent", () => {
    // Ten days are left: seven dollars a day come to 100.
    const pace = (spent: number, recent: number) =>
      kindsOf(findBudgets([budget(spent, { recentMicroUsd: recent * USD })], MONTH, DEFAULT_THRESHOLDS));
    expect(pace(30, 48)).toEqual([]);
    expect(pace(30, 50)).toEqual(["budget_forecast 2026-11"]);
    expect(pace(60, 50)).toEqual(["budget 2026-11/50", "budget_forecast 2026-11"]);
    expect(pace(100, 50)).toEqual(["budget 2026-11/100"]);
  });

  it("is off without thresholds, and ignores a budget of zero", () => {
    expect(findBudgets([budget(100, { recentMicroUsd: USD })], MONTH, withThresholds({ budgetPercent: [] }))).toEqual(
      [],
    );
    expect(findBudgets([budget(1, { budgetMicroUsd: 0 })], MONTH, DEFAULT_THRESHOLDS)).toEqual([]);
  });
});

describe("the rule of expiring keys", () => {
  const expiring = (days: number) =>
    findExpiring(
      [{ keyId: "key_1", accountId: "acct_1", name: "ci", expiresAtMs: NOW + days * DAY_MS }],
      NOW,
      DEFAULT_THRESHOLDS,
    );
  it("finds those of the next seven days, the last day critical", () => {
    expect(expiring(7.01)).toEqual([]);
    expect(expiring(7)).toMatchObject([{ severity: "warning", subject: "key:key_1", accountId: "acct_1" }]);
    expect(expiring(1)).toMatchObject([
      { severity: "critical", title: "The key “ci” expires on 2026-11-22 at 00:00 UTC" },
    ]);
    expect(expiring(0)).toEqual([]);
  });
});

describe("the rules of errors", () => {
  const traffic = (completions: number, failed: number, refused = 0) => ({ group: "m", completions, failed, refused });
  it.each([
    [19, 19, []],
    [20, 3, []],
    [20, 4, ["warning"]],
    [20, 10, ["critical"]],
  ])("find models of whose requests a fifth fails: %d requests, %d failed", (completions, failed, found) => {
    const findings = findModelErrors([traffic(completions, failed)], DEFAULT_THRESHOLDS);
    expect(findings.map(({ severity }) => severity)).toEqual(found);
  });

  it("counts refused requests for keys, and not for models", () => {
    const facts = [{ ...traffic(20, 0, 40), keyId: "key_1", accountId: "acct_1", name: "ci" }];
    expect(findModelErrors(facts, DEFAULT_THRESHOLDS)).toEqual([]);
    expect(findKeyErrors(facts, DEFAULT_THRESHOLDS)).toMatchObject([
      {
        accountId: "acct_1",
        title: "66 % of the requests of the key “ci” fail",
        detail: "Of 60 requests of the last ten minutes 0 failed and 40 were refused.",
      },
    ]);
    expect(findKeyErrors(facts, withThresholds({ errorPercent: 0 }))).toEqual([]);
  });
});

describe("the rule of latency", () => {
  const fact = (p95Ms: number, served = 100) => ({ model: "m", served, p95Ms });
  it("finds a model at more than three times its usual 95th percentile", () => {
    expect(findSlow([fact(3_000)], [fact(1_000)], DEFAULT_THRESHOLDS)).toEqual([]);
    expect(findSlow([fact(3_001)], [fact(1_000)], DEFAULT_THRESHOLDS)).toMatchObject([{ subject: "model:m" }]);
  });

  it("needs enough requests now and in the usual time", () => {
    expect(findSlow([fact(9_000, 19)], [fact(1_000)], DEFAULT_THRESHOLDS)).toEqual([]);
    expect(findSlow([fact(9_000)], [fact(1_000, 99)], DEFAULT_THRESHOLDS)).toEqual([]);
    expect(findSlow([fact(9_000)], [], DEFAULT_THRESHOLDS)).toEqual([]);
    expect(findSlow([fact(9_000)], [fact(1_000)], withThresholds({ latencyFactor: 0 }))).toEqual([]);
  });
});

describe("the rule of providers", () => {
  const state = (isOpen: boolean, isUsed: boolean) => ({ provider: "openai", isOpen, isUsed });
  it.each([
    ["no circuit breaker is open", [state(false, true)], 0],
    ["one of two models in use works", [state(true, true), state(false, true)], 0],
    ["all models in use are open", [state(true, true), state(true, true)], 1],
    ["others are not in use", [state(true, true), state(false, false)], 1],
  ])("when %s", (_, upstreams, found) => {
    expect(findDown(upstreams)).toHaveLength(found);
  });
});

describe("the rule of unusual spending", () => {
  const spend = (spentUsd: number, changes: Partial<SpendFact> = {}): SpendFact => ({
    accountId: "acct_1",
    name: "Ada",
    spentMicroUsd: spentUsd * USD,
    beforeMicroUsd: Array.from({ length: 14 }, (_, day) => (day % 2 === 0 ? 2 : 4) * USD),
    firstHourMs: NOW - 30 * DAY_MS,
    ...changes,
  });
  it("finds an hour of more than five times the median, from $10", () => {
    const found = (fact: SpendFact) => findUnusualSpend([fact], NOW, DEFAULT_THRESHOLDS).length;
    expect(found(spend(15))).toBe(0);
    expect(found(spend(15.01))).toBe(1);
    expect(found(spend(9.99, { beforeMicroUsd: [] }))).toBe(0);
    expect(found(spend(10, { beforeMicroUsd: [] }))).toBe(1);
  });

  it("does not know what is usual for an account of the last week", () => {
    expect(findUnusualSpend([spend(99, { firstHourMs: NOW - 6 * DAY_MS })], NOW, DEFAULT_THRESHOLDS)).toEqual([]);
  });

  it("has the median of an even and an odd number", () => {
    expect([median([]), median([5]), median([4, 1]), median([9, 1, 2])]).toEqual([0, 5, 2.5, 2]);
  });
});

describe("what an evaluation changes", () => {
  const finding = (subject: string, changes: Partial<Finding> = {}): Finding => ({
    rule: "error_rate",
    severity: "warning",
    subject,
    period: "",
    accountId: undefined,
    title: "",
    detail: "",
    ...changes,
  });
  const alert = (subject: string, seenAtMs: number, changes: Partial<AlertRecord> = {}): AlertRecord => ({
    ...finding(subject),
    id: subject,
    openedAtMs: 0,
    seenAtMs,
    resolvedAtMs: undefined,
    acknowledgedAtMs: undefined,
    acknowledgedBy: undefined,
    mutedUntilMs: undefined,
    mutedBy: undefined,
    ...changes,
  });

  it("opens new ones, continues others, and resolves those that have not held for their time", () => {
    const open = [alert("a", NOW - 60_000), alert("b", NOW - 10 * 60_000), alert("c", NOW - 9 * 60_000)];
    const compared = compareFindings({ findings: [finding("a"), finding("d")], open, nowMs: NOW, isComplete: true });
    expect(compared.seen).toEqual(["a"]);
    expect(compared.opened.map(({ subject }) => subject)).toEqual(["d"]);
    expect(compared.resolved.map(({ subject }) => subject)).toEqual(["b"]);
  });

  it("notes seldom that a condition holds which ends slowly, and never one that ends at once", () => {
    const seen = (rule: Finding["rule"], minutes: number) => {
      const open = [alert("a", NOW - minutes * 60_000, { rule })];
      return compareFindings({ findings: [finding("a", { rule })], open, nowMs: NOW, isComplete: true }).seen.length;
    };
    expect([seen("budget_forecast", 5), seen("budget_forecast", 6)]).toEqual([0, 1]);
    expect(seen("budget", 999)).toBe(0);
  });

  it("resolves nothing when not all rules were evaluated", () => {
    expect(compareFindings({ findings: [], open: [alert("a", 0)], nowMs: NOW, isComplete: false }).resolved).toEqual(
      [],
    );
  });

  it("opens at most fifty at once", () => {
    const findings = Array.from({ length: 60 }, (_, index) => finding(`m${index}`));
    expect(compareFindings({ findings, open: [], nowMs: NOW, isComplete: true }).opened).toHaveLength(50);
  });

  it("takes another period for another alert", () => {
    const open = [alert("k", NOW - 1, { rule: "budget", period: "2026-11/50" })];
    const findings = [finding("k", { rule: "budget", period: "2026-11/80" })];
    const { opened, resolved } = compareFindings({ findings, open, nowMs: NOW, isComplete: true });
    expect([opened.length, resolved.length]).toEqual([1, 1]);
  });
});

describe("thresholds", () => {
  it("are the file's, then those of the dashboard, then the defaults", () => {
    const { values, ofFile } = thresholdsInForce({ errorPercent: 5 }, { errorPercent: 9, spendFactor: 7 });
    expect(values).toEqual({ ...DEFAULT_THRESHOLDS, errorPercent: 5, spendFactor: 7 });
    expect([...ofFile]).toEqual(["errorPercent"]);
  });

  it.each([
    [{ errorPercent: 101 }, "thresholds.error_percent"],
    [{ minRequests: 0 }, "thresholds.min_requests"],
    [{ latencyFactor: Number.NaN }, "thresholds.latency_factor"],
    [{ budgetPercent: [80, 50] }, "thresholds.budget_percent"],
    [{ budgetPercent: [0.5] }, "thresholds.budget_percent"],
  ])("%j is refused", (values, field) => {
    expect(() => checkThresholds(values)).toThrow(
      expect.objectContaining({ violations: [expect.objectContaining({ field })] }),
    );
  });
});
