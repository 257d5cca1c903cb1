import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type UsageFilter as FilterMessage,
  type GetLatencyResponseSchema,
  UsageGrain as GrainMessage,
  UsageStep as StepMessage,
  type SummarizeUsageResponseSchema,
  UsageGrouping,
  type UsageService,
} from "../../../gen/parley/console/v1/usage_pb.js";
import { accountsWith } from "../../access/permissions.ts";
import type { SignedIn } from "../../access/sessions.ts";
import { type Clock, monthOf } from "../../core/clock.ts";
import { invalidField } from "../../core/failure.ts";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import {
  type Latency,
  MINUTES_KEPT_MS,
  type Span,
  STEP_MS,
  type UsageFilter,
  type UsageGrain,
  type UsageGroup,
  type UsageStep,
  type UsageStore,
  type UsageSummary,
  wholeSteps,
} from "../../ledger/usage-store.ts";
import { optionalTime } from "./account-messages.ts";
import { accountInView, accountToUse, readKeyFilter, signedInOf } from "./call.ts";
import { readTime } from "./list-page.ts";
import { readAttributionFilter, readName } from "./request-filter.ts";
import { readZone, toPointMessage, toRowMessage, toSumsMessage } from "./usage-messages.ts";

const DEFAULT_SPAN_MS = 30 * STEP_MS.day;
const MAX_SPAN_MS = 366 * STEP_MS.day;
const MAX_STEPS = 1_000;
/** Default and limit of groups; with time steps each has many rows. */
const GROUP_COUNTS = { plain: [100, 1_000], stepped: [10, 50] } as const;

const GROUPS: Readonly<Record<number, UsageGroup>> = {
  [UsageGrouping.UNSPECIFIED]: "none",
  [UsageGrouping.MODEL]: "model",
  [UsageGrouping.KEY]: "key",
  [UsageGrouping.ACCOUNT]: "account",
  [UsageGrouping.OUTCOME]: "outcome",
  [UsageGrouping.TEAM]: "team",
  [UsageGrouping.END_USER]: "endUser",
  [UsageGrouping.SESSION]: "session",
  [UsageGrouping.AGENT]: "agent",
  [UsageGrouping.TAG]: "tag",
} satisfies Record<UsageGrouping, UsageGroup>;

const STEPS: Readonly<Record<number, UsageStep>> = {
  [StepMessage.UNSPECIFIED]: "all",
  [StepMessage.HOUR]: "hour",
  [StepMessage.DAY]: "day",
  [StepMessage.MINUTE]: "minute",
  [StepMessage.FIVE_MINUTES]: "five_minutes",
} satisfies Record<StepMessage, UsageStep>;

const GRAINS: Readonly<Record<number, UsageGrain>> = {
  [GrainMessage.UNSPECIFIED]: "hour",
  [GrainMessage.MINUTE]: "minute",
} satisfies Record<GrainMessage, UsageGrain>;

/** Ports of the usage service. */
export interface UsageServicePorts {
  readonly usage: UsageStore;
  readonly ledger: Pick<LedgerStore, "spending">;
  readonly clock: Clock;
}

/** Usage of requests: of the own account, of all for administrators. */
export function createUsageService({ usage, ledger, clock }: UsageServicePorts): ServiceImpl<typeof UsageService> {
  return {
    async summarize({ filter: asked, by: grouping, step: steps, maxGroups, timeZone }, context) {
      const by = GROUPS[grouping];
      if (by === undefined) throw invalidField("by", "is not one of UsageGrouping");
      const signedIn = signedInOf(context);
      const filter = readFilter(asked, signedIn, clock.now());
      const step = readStep(steps, filter);
      const offsets = readZone(timeZone, filter);
      const keyOwners = accountsWith(signedIn, "usage.read");
      const query = { ...filter, by, step, offsets, maxGroups: readGroupCount(maxGroups, step), keyOwners };
      return toSummaryMessage(await usage.summarize(query), filter);
    },

    async getLatency({ filter: asked, step: steps, timeZone }, context) {
      const filter = readFilter(asked, signedInOf(context), clock.now());
      const step = readStep(steps, filter);
      return toLatencyMessage(await usage.latency({ ...filter, step, offsets: readZone(timeZone, filter) }));
    },

    async getSpending({ accountId }, context) {
      const id = accountToUse(signedInOf(context), "usage.read", accountId);
      const month = monthOf(clock.now());
      const [spending] = await ledger.spending([`account:${id}`], month);
      return { month, spentMicroUsd: BigInt(spending?.spentMicroUsd ?? 0) };
    },
  };
}

