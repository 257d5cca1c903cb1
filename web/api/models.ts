import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { ModelService } from "../../gen/parley/console/v1/model_pb.js";
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
