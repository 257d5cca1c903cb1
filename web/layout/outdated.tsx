import { useSyncExternalStore } from "react";
import { queryClient } from "../api/query-client.ts";

/** Says so while something that is shown could not be asked for again. */
export function Outdated() {
  const isOutdated = useSyncExternalStore(subscribe, hasOutdated);
  return (
    <p role="status" className={isOutdated ? "mb-5 rounded-lg bg-warn-soft px-4 py-2.5 text-sm text-warn" : "sr-only"}>
      {isOutdated && "Parley does not answer at the moment: what is shown may be out of date."}
    </p>
  );
}

function subscribe(changed: () => void): () => void {
  return queryClient.getQueryCache().subscribe(changed);
}

function hasOutdated(): boolean {
  const shown = queryClient
    .getQueryCache()
    .getAll()
    .filter((query) => query.isActive());
  return shown.some(({ state }) => state.status === "error" && state.data !== undefined);
}
