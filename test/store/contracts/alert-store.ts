import { describe, expect, it } from "vitest";
import type { AlertRecord, ChannelRecord, Finding } from "../../../src/alerts/alert.ts";
import type { AlertChanges } from "../../../src/alerts/alert-store.ts";
import { createKey } from "../../../src/access/keys.ts";
import { DEFAULT_ACCOUNT_ID, type KeyRecord } from "../../../src/access/key-store.ts";
import type { AttributionLimits } from "../../../src/core/attribution.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import { attributedOf } from "../../../src/limits/attributed.ts";
import type { Store } from "../../../src/store/store.ts";
import { FakeClock } from "../../support/fake-clock.ts";
import { entry } from "./entries.ts";

const HOUR_MS = 3_600_000;
const DAY_MS = 24 * HOUR_MS;
const NOW = Date.UTC(2026, 10, 21, 12);

const ACCOUNT = {
  kind: "person" as const,
  name: "A",
  passwordHash: "x",
  limits: NO_LIMITS,
  createdAtMs: NOW,
  disabledAtMs: undefined,
};
const LIMITS = { ofAccount: 10, limit: 10 };

export const findingOf = (changes: Partial<Finding> = {}): Finding => ({
  rule: "error_rate",
  severity: "warning",
  subject: "model:m",
  period: "",
  accountId: undefined,
  title: "Requests fail",
  detail: "Many.",
  ...changes,
});

const channel: ChannelRecord = {
  id: "chan_1",
  kind: "webhook",
  name: "On call",
  target: "https://example.com",
  sealed: "sealed",
  createdAtMs: NOW,
  createdBy: undefined,
  rules: [],
  leastSeverity: "warning",
};

const changesOf = (changes: Partial<AlertChanges>): AlertChanges => ({
  nowMs: NOW,
  seen: [],
  open: [],
  resolve: [],
  ...changes,
});
const opening = (finding: Finding = findingOf(), nowMs = NOW): AlertChanges =>
  changesOf({ nowMs, open: [{ finding, receivers: [{ channelId: channel.id, recipient: channel.name }] }] });

async function openOne({ alerts }: Store, finding = findingOf()): Promise<AlertRecord> {
  await alerts.apply(opening(finding));
  return (await alerts.open()).find(({ subject }) => subject === finding.subject)!;
}

