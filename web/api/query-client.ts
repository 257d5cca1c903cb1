import { QueryClient } from "@tanstack/react-query";
import { isTransient } from "./failure.ts";

/**
 * Cache of query results. Active queries are refetched on window focus; transient failures are retried twice.
 * `networkMode: "always"` ignores the browser's online state: the gateway may run on the same machine, and a paused
 * call would report neither success nor failure.
 */
export const queryClient = new QueryClient({
  defaultOptions: {
    mutations: { networkMode: "always" },
    queries: {
      networkMode: "always",
      staleTime: 5_000,
      retry: (failures, error) => failures < 2 && isTransient(error),
    },
  },
});
