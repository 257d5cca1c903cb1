import { createClient } from "@connectrpc/connect";
import { queryOptions } from "@tanstack/react-query";
import { SettingsService } from "../../../../gen/parley/console/v1/settings_pb.js";
import { transport } from "./transport.ts";

const settings = createClient(SettingsService, transport);

/** What this installation has: models, sign-up mode, version. */
export const settingsQuery = queryOptions({
  queryKey: ["settings"],
  queryFn: ({ signal }) => settings.get({}, { signal }),
  staleTime: 60_000,
});
