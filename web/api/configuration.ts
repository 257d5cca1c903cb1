import { createClient } from "@connectrpc/connect";
import { infiniteQueryOptions, queryOptions } from "@tanstack/react-query";
import {
  ConfigurationService,
  type ListConfigurationVersionsResponse,
} from "../../gen/parley/console/v1/configuration_pb.js";
import { queryClient } from "./query-client.ts";
import { transport } from "./transport.ts";

export const configuration = createClient(ConfigurationService, transport);

/** All providers, models, aliases and settings that can be stored, for administrators. */
export const entriesQuery = queryOptions({
  queryKey: ["configuration", "entries"],
  queryFn: ({ signal }) => configuration.listEntries({}, { signal }),
});

/** Presets: services whose settings Parley knows. */
export const presetsQuery = queryOptions({
  queryKey: ["presets"],
  queryFn: async ({ signal }) => (await configuration.listPresets({}, { signal })).presets,
  staleTime: Infinity,
});

const PAGE_SIZE = 20;

/** The versions, newest first, with pagination. */
export const versionsQuery = infiniteQueryOptions({
  queryKey: ["configuration", "versions"],
  queryFn: ({ signal, pageParam }) =>
    configuration.listVersions({ limit: PAGE_SIZE, beforeVersion: pageParam }, { signal }),
  initialPageParam: 0n,
  getNextPageParam: ({ versions }: ListConfigurationVersionsResponse) =>
    versions.length < PAGE_SIZE ? undefined : versions.at(-1)?.version,
});

/** The changes of a version. */
export function versionQuery(version: bigint) {
  return queryOptions({
    queryKey: ["configuration", "version", String(version)],
    queryFn: ({ signal }) => configuration.getVersion({ version }, { signal }),
    staleTime: Infinity,
  });
}

/** Refetches the configuration after a change, and what depends on it. Returns the latest version. */
export async function refreshConfiguration(): Promise<bigint> {
  await Promise.all([
    queryClient.invalidateQueries({ queryKey: ["configuration"] }),
    queryClient.invalidateQueries({ queryKey: ["models"] }),
    queryClient.invalidateQueries({ queryKey: ["upstreams"] }),
  ]);
  return (await queryClient.fetchQuery(entriesQuery)).latestVersion;
}
