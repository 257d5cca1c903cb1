import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import type { ListUpstreamsResponse } from "../../gen/parley/console/v1/model_pb.js";
import { upstreamsQuery } from "../api/models.ts";
import { Unavailable } from "../components/alert.tsx";
import { CheckField } from "../components/field.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { healthOf } from "../format/health.ts";
import { formatTime } from "../format/time.ts";
import { Administration } from "./administration.tsx";
import { UpstreamItem } from "./upstream-item.tsx";

/** Number of upstream models shown initially, and added per click on "Show more". */
const SHOWN = 50;

/** Page of provider health, as measured by the process that handles the request. */
export function Providers() {
  return (
    <Administration title="Provider health" description="Health, latency and recent errors of each upstream model.">
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
  const [onlyUnhealthy, setOnlyUnhealthy] = useState(false);
  const unhealthy = upstreams.filter((upstream) => healthOf(upstream) !== "healthy");
  const shown = useShown(onlyUnhealthy ? unhealthy : upstreams, SHOWN);
  return (
    <>
      <div className="mb-5 flex flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <p className="text-sm text-muted">
          This process only{since && `, since ${formatTime(since)}`} (at most 15 minutes). Updated{" "}
          {time && formatTime(time)}; refreshes every 10 s.
        </p>
        <CheckField
          label={`Unhealthy only (${unhealthy.length})`}
          checked={onlyUnhealthy}
          onChange={(event) => setOnlyUnhealthy(event.target.checked)}
        />
      </div>
      {shown.visible.length === 0 ? (
        <p role="status" className="py-8 text-muted">
          All upstream models are healthy.
        </p>
      ) : (
        <ul aria-label="Upstream models" className="space-y-3">
          {shown.visible.map((upstream) => (
            <UpstreamItem key={`${upstream.provider}/${upstream.name}`} upstream={upstream} />
          ))}
        </ul>
      )}
      <More {...shown} />
    </>
  );
}
