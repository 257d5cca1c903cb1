import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { SettingsService } from "../../gen/parley/console/v1/settings_pb.js";
import { transport } from "./transport.ts";

const settings = createClient(SettingsService, transport);

/** Summary of the installation: models, sign-up mode, version. `modelsQuery` has the capabilities of the models. */
export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => settings.get({}, { signal }),
  staleTime: 60_000,
});

/** The active configuration, for administrators. */
export const configurationQuery = queryOptions({
  queryKey: ["configuration"],
  queryFn: ({ signal }) => settings.getConfiguration({}, { signal }),
  refetchInterval: 10_000,
});
