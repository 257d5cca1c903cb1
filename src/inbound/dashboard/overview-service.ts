import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import type {
  KeyNoticeSchema,
  OverviewService,
  SetupChecklistSchema,
  SpendingOverviewSchema,
  TrafficOverviewSchema,
} from "../../../gen/parley/console/v1/overview_pb.js";
import type { AccessContext } from "../../access/context.ts";
import type { KeyNotices } from "../../access/key-notices.ts";
import { permitsEverywhere } from "../../access/permissions.ts";
import type { KeyStore } from "../../access/key-store.ts";
import { monthOf } from "../../core/clock.ts";
import { NO_CALLER } from "../../core/ledger.ts";
import type { Limits } from "../../core/principal.ts";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import { dayStart, UTC } from "../../ledger/time-zone.ts";
import { type Span, STEP_MS, totalOf, type UsageStore, type UsageSums, wholeSteps } from "../../ledger/usage-store.ts";
import { optionalTime } from "./account-messages.ts";
import { accountInView, mayStillRead, signedInOf } from "./call.ts";
import { type TargetPorts, unhealthyTargets } from "./unhealthy-targets.ts";
import { readZone, toPointMessage, toRowMessage, toSumsMessage } from "./usage-messages.ts";

const { hour: HOUR_MS, day: DAY_MS } = STEP_MS;
/** Time whose average cost the forecast of a month continues. */
const TREND_MS = 7 * DAY_MS;
/** Time before its expiry from which a key is listed. */
const EXPIRY_MS = 14 * DAY_MS;
/** Share of its budget from which a key is listed. */
const BUDGET_SHARE = 0.8;
/** Keys of each kind. */
const MAX_KEYS = 10;
/** Time in which a request counts for the checklist. */
const RECENT_MS = 30 * DAY_MS;

/** Facts of the installation for the checklist. */
export interface InstallationFacts {
  readonly providerConnected: boolean;
  readonly addressSecured: boolean;
  readonly database: "sqlite" | "postgres";
}

/** Ports of the overview service. */
export interface OverviewServicePorts extends TargetPorts {
  readonly access: Pick<AccessContext, "clock" | "store">;
  readonly keys: Pick<KeyStore, "list">;
  readonly keyNotices: KeyNotices;
  readonly ledger: Pick<LedgerStore, "spending">;
  readonly usage: UsageStore;
  /** Limits of accounts without their own. */
  readonly accountLimits: () => Limits;
  readonly installation: () => InstallationFacts;
}

/** The state of an account, or of all for administrators, at a glance. */
export function createOverviewService(ports: OverviewServicePorts): ServiceImpl<typeof OverviewService> {
  const { access } = ports;
  return {
    async get({ accountId: asked, timeZone }, context) {
      const signedIn = signedInOf(context);
      const accountId = accountInView(signedIn, "usage.read", asked);
      const nowMs = access.clock.now();
      const view = { accountId, nowMs };
      const mayReadKeys = mayStillRead("keys.read", accountId)(signedIn);
      const mayConfigure = permitsEverywhere(signedIn, "configuration.read");
      const [spending, traffic, keys, checklist] = await Promise.all([
        readSpending(ports, { ...view, timeZone }),
        readTraffic(ports, view),
        mayReadKeys ? readKeyNotices(ports, view) : [],
        mayConfigure ? readChecklist(ports, nowMs) : undefined,
      ]);
      return {
        spending,
        traffic,
        keys,
        ...(checklist !== undefined && { checklist }),
        unhealthyTargets: mayConfigure ? unhealthyTargets(ports) : [],
      };
    },
  };
}

interface View {
  /** Undefined: all accounts. */
  readonly accountId: string | undefined;
  readonly nowMs: number;
}

async function readSpending(
  { usage, ledger, access, accountLimits }: OverviewServicePorts,
  { accountId, nowMs, timeZone }: View & { readonly timeZone: string },
): Promise<MessageInitShape<typeof SpendingOverviewSchema>> {
  const offsets = readZone(timeZone, { sinceMs: nowMs - DAY_MS, untilMs: nowMs }) ?? UTC;
  const month = monthOf(nowMs);
  const monthSpan = spanOfMonth(nowMs);
  const costOf = async (sinceMs: number): Promise<number> => {
    const { rows } = await usage.summarize({
      ...wholeSteps({ sinceMs, untilMs: nowMs + 1 }),
      accountId,
      by: "none",
      step: "all",
    });
    return totalOf(rows).costMicroUsd;
  };
  const spent = async (): Promise<number> => {
    if (accountId === undefined) return costOf(monthSpan.sinceMs);
    const [spending] = await ledger.spending([`account:${accountId}`], month);
    return spending?.spentMicroUsd ?? 0;
  };
  const [today, ofMonth, recent, account] = await Promise.all([
    costOf(dayStart(nowMs, offsets)),
    spent(),
    costOf(nowMs - TREND_MS),
    accountId === undefined ? undefined : access.store.find(accountId),
  ]);
  const budget = account && (account.limits.monthlyBudgetMicroUsd ?? accountLimits().monthlyBudgetMicroUsd);
  return {
    todayMicroUsd: BigInt(today),
    month,
    monthMicroUsd: BigInt(ofMonth),
    forecastMicroUsd: BigInt(Math.round(ofMonth + (recent / TREND_MS) * (monthSpan.untilMs - nowMs))),
    ...(budget !== undefined && { budgetMicroUsd: BigInt(budget) }),
  };
}