type Filter = UsageFilter & { readonly grain: UsageGrain };

/** Reads a filter of requests within the caller's permissions. Throws `invalid_request` and `permission_denied`. */
function readFilter(asked: FilterMessage | undefined, signedIn: SignedIn, nowMs: number): Filter {
  const untilMs = asked?.until === undefined ? nowMs : readTime("filter.until", asked.until);
  const sinceMs = asked?.since === undefined ? untilMs - DEFAULT_SPAN_MS : readTime("filter.since", asked.since);
  if (sinceMs > untilMs || untilMs - sinceMs > MAX_SPAN_MS) {
    throw invalidField("filter.since", "must be before until, and at most 366 days");
  }
  const grain = GRAINS[asked?.grain ?? GrainMessage.UNSPECIFIED];
  if (grain === undefined) throw invalidField("filter.grain", "is not one of UsageGrain");
  if (grain === "minute" && sinceMs < nowMs - MINUTES_KEPT_MS)
    throw invalidField("filter.since", "must be within the last 48 hours for sums of minutes");
  return {
    ...wholeSteps({ sinceMs, untilMs }, grain),
    grain,
    accountId: accountInView(signedIn, "usage.read", asked?.accountId ?? ""),
    keyId: readKeyFilter(asked?.keyId ?? ""),
    model: readName("filter.model", asked?.model ?? ""),
    outcome: readName("filter.outcome", asked?.outcome ?? ""),
    ...readAttributionFilter(asked),
  };
}

function readStep(steps: StepMessage, { sinceMs, untilMs, grain }: Filter): UsageStep {
  const step = STEPS[steps];
  if (step === undefined) throw invalidField("step", "is not one of UsageStep");
  if (step === "all") return step;
  if (STEP_MS[step] < STEP_MS[grain]) throw invalidField("step", "needs the grain of minutes");
  if ((untilMs - sinceMs) / STEP_MS[step] <= MAX_STEPS) return step;
  throw invalidField("step", `must be longer for this time: there are at most ${MAX_STEPS}`);
}

function readGroupCount(count: number, step: UsageStep): number {
  const [usual, max] = step === "all" ? GROUP_COUNTS.plain : GROUP_COUNTS.stepped;
  if (count >= 0 && count <= max) return count === 0 ? usual : count;
  throw invalidField("max_groups", `must be 1 to ${max}`);
}

/** Sums of a report with their total. */
function toSummaryMessage(
  { rows, total, isChosenByDay, cutSinceMs }: UsageSummary,
  { sinceMs, untilMs }: Span,
): MessageInitShape<typeof SummarizeUsageResponseSchema> {
  return {
    rows: rows.map(toRowMessage),
    total: toSumsMessage(total),
    since: timestampFromMs(sinceMs),
    until: timestampFromMs(untilMs),
    chosenByDay: isChosenByDay,
    ...optionalTime("cutSince", cutSinceMs),
  };
}

/** Durations of completions. */
function toLatencyMessage({ overall, points, sinceMs }: Latency): MessageInitShape<typeof GetLatencyResponseSchema> {
  return {
    ...(overall !== undefined && { overall: toPointMessage(overall) }),
    points: points.map(toPointMessage),
    ...optionalTime("since", sinceMs),
  };
}
