import { createClient } from "@connectrpc/connect";
import { keepPreviousData, queryOptions, skipToken } from "@tanstack/react-query";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import {
  type UsageGrain,
  type UsageGrouping,
  type UsageRow,
  UsageService,
  type UsageStep,
  type UsageSums,
} from "../../gen/parley/console/v1/usage_pb.js";
import type { AttributionField } from "../format/attribution.ts";
import type { LogFilter } from "./requests.ts";
import { transport } from "./transport.ts";

const usage = createClient(UsageService, transport);

/** Number of groups with their own colour in a chart. */
const CHART_GROUPS = 6;

/** Time zone of the reader, for days. */
const timeZone = Intl.DateTimeFormat().resolvedOptions().timeZone;

/** Filter of requests. Empty strings match all. */
export interface UsageFilter extends Readonly<Record<AttributionField, string>> {
  readonly sinceMs: number;
  readonly untilMs: number;
  readonly grain: UsageGrain;
  readonly accountId: string;
  readonly keyId: string;
  readonly model: string;
  readonly outcome: string;
}

/** Spending of the signed-in account in this calendar month. */
export const spendingQuery = queryOptions({
  queryKey: ["usage", "spending"],
  queryFn: ({ signal }) => usage.getSpending({}, { signal }),
});

/** Parameters of a usage query. */
export interface UsagePieces {
  readonly filter: UsageFilter;
  readonly by: UsageGrouping;
  readonly step: { readonly message: UsageStep };
  /** The period to compare with; undefined without one. */
  readonly previous: Pick<UsageFilter, "sinceMs" | "untilMs"> | undefined;
}

/** Sums of the period before. */
export interface PreviousSums {
  readonly span: Pick<UsageFilter, "sinceMs" | "untilMs">;
  /** By step. */
  readonly rows: readonly UsageRow[];
  readonly total: UsageSums | undefined;
}

/** The total of some requests. */
export function sumQuery(filter: LogFilter & { readonly sinceMs: number }) {
  const { sinceMs, untilMs, ...rest } = filter;
  const until = untilMs === undefined ? {} : { until: timestampFromMs(untilMs) };
  return queryOptions({
    queryKey: ["usage", "sum", filter],
    queryFn: ({ signal }) =>
      usage.summarize({ filter: { ...rest, since: timestampFromMs(sinceMs), ...until } }, { signal }),
    refetchInterval: 30_000,
  });
}

/**
 * Sums of a period: by group, and by group and step. The result contains its parameters, because previous data stays
 * visible until the next response.
 */
export function usageQuery<P extends UsagePieces>(asked: P) {
  return queryOptions({
    queryKey: ["usage", "sums", asked],
    async queryFn({ signal }) {
      const { filter, by, step } = asked;
      const stepped = { by, step: step.message, timeZone, maxGroups: CHART_GROUPS };
      const [groups, steps] = await Promise.all([
        usage.summarize({ filter: toMessage(filter), by }, { signal }),
        usage.summarize({ filter: toMessage(filter), ...stepped }, { signal }),
      ]);
      return {
        asked,
        groups: groups.rows,
        isChosenByDay: groups.chosenByDay,
        total: groups.total,
        cutSince: groups.cutSince,
        steps: steps.rows,
      };
    },
    placeholderData: keepPreviousData,
  });
}

/**
 * Sums of the period before, in all and by step. It takes the parameters of a result of `usageQuery`, so that the page
 * does not wait for it; undefined: it is not asked. When only the time goes on, the sums before stay visible.
 */
export function previousQuery(asked: UsagePieces | undefined) {
  const { sinceMs: _since, untilMs: _until, ...what } = asked?.filter ?? {};
  const same = JSON.stringify([what, asked?.step]);
  const span = asked?.previous;
  return queryOptions({
    queryKey: ["usage", "previous", same, span],
    queryFn:
      asked === undefined || span === undefined
        ? skipToken
        : async ({ signal }): Promise<PreviousSums> => {
            const filter = toMessage({ ...asked.filter, ...span });
            const { rows, total } = await usage.summarize({ filter, step: asked.step.message, timeZone }, { signal });
            return { span, rows, total };
          },
    placeholderData: (known, query) => (query?.queryKey[2] === same ? known : undefined),
  });
}

/** Latency of the requests of a period. The result contains its parameters, as with the sums. */
export function latencyQuery<S extends UsagePieces["step"]>(filter: UsageFilter, step: S) {
  return queryOptions({
    queryKey: ["usage", "latency", filter, step],
    queryFn: async ({ signal }) => ({
      filter,
      step,
      latency: await usage.getLatency({ filter: toMessage(filter), step: step.message, timeZone }, { signal }),
    }),
    placeholderData: keepPreviousData,
  });
}

function toMessage({ sinceMs, untilMs, ...rest }: UsageFilter) {
  return { ...rest, since: timestampFromMs(sinceMs), until: timestampFromMs(untilMs) };
}