/** The calendar month (UTC) of a time. */
function spanOfMonth(nowMs: number): Span {
  const now = new Date(nowMs);
  const [year, month] = [now.getUTCFullYear(), now.getUTCMonth()];
  return { sinceMs: Date.UTC(year, month), untilMs: Date.UTC(year, month + 1) };
}

async function readTraffic(
  { usage }: OverviewServicePorts,
  { accountId, nowMs }: View,
): Promise<MessageInitShape<typeof TrafficOverviewSchema>> {
  const untilMs = Math.floor(nowMs / HOUR_MS + 1) * HOUR_MS;
  const span = { sinceMs: untilMs - DAY_MS, untilMs };
  const before = { sinceMs: span.sinceMs - DAY_MS, untilMs: span.sinceMs };
  const [hours, previous, latency] = await Promise.all([
    usage.summarize({ ...span, accountId, by: "none", step: "hour" }),
    usage.summarize({ ...before, accountId, by: "none", step: "hour" }),
    usage.latency({ ...span, accountId, step: "hour" }),
  ]);
  return {
    hours: hours.rows.map(toRowMessage),
    total: toSumsMessage(totalOf(hours.rows)),
    previous: toSumsMessage(totalOf(previous.rows)),
    previousHours: previous.rows.map(toRowMessage),
    latencyHours: latency.points.map(toPointMessage),
    ...(latency.overall !== undefined && { latency: toPointMessage(latency.overall) }),
    since: timestampFromMs(span.sinceMs),
    until: timestampFromMs(span.untilMs),
  };
}

interface Notice {
  readonly keyId: string;
  readonly name: string;
  readonly accountId: string;
  readonly expiresAtMs?: number;
  readonly spentMicroUsd?: number;
  readonly budgetMicroUsd?: number;
  readonly limitedRequests?: number;
}

/** Keys that expire soon, have spent most of their budget, or were refused for a limit in the last day; each once. */
async function readKeyNotices(
  { keyNotices, usage }: OverviewServicePorts,
  { accountId, nowMs }: View,
): Promise<MessageInitShape<typeof KeyNoticeSchema>[]> {
  const query = { accountId, nowMs, limit: MAX_KEYS };
  const day = wholeSteps({ sinceMs: nowMs - DAY_MS, untilMs: nowMs + 1 });
  const keyOwners = accountId === undefined ? undefined : [accountId];
  const refusedFor = (outcome: string) =>
    usage.summarize({ ...day, accountId, outcome, by: "key", step: "all", maxGroups: MAX_KEYS, keyOwners });
  const [expiring, spent, ...refused] = await Promise.all([
    keyNotices.expiring({ ...query, untilMs: nowMs + EXPIRY_MS }),
    keyNotices.nearBudget({ ...query, month: monthOf(nowMs), share: BUDGET_SHARE }),
    refusedFor("rate_limited"),
    refusedFor("budget_spent"),
  ]);
  const notices = new Map<string, Notice>();
  const note = (keyId: string, notice: Partial<Notice>): void =>
    void notices.set(keyId, { name: "", accountId: accountId ?? "", ...notices.get(keyId), ...notice, keyId });
  for (const { id, ...facts } of [...spent, ...expiring]) note(id, facts);
  for (const { group, name, sums } of refused.flatMap(({ rows }) => rows).filter(isOfKey)) {
    const limitedRequests = (notices.get(group)?.limitedRequests ?? 0) + sums.refused;
    note(group, { limitedRequests, ...(name !== undefined && { name }) });
  }
  return [...notices.values()].map(toNoticeMessage);
}

function toNoticeMessage(notice: Notice): MessageInitShape<typeof KeyNoticeSchema> {
  const { keyId, name, accountId, expiresAtMs, spentMicroUsd = 0, budgetMicroUsd = 0, limitedRequests = 0 } = notice;
  return {
    keyId,
    name,
    accountId,
    ...optionalTime("expireTime", expiresAtMs),
    monthSpentMicroUsd: BigInt(spentMicroUsd),
    budgetMicroUsd: BigInt(budgetMicroUsd),
    limitedRequests: BigInt(limitedRequests),
  };
}

function isOfKey({ group, sums }: { readonly group: string; readonly sums: UsageSums }): boolean {
  return group !== "" && group !== NO_CALLER && sums.refused > 0;
}

async function readChecklist(
  { keys, usage, installation }: OverviewServicePorts,
  nowMs: number,
): Promise<MessageInitShape<typeof SetupChecklistSchema>> {
  const span = wholeSteps({ sinceMs: nowMs - RECENT_MS, untilMs: nowMs + 1 });
  const [known, recent] = await Promise.all([
    keys.list(undefined, { limit: 1 }),
    usage.summarize({ ...span, by: "none", step: "all" }),
  ]);
  return { ...installation(), keyCreated: known.length > 0, requestMade: totalOf(recent.rows).completions > 0 };
}
