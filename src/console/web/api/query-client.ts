import { QueryClient } from "@tanstack/react-query";
import { isTransient } from "./failure.ts";

/** What the pages know. Asked again when a page comes back to the front; failures that may pass are tried twice more. */
export const queryClient = new QueryClient({
  defaultOptions: {
    queries: {
      staleTime: 5_000,
      retry: (failures, error) => failures < 2 && isTransient(error),
    },
  },
});
