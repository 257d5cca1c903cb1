import { useState } from "react";
import { useQuery } from "@tanstack/react-query";
import { BreakerState, type ListUpstreamsResponse, type Upstream } from "../../gen/parley/console/v1/model_pb.js";
import { upstreamsQuery } from "../api/models.ts";
import { Unavailable } from "../components/alert.tsx";
import { CheckField } from "../components/field.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { formatTime } from "../format/time.ts";
import { Administration } from "./administration.tsx";
import { UpstreamItem } from "./upstream-item.tsx";

/** So many are shown at first. */
const SHOWN = 50;

/** How the providers are doing, as the process sees it that answers. */
export function Providers() {
  return (
    <Administration title="Providers" description="How each upstream model is doing, and what went wrong with it.">
      {() => <Health />}
    </Administration>
  );
}

function Health() {
  const health = useQuery(upstreamsQuery);
  if (health.isPending) return <Loading what="the providers" />;
  if (health.isLoadingError) return <Unavailable error={health.error} onRetry={() => void health.refetch()} />;
  if (health.data.upstreams.length === 0) {
    return <Empty title="No providers">The configuration of this installation names no models.</Empty>;
  }
  return <Upstreams {...health.data} />;
}

function Upstreams({ upstreams, since, time }: Pick<ListUpstreamsResponse, "upstreams" | "since" | "time">) {
  const [onlyTroubled, setOnlyTroubled] = useState(false);
  const troubled = upstreams.filter(isTroubled);
  const shown = useShown(onlyTroubled ? troubled : upstreams, SHOWN);
  return (
    <>
      <div className="mb-5 flex flex-wrap items-center justify-between gap-x-6 gap-y-2">
        <p className="text-sm text-muted">
          What this process has seen {since && `since ${formatTime(since)}`}: the last 15 minutes at most, and nothing
          of other processes. As of {time && formatTime(time)}; asked again every 10 seconds.
        </p>
        <CheckField
          label={`Only those in trouble (${troubled.length})`}
          checked={onlyTroubled}
          onChange={(event) => setOnlyTroubled(event.target.checked)}
        />
      </div>
      {shown.visible.length === 0 ? (
        <p role="status" className="py-8 text-muted">
          All of them work, and none has failed lately.
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

function isTroubled({ breaker, failures }: Upstream): boolean {
  return failures > 0n || breaker?.state !== BreakerState.CLOSED;
}
