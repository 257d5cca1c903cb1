import { useMemo } from "react";
import { create } from "@bufbuild/protobuf";
import { useQuery } from "@tanstack/react-query";
import { UsageSumsSchema } from "../../gen/parley/console/v1/usage_pb.js";
import { useMay, useTeams } from "../api/session.ts";
import { previousQuery, usageQuery } from "../api/usage.ts";
import { Unavailable } from "../components/alert.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { ATTRIBUTION_FIELDS } from "../format/attribution.ts";
import { formatMoment } from "../format/time.ts";
import { ComparisonSwitch, useComparison } from "./comparison.tsx";
import { Figures } from "./figures.tsx";
import { Filters } from "./filters.tsx";
import { GroupsTable } from "./groups-table.tsx";
import { LatencyPlots } from "./latency-plots.tsx";
import { MEASURES, requestsOf } from "./measures.ts";
import { isAttribution } from "./names.ts";
import { SumsPlot } from "./sums-plot.tsx";
import { formatSpan } from "./times.ts";
import { usePieces, useView, type View } from "./view.ts";

const NOTHING = create(UsageSumsSchema);

/** Page of usage: key figures, charts over time and latency. */
export default function Usage() {
  const [view, change] = useView();
  const [isCompared, setCompared] = useComparison();
  const isAll = useMay("usage.read");
  const hasTeams = useTeams().length > 0;
  const whose = isAll ? "all accounts" : hasTeams ? "your account and teams" : "your account";
  return (
    <Page isWide title="Usage" description={`Requests, tokens and cost of ${whose}.`}>
      <Filters view={view} onChange={change} />
      <div className="-mt-3 mb-2 -ml-2">
        <ComparisonSwitch on={isCompared} onChange={setCompared} />
      </div>
      <Report view={view} isCompared={isCompared} />
    </Page>
  );
}

function Report({ view, isCompared }: { readonly view: View; readonly isCompared: boolean }) {
  const sums = useQuery(usageQuery(usePieces(view)));
  const { data: previous } = useQuery(previousQuery(isCompared ? sums.data?.asked : undefined));
  const order = useMemo(() => sums.data?.groups.map(({ group }) => group) ?? [], [sums.data]);
  if (sums.isPending) return <Loading what="the usage" shape="charts" />;
  if (sums.isLoadingError) return <Unavailable error={sums.error} onRetry={() => void sums.refetch()} />;
  const { asked, total = NOTHING, groups, steps, isChosenByDay, cutSince } = sums.data;
  const { filter, step, grouping, length } = asked;
  // Without any request before there is nothing to draw.
  const drawn = previous?.total !== undefined && requestsOf(previous.total) > 0n ? previous : undefined;
  const isNarrowed = [view.account, view.key, view.model, view.outcome].some((value) => value !== "");
  const isOfEntries = isAttribution(view.by) || ATTRIBUTION_FIELDS.some((field) => view[field] !== "");
  return (
    <div className="space-y-6" aria-busy={sums.isPlaceholderData}>
      <Figures now={total} before={isCompared ? previous && (previous.total ?? NOTHING) : null} length={length} />
      {requestsOf(total) === 0n ? (
        <Empty title="No usage yet">
          {isNarrowed || isOfEntries ? "No requests match these filters." : "No requests in this period."}
        </Empty>
      ) : (
        <>
          {MEASURES.map((measure) => (
            <SumsPlot
              key={measure.title}
              measure={measure}
              rows={steps}
              order={order}
              filter={filter}
              step={step}
              by={grouping}
              previous={drawn}
            />
          ))}
          {grouping !== "none" && (
            <GroupsTable rows={groups} total={total} filter={filter} by={grouping} isChosenByDay={isChosenByDay} />
          )}
          <LatencyPlots filter={filter} step={step} />
        </>
      )}
      <p className="text-sm text-muted">
        {formatSpan(filter)}
        {previous !== undefined && `, compared with ${formatSpan(previous.span)}`}. Requests count when they start.{" "}
        {isOfEntries
          ? "Sums by session, end user, agent and tag have only completions, no refused requests, and go back as far as single requests are kept."
          : "Requests and errors include those that were refused, such as over a limit or without a valid key."}
        {cutSince !== undefined &&
          ` There are more than 100,000${grouping === "tag" ? " tags" : ""}: the sums are of completions that ended since ${formatMoment(cutSince)}.`}
      </p>
    </div>
  );
}
