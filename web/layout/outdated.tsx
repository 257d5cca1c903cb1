import { useSyncExternalStore } from "react";
import type { Query } from "@tanstack/react-query";
import { isUnreachable } from "../api/failure.ts";
import { queryClient } from "../api/query-client.ts";
import { useReconnect } from "../api/reconnect.ts";

const REASONS = {
  current: "",
  unreachable: "Can’t reach Parley. Retrying… ",
  failed: "Could not refresh this page. Retrying… ",
} as const;

/** Shows a warning while displayed data could not be refreshed. Refetches when Parley is reachable again. */
export function Outdated() {
  const state = useSyncExternalStore(subscribe, readState);
  const isOutdated = state !== "current";
  useReconnect(
    isOutdated,
    () => void queryClient.refetchQueries({ type: "active", predicate: isStale }, { cancelRefetch: false }),
  );
  return (
    <p role="status" className={isOutdated ? "mb-5 rounded-lg bg-warn-soft px-4 py-2.5 text-sm text-warn" : "sr-only"}>
      {isOutdated && `${REASONS[state]}The data may be out of date.`}
    </p>
  );
}

function subscribe(changed: () => void): () => void {
  return queryClient.getQueryCache().subscribe(changed);
}

function readState(): keyof typeof REASONS {
  const stale = queryClient
    .getQueryCache()
    .getAll()
    .filter((query) => query.isActive() && isStale(query));
  if (stale.length === 0) return "current";
  return stale.some(({ state }) => isUnreachable(state.error)) ? "unreachable" : "failed";
}

/** Whether a query failed after earlier data was loaded. */
function isStale({ state }: Query): boolean {
  return state.status === "error" && state.data !== undefined;
}
