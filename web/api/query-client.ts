import { QueryClient } from "@tanstack/react-query";
import { isTransient } from "./failure.ts";

/**
 * What the pages know. Asked again when a page comes back to the front; failures that may pass are tried twice more. What the
 * browser thinks of the network does not matter: the gateway may be on the same machine, and a call that waits for a network
 * would say neither that it works nor that it fails.
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
