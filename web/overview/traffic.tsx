import { create } from "@bufbuild/protobuf";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { TrafficOverview } from "../../gen/parley/console/v1/overview_pb.js";
import { type LatencyPoint, type UsageSums, UsageSumsSchema } from "../../gen/parley/console/v1/usage_pb.js";
import { Sparkline } from "../components/sparkline.tsx";
import { formatDuration } from "../format/duration.ts";
import { formatCount, formatPercent, formatShort } from "../format/number.ts";
import { PATHS } from "../paths.ts";
import { changeOf, ChangeText, failedShare, pointsOf } from "../usage/change.tsx";
import { ComparisonSwitch, useComparison } from "../usage/comparison.tsx";
import { errorsOf, requestsOf } from "../usage/measures.ts";
import { latencySeries, totalSeries } from "../usage/series.ts";
import { DAY_MS, HOUR_MS, stepsOf } from "../usage/steps.ts";
import { Tile } from "./tile.tsx";

const NOTHING = create(UsageSumsSchema);

/** Requests, errors and time to the first token in the last 24 hours. */
export function Traffic({ traffic }: { readonly traffic: TrafficOverview }) {
  const { hours, total = NOTHING, previous = NOTHING, previousHours, latencyHours, latency, since, until } = traffic;
  const [isCompared, setCompared] = useComparison();
  if (since === undefined || until === undefined) return null;
  const steps = stepsOf({ sinceMs: timestampMs(since), untilMs: timestampMs(until) }, { lengthMs: HOUR_MS });
  const stepsBefore = steps.map((atMs) => atMs - DAY_MS);
  const sums = (of: (sums: UsageSums) => bigint) => totalSeries(hours, { steps, of, name: "", colour: 1 }).values;
  const before = (of: (sums: UsageSums) => bigint) =>
    isCompared && requestsOf(previous) > 0n
      ? totalSeries(previousHours, { steps: stepsBefore, of, name: "", colour: 7 }).values
      : undefined;
  const waits = (share: "p50" | "p95") => {
    const of = (point: LatencyPoint) => point.firstContentMs?.[share];
    return latencySeries(latencyHours, { steps, of, name: "", colour: 1 }).values;
  };
  const first = latency?.firstContentMs;
  const [requests, errors] = [sums(requestsOf), sums(errorsOf)];
  const [requestsBefore, errorsBefore] = [before(requestsOf), before(errorsOf)];
  return (
    <section aria-labelledby="traffic" className="space-y-3">
      <div className="flex flex-wrap items-center justify-between gap-x-4">
        <h2 id="traffic" className="text-base font-semibold">
          Last 24 hours
        </h2>
        <div className="-mx-2">
          <ComparisonSwitch on={isCompared} onChange={setCompared} />
        </div>
      </div>
      <dl className="grid grid-cols-2 gap-3 xl:grid-cols-4">
        <Tile
          name="Requests"
          value={formatShort(requestsOf(total))}
          note={
            isCompared && (
              <>
                <ChangeText change={changeOf(Number(requestsOf(total)), Number(requestsOf(previous)))} />
                {requestsOf(previous) > 0n && ` from ${formatShort(requestsOf(previous))} in the 24 hours before`}
              </>
            )
          }
          href={`${PATHS.usage}?range=24h`}
        >
          <Sparkline
            kind="bars"
            values={requests}
            before={requestsBefore}
            label={`Requests per hour: ${peaksOf(requests, requestsBefore)}`}
          />
        </Tile>
        <Tile
          name="Error rate"
          value={formatPercent(failedShare(total))}
          note={
            <>
              {`${formatShort(total.failed)} failed, ${formatShort(total.refused)} refused`}
              {isCompared && requestsOf(previous) > 0n && (
                <>
                  {" · "}
                  <ChangeText change={pointsOf(total, previous)} />
                </>
              )}
            </>
          }
          href={`${PATHS.usage}?range=24h&by=outcome&outcome=failed`}
        >
          <Sparkline
            kind="bars"
            look="danger"
            values={errors}
            before={errorsBefore}
            label={`Failed and refused requests per hour: ${peaksOf(errors, errorsBefore)}`}
          />
        </Tile>
        {(["p50", "p95"] as const).map((share) => (
          <Tile
            key={share}
            name={`Time to first token, ${share}`}
            value={first === undefined ? "–" : formatDuration(first[share])}
            note={first === undefined ? "No streamed responses" : undefined}
            href={`${PATHS.usage}?range=24h&outcome=served`}
          >
            <Sparkline
              kind="line"
              values={waits(share)}
              label={`Time to first token per hour, ${share}: ${peakOf(waits(share), formatDuration)}`}
            />
          </Tile>
        ))}
      </dl>
    </section>
  );
}

type Values = readonly (number | undefined)[];

function peaksOf(values: Values, before: Values | undefined): string {
  const peak = peakOf(values, formatCount);
  return before === undefined ? peak : `${peak}; in the 24 hours before: ${peakOf(before, formatCount)}`;
}

function peakOf(values: Values, format: (value: number) => string): string {
  const peak = Math.max(...values.map((value = 0) => value), 0);
  return peak === 0 ? "none" : `peak ${format(peak)}`;
}
