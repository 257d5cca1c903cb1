import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { ModelService } from "../../gen/parley/console/v1/model_pb.js";
import { transport } from "./transport.ts";

const models = createClient(ModelService, transport);

/** The models that can be asked for, in the order of the registry, with how they are doing. */
export const modelsQuery = queryOptions({
  queryKey: ["models"],
  queryFn: async ({ signal }) => (await models.list({}, { signal })).models,
  staleTime: 10_000,
});

/** How the upstream models are doing, for administrators: asked again every ten seconds while it is looked at. */
export const upstreamsQuery = queryOptions({
  queryKey: ["upstreams"],
  queryFn: ({ signal }) => models.listUpstreams({}, { signal }),
  refetchInterval: 10_000,
});
