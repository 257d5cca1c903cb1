import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { SettingsService } from "../../gen/parley/console/v1/settings_pb.js";
import { transport } from "./transport.ts";

const settings = createClient(SettingsService, transport);

/** What this installation has, in short: models, sign-up mode, version. `modelsQuery` says what the models can do. */
export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => settings.get({}, { signal }),
  staleTime: 60_000,
});

/** The configuration in force, for administrators. */
export const configurationQuery = queryOptions({
  queryKey: ["configuration"],
  queryFn: ({ signal }) => settings.getConfiguration({}, { signal }),
  staleTime: 60_000,
});