/** Registers the suite of alerts. */
export function describeAlertStore(open: () => Promise<Store>): void {
  describe("alerts", () => {
    it("are opened by one of many that find the same, with one message", async () => {
      const { alerts } = await open();
      const made = await Promise.all(Array.from({ length: 8 }, () => alerts.apply(opening())));
      expect(made.reduce((sum, { opened }) => sum + opened, 0)).toBe(1);
      const [alert] = await alerts.open();
      expect(alert).toMatchObject({ ...findingOf(), openedAtMs: NOW, seenAtMs: NOW, resolvedAtMs: undefined });
      expect(await alerts.deliveries([alert!.id])).toMatchObject([
        { kind: "opened", recipient: "On call", attempts: 0 },
      ]);
    });

    it("are evaluated by one of many in a minute", async () => {
      const { alerts } = await open();
      const claim = (atMs: number) =>
        Promise.all(Array.from({ length: 5 }, () => alerts.claimEvaluation(atMs, 45_000)));
      expect((await claim(NOW)).filter(Boolean)).toHaveLength(1);
      expect((await claim(NOW + 44_999)).filter(Boolean)).toHaveLength(0);
      expect((await claim(NOW + 45_000)).filter(Boolean)).toHaveLength(1);
    });

    it("are evaluated also when the clock was set back", async () => {
      const { alerts } = await open();
      expect(await alerts.claimEvaluation(NOW, 45_000)).toBe(true);
      expect(await alerts.claimEvaluation(NOW - 45_000, 45_000)).toBe(false);
      expect(await alerts.claimEvaluation(NOW - 3_600_000, 45_000)).toBe(true);
    });

    it("are resolved once, unless another process has seen them meanwhile, and opened again", async () => {
      const store = await open();
      const { alerts } = store;
      const alert = await openOne(store);
      const resolve = changesOf({
        nowMs: NOW + 1,
        resolve: [{ alert, receivers: [{ channelId: channel.id, recipient: "On call" }] }],
      });
      await alerts.apply(changesOf({ nowMs: NOW + 1, seen: [alert.id] }));
      expect(await alerts.apply(resolve)).toEqual({ opened: 0, resolved: 0 });
      const seen = { ...alert, seenAtMs: NOW + 1 };
      const again = { ...resolve, resolve: [{ ...resolve.resolve[0]!, alert: seen }] };
      const made = await Promise.all([alerts.apply(again), alerts.apply(again)]);
      expect(made.reduce((sum, { resolved }) => sum + resolved, 0)).toBe(1);
      expect((await alerts.deliveries([alert.id])).map(({ kind }) => kind).toSorted()).toEqual(["opened", "resolved"]);
      expect(await alerts.open()).toEqual([]);
      expect((await alerts.apply(opening())).opened).toBe(1);
    });

    it("are acknowledged once, by name, while they are open", async () => {
      const store = await open();
      const { alerts } = store;
      const { id } = await openOne(store);
      expect(await alerts.countActive({ accountIds: undefined, nowMs: NOW })).toBe(1);
      expect(await alerts.acknowledge(id, { accountId: "acct_1", atMs: NOW })).toBe(true);
      expect(await alerts.acknowledge(id, { accountId: "acct_2", atMs: NOW })).toBe(false);
      expect(await alerts.find(id)).toMatchObject({ acknowledgedBy: "acct_1", acknowledgedAtMs: NOW });
      expect(await alerts.countActive({ accountIds: undefined, nowMs: NOW })).toBe(0);
    });

    it("that are muted send nothing, and neither do the next of the same until then", async () => {
      const store = await open();
      const { alerts } = store;
      const alert = await openOne(store);
      await alerts.mute(alert.id, { accountId: "acct_1", untilMs: NOW + HOUR_MS });
      expect(await alerts.deliveries([alert.id])).toMatchObject([
        { nextAtMs: undefined, problem: "The alert was muted." },
      ]);
      await alerts.apply(changesOf({ resolve: [{ alert, receivers: [] }] }));
      const next = await openOne(store);
      expect(next).toMatchObject({ mutedUntilMs: NOW + HOUR_MS, mutedBy: "acct_1" });
      expect(await alerts.deliveries([next.id])).toEqual([]);
      expect(await alerts.countActive({ accountIds: undefined, nowMs: NOW })).toBe(0);
      const other = await openOne(store, findingOf({ subject: "model:other" }));
      expect(await alerts.deliveries([other.id])).toHaveLength(1);
      await alerts.mute(next.id, { accountId: "acct_1", untilMs: undefined });
      expect(await alerts.find(next.id)).toMatchObject({ mutedUntilMs: undefined, mutedBy: undefined });
      await alerts.apply(changesOf({ resolve: [{ alert: next, receivers: [] }] }));
      expect(await alerts.deliveries([(await openOne(store)).id])).toHaveLength(1);
    });

    it("are listed page by page, open or resolved, of all or of an account", async () => {
      const store = await open();
      const { alerts } = store;
      for (let index = 0; index < 5; index++)
        await alerts.apply(
          opening(findingOf({ subject: `key:${index}`, accountId: index < 2 ? "acct_1" : undefined }), NOW + index),
        );
      const page = { accountIds: undefined, isOpen: true, limit: 3, before: undefined };
      const first = await alerts.list(page);
      expect(first.map(({ subject }) => subject)).toEqual(["key:4", "key:3", "key:2"]);
      const { openedAtMs, id } = first.at(-1)!;
      const rest = await alerts.list({ ...page, before: { openedAtMs, id } });
      expect(rest.map(({ subject }) => subject)).toEqual(["key:1", "key:0"]);
      expect(await alerts.list({ ...page, accountIds: ["acct_1"] })).toHaveLength(2);
      expect(await alerts.list({ ...page, isOpen: false })).toEqual([]);
    });

    it("hand each message that is due to one process, and again when it was not sent", async () => {
      const store = await open();
      const { alerts } = store;
      for (let index = 0; index < 4; index++) await openOne(store, findingOf({ subject: `model:${index}` }));
      const due = { channelId: channel.id, nowMs: NOW, untilMs: NOW + 60_000, limit: 10 };
      expect(await alerts.dueChannels(NOW - 1)).toEqual([]);
      expect(await alerts.dueChannels(NOW)).toEqual([channel.id]);
      expect(await alerts.claimDeliveries({ ...due, channelId: undefined })).toEqual([]);
      const claimed = (await Promise.all(Array.from({ length: 4 }, () => alerts.claimDeliveries(due)))).flat();
      expect(claimed).toHaveLength(4);
      expect(new Set(claimed.map(({ id }) => id)).size).toBe(4);
      expect(await alerts.claimDeliveries(due)).toEqual([]);
      const [first, second, third] = claimed;
      await alerts.endDelivery(first!.id, { nextAtMs: undefined, sentAtMs: NOW, problem: "" });
      await alerts.endDelivery(second!.id, { nextAtMs: NOW + 10, sentAtMs: undefined, problem: "Not now." });
      const next = await alerts.claimDeliveries({ ...due, nowMs: NOW + 10 });
      expect(next).toMatchObject([{ id: second!.id, attempts: 2, problem: "Not now." }]);
      // Its process has ended.
      const later = await alerts.claimDeliveries({ ...due, nowMs: NOW + 60_000, untilMs: NOW + 120_000 });
      expect(later.map(({ id }) => id)).toContain(third!.id);
    });

    it("keep channels, at most so many, and drop the messages of a removed one", async () => {
      const store = await open();
      const { alerts } = store;
      expect(await alerts.insertChannel(channel, 1)).toBe(true);
      expect(await alerts.insertChannel({ ...channel, id: "chan_2" }, 1)).toBe(false);
      expect(await alerts.channels()).toEqual([channel]);
      const { id } = await openOne(store);
      expect(await alerts.resealChannels(({ sealed }) => `${sealed} again`)).toEqual({ resealed: 1, unreadable: 0 });
      expect(await alerts.channels()).toEqual([{ ...channel, sealed: "sealed again" }]);
      const changes = { name: "Money", rules: ["budget" as const], leastSeverity: "critical" as const };
      expect(await alerts.changeChannel(channel.id, changes)).toBe(true);
      expect(await alerts.changeChannel("chan_none", changes)).toBe(false);
      expect(await alerts.channels()).toEqual([{ ...channel, ...changes, sealed: "sealed again" }]);
      expect(await alerts.removeChannel(channel.id)).toBe(true);
      expect(await alerts.removeChannel(channel.id)).toBe(false);
      expect(await alerts.deliveries([id])).toMatchObject([
        { nextAtMs: undefined, problem: "The channel was removed." },
      ]);
    });

    it("keep thresholds beside the time of the evaluation", async () => {
      const { alerts } = await open();
      await alerts.claimEvaluation(NOW, 1);
      expect(await alerts.thresholds()).toEqual({});
      await alerts.setThresholds({ errorPercent: 7, budgetPercent: [90] });
      await alerts.setThresholds({ errorPercent: undefined, spendFactor: 2.5 });
      expect(await alerts.thresholds()).toEqual({ budgetPercent: [90], spendFactor: 2.5 });
    });

    it("are removed with their messages after their time", async () => {
      const store = await open();
      const { alerts } = store;
      const alert = await openOne(store);
      await alerts.beginTest(channel, NOW);
      await alerts.apply(changesOf({ resolve: [{ alert, receivers: [] }] }));
      expect(await alerts.prune(NOW)).toBe(0);
      expect(await alerts.prune(NOW + 1)).toBe(1);
      expect(await alerts.prune(NOW + 1)).toBe(0);
      expect(await alerts.deliveries([alert.id])).toEqual([]);
    });
  });

  describe("facts for alerts", () => {
    it("have budgets of keys with their rotations and of accounts, and the pace of the last days", async () => {
      const { keys, accounts, ledger, alertFacts } = await open();
      const clock = new FakeClock(NOW);
      const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: 1_000 };
      const { record } = await createKey({ store: keys, clock }, { name: "near", limits });
      await createKey({ store: keys, clock }, { name: "far", limits });
      await accounts.update(DEFAULT_ACCOUNT_ID, { limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: 2_000 } });
      await ledger.insert([
        entry({ keyId: record.id, startedAtMs: NOW, endedAtMs: NOW + 1, costMicroUsd: 800 }),
        entry({ keyId: record.id, startedAtMs: NOW - 9 * DAY_MS, endedAtMs: NOW - 9 * DAY_MS + 1, costMicroUsd: 100 }),
      ]);
      await ledger.flush();
      const query = { nowMs: NOW, month: "2026-11", share: 0.2, defaultMicroUsd: undefined, ...LIMITS };
      const facts = await alertFacts.budgets({ ...query, recentSinceMs: NOW - 7 * DAY_MS });
      expect(facts).toMatchObject([
        {
          keyId: undefined,
          accountId: DEFAULT_ACCOUNT_ID,
          spentMicroUsd: 900,
          budgetMicroUsd: 2_000,
          recentMicroUsd: 800,
        },
        { keyId: record.id, name: "near", spentMicroUsd: 900, budgetMicroUsd: 1_000, recentMicroUsd: 800 },
      ]);
    });

    it("have numbers of a key's end users at each share of the budget of the day or month, of keys that work", async () => {
      const { keys, ledger, attributedBudgets, alertFacts } = await open();
      const clock = new FakeClock(NOW);
      const make = async (name: string, attributionLimits: AttributionLimits) => {
        return (await createKey({ store: keys, clock }, { name, attributionLimits })).record;
      };
      const monthly = await make("monthly", { endUserBudgetMicroUsd: 1_000, endUserBudgetPeriod: "month" });
      const daily = await make("daily", { endUserBudgetMicroUsd: 1_000 });
      await make("unused", { endUserBudgetMicroUsd: 1_000 });
      await make("of sessions", { sessionBudgetMicroUsd: 1 });
      const spend = async (record: KeyRecord, endUser: string, costMicroUsd: number) => {
        const { holds } = attributedOf(record, record.attributionLimits ?? {}, { endUser, session: endUser });
        const at = { startedAtMs: NOW, endedAtMs: NOW + 1 };
        await ledger.insert([entry({ ...at, keyId: record.id, costMicroUsd, budgets: holds })]);
      };
      for (const [name, cost] of [
        ["ann", 799],
        ["ben", 800],
        ["cy", 1_000],
        ["dan", 1_200],
      ] as const)
        await spend(monthly, name, cost);
      await spend(daily, "ann", 900);
      await ledger.flush();
      const of = { kind: "end_user", keyFamilyId: monthly.keyFamilyId, period: "2026-11" } as const;
      await attributedBudgets.setLimit(of, "dan", 2_000);
      const facts = await alertFacts.endUserBudgets({ nowMs: NOW, percents: [80, 100], ...LIMITS });
      const accountId = DEFAULT_ACCOUNT_ID;
      expect(facts.toSorted((one, other) => other.name.localeCompare(one.name))).toEqual([
        {
          keyId: monthly.id,
          accountId,
          name: "monthly",
          period: "2026-11",
          budgetMicroUsd: 1_000,
          reached: [
            { percent: 80, endUsers: 2 },
            { percent: 100, endUsers: 1 },
          ],
        },
        {
          keyId: daily.id,
          accountId,
          name: "daily",
          period: "2026-11-21",
          budgetMicroUsd: 1_000,
          reached: [
            { percent: 80, endUsers: 1 },
            { percent: 100, endUsers: 0 },
          ],
        },
      ]);
      await keys.revoke([monthly.id, daily.id], NOW);
      expect(await alertFacts.endUserBudgets({ nowMs: NOW, percents: [80], ...LIMITS })).toEqual([]);
    });

    it("have traffic by model and key, without what is not the model's fault", async () => {
      const { keys, ledger, refusals, alertFacts } = await open();
      const clock = new FakeClock(NOW);
      const { record } = await createKey({ store: keys, clock }, { name: "ci" });
      // Sums of minutes are kept by the database's clock.
      const atMs = Math.floor(Date.now() / 60_000) * 60_000;
      const at = { keyId: record.id, startedAtMs: atMs, endedAtMs: atMs + 1 };
      await ledger.insert([
        entry(at),
        entry({ ...at, outcome: "upstream_timeout", durationMs: 9_000 }),
        entry({ ...at, outcome: "cancelled" }),
        entry({ ...at, outcome: "upstream_rejected" }),
      ]);
      await ledger.flush();
      const refused = {
        atMs,
        accountId: DEFAULT_ACCOUNT_ID,
        keyId: record.id,
        model: "m",
        outcome: "rate_limited",
        refused: 6,
      };
      await refusals.add([refused], []);
      const span = { sinceMs: atMs, untilMs: atMs + 60_000 };
      expect(await alertFacts.modelTraffic(span)).toEqual([{ group: "m", completions: 4, failed: 1, refused: 6 }]);
      const query = { ...span, minRequests: 10, errorPercent: 80, ...LIMITS };
      expect(await alertFacts.keyTraffic(query)).toEqual([
        {
          group: record.id,
          keyId: record.id,
          name: "ci",
          accountId: DEFAULT_ACCOUNT_ID,
          completions: 4,
          failed: 2,
          refused: 6,
        },
      ]);
      expect(await alertFacts.keyTraffic({ ...query, minRequests: 11 })).toEqual([]);
      expect(await alertFacts.keyTraffic({ ...query, errorPercent: 80.5 })).toEqual([]);
      expect(await alertFacts.latencies(span)).toEqual([{ model: "m", served: 1, p95Ms: 1500.25 }]);
    });

    it("have what accounts spend in this hour, and spent in it on other days", async () => {
      const { ledger, alertFacts } = await open();
      const at = (startedAtMs: number, costMicroUsd: number) =>
        entry({ startedAtMs, endedAtMs: startedAtMs + 1, costMicroUsd });
      await ledger.insert([
        at(NOW + 5, 500),
        at(NOW - DAY_MS, 40),
        at(NOW - DAY_MS + HOUR_MS, 7),
        at(NOW - 3 * DAY_MS, 60),
      ]);
      await ledger.flush();
      const query = { hourMs: NOW, minMicroUsd: 500, days: 4, limit: 10 };
      expect(await alertFacts.hourlySpend(query)).toMatchObject([
        {
          accountId: DEFAULT_ACCOUNT_ID,
          spentMicroUsd: 500,
          beforeMicroUsd: [40, 0, 60, 0],
          firstHourMs: NOW - 3 * DAY_MS,
        },
      ]);
      expect(await alertFacts.hourlySpend({ ...query, minMicroUsd: 501 })).toEqual([]);
    });

    it("are those of some keys of each account, and of all that have an open alert", async () => {
      const store = await open();
      const { keys, accounts, ledger, alerts, alertFacts } = store;
      const clock = new FakeClock(NOW);
      await accounts.insert({ ...ACCOUNT, id: "acct_bob", email: "bob@example.com", role: "developer" });
      const limits = { ...NO_LIMITS, monthlyBudgetMicroUsd: 1_000 };
      const made: KeyRecord[] = [];
      // The key of another account is the least important one by each measure.
      for (const accountId of [...Array.from({ length: 4 }, () => DEFAULT_ACCOUNT_ID), "acct_bob"]) {
        const index = made.length;
        const lifetimeMs = DAY_MS + index;
        made.push(
          (await createKey({ store: keys, clock }, { name: `${index}`, accountId, limits, lifetimeMs })).record,
        );
      }
      const atMs = Math.floor(Date.now() / 60_000) * 60_000;
      for (const [index, { id: keyId, accountId }] of made.entries()) {
        const spent = { keyId, accountId, startedAtMs: NOW, endedAtMs: NOW + 1, costMicroUsd: 900 - index };
        const failed = {
          ...spent,
          startedAtMs: atMs,
          endedAtMs: atMs + 1,
          costMicroUsd: 0,
          outcome: "internal" as const,
        };
        await ledger.insert([entry(spent), ...Array.from({ length: 9 - index }, () => entry(failed))]);
      }
      await ledger.flush();
      for (const rule of ["budget", "key_expiring", "error_rate"] as const)
        await openOne(store, findingOf({ rule, subject: `key:${made[3]!.id}`, accountId: DEFAULT_ACCOUNT_ID }));
      const few = { ofAccount: 2, limit: 4 };
      const month = { nowMs: NOW, month: "2026-11", share: 0.2, defaultMicroUsd: undefined, recentSinceMs: NOW };
      const facts = [
        await alertFacts.budgets({ ...month, ...few }),
        await alertFacts.expiringKeys({ nowMs: NOW, untilMs: NOW + 7 * DAY_MS, ...few }),
        await alertFacts.keyTraffic({
          sinceMs: atMs,
          untilMs: atMs + 60_000,
          minRequests: 1,
          errorPercent: 20,
          ...few,
        }),
      ];
      for (const found of facts) expect(found.map(({ name }) => name).toSorted()).toEqual(["0", "1", "3", "4"]);
      const openings = (sinceMs: number) => alerts.openings([DEFAULT_ACCOUNT_ID, "acct_bob", "acct_none"], sinceMs);
      const opened = await openings(NOW);
      expect([opened.size, opened.get("acct_bob")?.count, opened.get(DEFAULT_ACCOUNT_ID)?.count]).toEqual([2, 0, 3]);
      expect((await openings(NOW + 1)).get(DEFAULT_ACCOUNT_ID)?.count).toBe(0);
    });

    it("have keys that expire, and addresses of administrators and owners", async () => {
      const { keys, accounts, alerts, alertFacts } = await open();
      const clock = new FakeClock(NOW);
      await createKey({ store: keys, clock }, { name: "soon", lifetimeMs: DAY_MS });
      await createKey({ store: keys, clock }, { name: "late", lifetimeMs: 9 * DAY_MS });
      const query = { nowMs: NOW, untilMs: NOW + 7 * DAY_MS, ...LIMITS };
      expect(await alertFacts.expiringKeys(query)).toMatchObject([{ name: "soon", expiresAtMs: NOW + DAY_MS }]);
      await accounts.insert({ ...ACCOUNT, id: "acct_ada", email: "ada@example.com", role: "administrator" });
      await accounts.insert({ ...ACCOUNT, id: "acct_bob", email: "bob@example.com", role: "developer" });
      await accounts.insert({
        ...ACCOUNT,
        id: "acct_eve",
        email: "eve@example.com",
        role: "administrator",
        disabledAtMs: 1,
      });
      expect(await alerts.addresses(["acct_bob", "acct_eve", "acct_bob"])).toEqual({
        administrators: ["ada@example.com"],
        owners: new Map([["acct_bob", "bob@example.com"]]),
      });
    });
  });
}
