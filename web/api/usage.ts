import { createClient } from "@connectrpc/connect";
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { type UsageGrouping, UsageService, type UsageStep } from "../../gen/parley/console/v1/usage_pb.js";
import { transport } from "./transport.ts";

const usage = createClient(UsageService, transport);

/** So many groups have a colour of their own in a chart. */
export const CHART_GROUPS = 6;

/** Which completions; empty texts do not narrow. */
export interface UsageFilter {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly outcome: string;
}

/** What one's own account has spent in this calendar month. */
export const spendingQuery = queryOptions({
  queryKey: ["usage", "spending"],
  queryFn: ({ signal }) => usage.getSpending({}, { signal }),
});

/** Sums as they are asked for. */
export interface UsagePieces {
  readonly filter: UsageFilter;
  readonly by: UsageGrouping;
  readonly step: UsageStep;
  /** How much earlier the time is that it is compared with. */
  readonly lengthMs: number;
}

/**
 * The sums of a time: by group, by group and step, and of the same length of time before. Says what was asked for, which
 * may be something else by now: what was shown before stays until the next answer.
 */
export function usageQuery<P extends UsagePieces>(asked: P) {
  return queryOptions({
    queryKey: ["usage", "sums", asked],
    async queryFn({ signal }) {
      const { filter, by, step } = asked;
      const before = { ...filter, sinceMs: filter.sinceMs - asked.lengthMs, untilMs: filter.untilMs - asked.lengthMs };
      const [groups, steps, previous] = await Promise.all([
        usage.summarize({ filter: toMessage(filter), by }, { signal }),
        usage.summarize({ filter: toMessage(filter), by, step, maxGroups: CHART_GROUPS }, { signal }),
        usage.summarize({ filter: toMessage(before) }, { signal }),
      ]);
      return { asked, groups: groups.rows, total: groups.total, steps: steps.rows, previous: previous.total };
    },
    placeholderData: keepPreviousData,
  });
}

/** How long the requests of a time took; says what was asked for, as with the sums. */
export function latencyQuery(filter: UsageFilter, step: UsageStep) {
  return queryOptions({
    queryKey: ["usage", "latency", filter, step],
    queryFn: async ({ signal }) => ({
      filter,
      step,
      latency: await usage.getLatency({ filter: toMessage(filter), step }, { signal }),
    }),
    placeholderData: keepPreviousData,
  });
}

function toMessage({ sinceMs, untilMs, ...rest }: UsageFilter) {
  return { ...rest, since: timestampFromMs(sinceMs), until: timestampFromMs(untilMs) };
}
