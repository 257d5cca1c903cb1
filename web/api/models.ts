import { createClient } from "@connectrpc/connect";
import { keepPreviousData, queryOptions } from "@tanstack/react-query";
import { ModelService, TargetHistoryStep } from "../../gen/parley/console/v1/model_pb.js";
import { transport } from "./transport.ts";

const models = createClient(ModelService, transport);

/** Asks the provider of a model for one token. */
export const testModel = (modelId: string) => models.testModel({ modelId });

/** Available models in the order of the registry, with their health. */
export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: async ({ signal }) => (await models.list({}, { signal })).models,
  staleTime: 10_000,
});

/** Health of the upstream models, for administrators. Refetched every 10 seconds while the page is visible. */
export const upstreamsQuery = queryOptions({
  queryKey: ["upstreams"],
  queryFn: ({ signal }) => models.listUpstreams({}, { signal }),
  refetchInterval: 10_000,
});

/** Limit of targets of one request for their history. */
export const HISTORY_TARGETS = 100;

/** The provider and name of a target. */
export interface TargetNames {
  readonly provider: string;
  readonly name: string;
}

/**
 * Attempts of targets in the last 24 hours, and the circuit breakers of all processes, for administrators. Refetched every minute,
 * of a single target every 10 seconds: a history of many is some 100,000 rows.
 */
export function dayHistoryQuery(targets: readonly TargetNames[]) {
  const names = targets.map(({ provider, name }) => ({ provider, name }));
  return queryOptions({
    queryKey: ["target history", "day", names],
    queryFn: ({ signal }) => models.listTargetHistory({ targets: names }, { signal }),
    refetchInterval: targets.length === 1 ? 10_000 : 60_000,
    placeholderData: keepPreviousData,
  });
}

/** Attempts of a target on the last 30 days of the reader's time zone. Refetched every minute. */
export function monthHistoryQuery({ provider, name }: TargetNames) {
  const { timeZone } = Intl.DateTimeFormat().resolvedOptions();
  return queryOptions({
    queryKey: ["target history", "month", provider, name],
    queryFn: ({ signal }) =>
      models.listTargetHistory({ targets: [{ provider, name }], step: TargetHistoryStep.DAY, timeZone }, { signal }),
    staleTime: 60_000,
    refetchInterval: 60_000,
  });
}
