import { useState } from "react";
import { useQueries, useQuery } from "@tanstack/react-query";
import type { ListUpstreamsResponse } from "../../gen/parley/console/v1/model_pb.js";
import { dayHistoryQuery, HISTORY_TARGETS, upstreamsQuery } from "../api/models.ts";
import { Unavailable } from "../components/alert.tsx";
import { CheckField, TextField } from "../components/field.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { sortRows, useSorting } from "../components/sorting.ts";
import { Table } from "../components/table.tsx";
import { healthOf } from "../format/health.ts";
import { hasWords } from "../format/search.ts";
import { formatTime } from "../format/time.ts";
import { Administration } from "./administration.tsx";
import { SORT_VALUES, UPSTREAM_COLUMNS, UpstreamHead, UpstreamRow } from "./upstream-row.tsx";

/** Number of targets shown initially, and added per click on "Show more". */
const SHOWN = 50;

/** Page of provider health: the present as measured by the process that handles the request, the past by all processes. */
export function Providers() {
  return (
    <Administration
      title="Provider health"
      description="Health, latency and recent errors of each target: a provider’s model that requests are sent to."
    >
      {() => <Health />}
    </Administration>
  );
}

function Health() {
  const health = useQuery(upstreamsQuery);
  if (health.isPending) return <Loading what="the providers" />;
  if (health.isLoadingError) return <Unavailable error={health.error} onRetry={() => void health.refetch()} />;
  if (health.data.upstreams.length === 0) {
    return <Empty title="No providers">No models are configured.</Empty>;
  }
  return <Upstreams {...health.data} />;
}

function Upstreams({ upstreams, since, time }: Pick<ListUpstreamsResponse, "upstreams" | "since" | "time">) {
  const [searchText, setSearchText] = useState("");
  const [onlyUnhealthy, setOnlyUnhealthy] = useState(false);
  const [sorting, setSorting] = useSorting(UPSTREAM_COLUMNS);
  const unhealthy = upstreams.filter((upstream) => healthOf(upstream) !== "healthy");
  const found = (onlyUnhealthy ? unhealthy : upstreams).filter(({ provider, name, modelIds }) =>
    hasWords(`${provider} ${name} ${modelIds.join(" ")}`, searchText),
  );
  const shown = useShown(sortRows(found, SORT_VALUES, sorting), SHOWN);
  const histories = useQueries({ queries: chunksOf(shown.visible).map((targets) => dayHistoryQuery(targets)) });
  return (
    <>
      <div className="mb-4 flex flex-wrap items-end gap-x-6 gap-y-2">
        <div className="w-full sm:w-80">
          <TextField
            label="Find a target"
            type="search"
            autoComplete="off"
            value={searchText}
            onChange={(event) => setSearchText(event.target.value)}
          />
        </div>
        <div className="sm:pb-0.5">
          <CheckField
            label={`Unhealthy only (${unhealthy.length})`}
            checked={onlyUnhealthy}
            onChange={(event) => setOnlyUnhealthy(event.target.checked)}
          />
        </div>
        <p className="text-sm text-muted sm:ml-auto sm:pb-2.5">
          Last 24 hours: all processes. Figures: this process{since && ` since ${formatTime(since)}`}, at most 15 min.
          Updated {time && formatTime(time)}.
        </p>
      </div>
      <p role="status" className={found.length === 0 ? "py-8 text-muted" : "sr-only"}>
        {describeFound(found.length, upstreams.length, searchText)}
      </p>
      {found.length > 0 && (
        <Table label="Targets" head={<UpstreamHead sorting={sorting} onSort={setSorting} />}>
          {shown.visible.map((upstream, index) => (
            <UpstreamRow
              key={`${upstream.provider}/${upstream.name}`}
              upstream={upstream}
              history={histories[Math.floor(index / HISTORY_TARGETS)]?.data}
            />
          ))}
        </Table>
      )}
      <More {...shown} />
    </>
  );
}

function describeFound(found: number, all: number, searchText: string): string {
  if (found > 0) return `${found} of ${all} targets`;
  return searchText.trim() === "" ? "All targets are healthy." : "No targets match.";
}

function chunksOf<T>(items: readonly T[]): T[][] {
  return [...Map.groupBy(items.entries(), ([index]) => Math.floor(index / HISTORY_TARGETS)).values()].map((chunk) =>
    chunk.map(([, item]) => item),
  );
}
