import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type UsageFilter as FilterMessage,
  type GetLatencyResponseSchema,
  type LatencyPointSchema,
  UsageStep as StepMessage,
  type SummarizeUsageResponseSchema,
  UsageGrouping,
  type UsageRowSchema,
  type UsageService,
  type UsageSumsSchema,
} from "../../../gen/parley/console/v1/usage_pb.js";
import type { SignedIn } from "../../access/sessions.ts";
import { type Clock, monthOf } from "../../core/clock.ts";
import { invalidField } from "../../core/failure.ts";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import {
  type Latency,
  type LatencyPoint,
  type Span,
  STEP_MS,
  totalOf,
  type UsageFilter,
  type UsageGroup,
  type UsageRow,
  type UsageStep,
  type UsageStore,
  type UsageSummary,
  type UsageSums,
  wholeHours,
} from "../../ledger/usage-store.ts";
import { optionalTime } from "./account-messages.ts";
import { accountInView, readId, signedInOf } from "./call.ts";
import { readTime } from "./list-page.ts";

const DEFAULT_SPAN_MS = 30 * STEP_MS.day;
const MAX_SPAN_MS = 366 * STEP_MS.day;
const MAX_STEPS = 1_000;
const MAX_NAME_LENGTH = 500;
/** Default and limit of groups; with time steps each has many rows. */
const GROUP_COUNTS = { plain: [100, 1_000], stepped: [10, 50] } as const;

const GROUPS: Readonly<Record<number, UsageGroup>> = {
  [UsageGrouping.UNSPECIFIED]: "none",
  [UsageGrouping.MODEL]: "model",
  [UsageGrouping.KEY]: "key",
  [UsageGrouping.ACCOUNT]: "account",
  [UsageGrouping.OUTCOME]: "outcome",
} satisfies Record<UsageGrouping, UsageGroup>;

const STEPS: Readonly<Record<number, UsageStep>> = {
  [StepMessage.UNSPECIFIED]: "all",
  [StepMessage.HOUR]: "hour",
  [StepMessage.DAY]: "day",
} satisfies Record<StepMessage, UsageStep>;

/** Ports of the usage service. */
export interface UsageServicePorts {
  readonly usage: UsageStore;
  readonly ledger: Pick<LedgerStore, "spending">;
  readonly clock: Clock;
}

/** Usage from the ledger: of the own account, of all for administrators. */
export function createUsageService({ usage, ledger, clock }: UsageServicePorts): ServiceImpl<typeof UsageService> {
  return {
    async summarize({ filter: asked, by: grouping, step: steps, maxGroups }, context) {
      const by = GROUPS[grouping];
      if (by === undefined) throw invalidField("by", "is not one of UsageGrouping");
      const step = readStep(steps);
      const filter = readFilter(asked, signedInOf(context), clock.now());
      checkSteps(filter, step);
      const query = { ...filter, by, step, maxGroups: readGroupCount(maxGroups, step) };
      return toSummaryMessage(await usage.summarize(query), filter);
    },

    async getLatency({ filter: asked, step: steps }, context) {
      const step = readStep(steps);
      const filter = readFilter(asked, signedInOf(context), clock.now());
      checkSteps(filter, step);
      return toLatencyMessage(await usage.latency({ ...filter, step }));
    },

    async getSpending({ accountId }, context) {
      const signedIn = signedInOf(context);
      const id = accountInView(signedIn, accountId) ?? signedIn.account.id;
      const month = monthOf(clock.now());
      const [spending] = await ledger.spending([`account:${id}`], month);
      return { month, spentMicroUsd: BigInt(spending?.spentMicroUsd ?? 0) };
    },
  };
}

/** Reads a filter of completions within the caller's permissions. Throws `invalid_request` and `permission_denied`. */
function readFilter(asked: FilterMessage | undefined, signedIn: SignedIn, nowMs: number): UsageFilter {
  const untilMs = asked?.until === undefined ? nowMs : readTime("filter.until", asked.until);
  const sinceMs = asked?.since === undefined ? untilMs - DEFAULT_SPAN_MS : readTime("filter.since", asked.since);
  if (sinceMs > untilMs || untilMs - sinceMs > MAX_SPAN_MS) {
    throw invalidField("filter.since", "must be before until, and at most 366 days");
  }
  return {
    ...wholeHours({ sinceMs, untilMs }),
    accountId: accountInView(signedIn, asked?.accountId ?? ""),
    keyId: readId("filter.key_id", asked?.keyId ?? ""),
    model: readName("filter.model", asked?.model ?? ""),
    outcome: readName("filter.outcome", asked?.outcome ?? ""),
  };
}

/** A text for comparison with a column: PostgreSQL accepts no NUL. */
function readName(field: string, text: string): string | undefined {
  if (text === "") return undefined;
  if (text.length <= MAX_NAME_LENGTH && !text.includes("\0")) return text;
  throw invalidField(field, `must have at most ${MAX_NAME_LENGTH} characters, and none that is NUL`);
}

function readStep(steps: StepMessage): UsageStep {
  const step = STEPS[steps];
  if (step === undefined) throw invalidField("step", "is not one of UsageStep");
  return step;
}

function checkSteps({ sinceMs, untilMs }: UsageFilter, step: UsageStep): void {
  if (step === "all" || (untilMs - sinceMs) / STEP_MS[step] <= MAX_STEPS) return;
  throw invalidField("step", `must be longer for this time: there are at most ${MAX_STEPS}`);
}

function readGroupCount(count: number, step: UsageStep): number {
  const [usual, max] = step === "all" ? GROUP_COUNTS.plain : GROUP_COUNTS.stepped;
  if (count >= 0 && count <= max) return count === 0 ? usual : count;
  throw invalidField("max_groups", `must be 1 to ${max}`);
}

/** Sums of a report with their total. */
function toSummaryMessage(
  { rows, isChosenByDay }: UsageSummary,
  { sinceMs, untilMs }: Span,
): MessageInitShape<typeof SummarizeUsageResponseSchema> {
  return {
    rows: rows.map(toRowMessage),
    total: toSumsMessage(totalOf(rows)),
    since: timestampFromMs(sinceMs),
    until: timestampFromMs(untilMs),
    chosenByDay: isChosenByDay,
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

function toRowMessage({ group, name = "", stepMs, sums }: UsageRow): MessageInitShape<typeof UsageRowSchema> {
  return { group, name, ...optionalTime("stepTime", stepMs), sums: toSumsMessage(sums) };
}

function toSumsMessage(sums: UsageSums): MessageInitShape<typeof UsageSumsSchema> {
  return {
    completions: BigInt(sums.completions),
    failed: BigInt(sums.failed),
    partial: BigInt(sums.partial),
    estimated: BigInt(sums.estimated),
    promptTokens: BigInt(sums.promptTokens),
    cachedTokens: BigInt(sums.cachedTokens),
    completionTokens: BigInt(sums.completionTokens),
    reasoningTokens: BigInt(sums.reasoningTokens),
    imageTokens: BigInt(sums.imageTokens),
    costMicroUsd: BigInt(sums.costMicroUsd),
    ownCostMicroUsd: BigInt(sums.ownCostMicroUsd),
  };
}

function toPointMessage({
  stepMs,
  served,
  durationMs,
  firstContentMs,
}: LatencyPoint): MessageInitShape<typeof LatencyPointSchema> {
  return {
    ...optionalTime("stepTime", stepMs),
    served: BigInt(served),
    durationMs,
    ...(firstContentMs !== undefined && { firstContentMs }),
  };
}
