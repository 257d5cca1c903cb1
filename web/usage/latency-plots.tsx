import { useMemo } from "react";
import { useQuery } from "@tanstack/react-query";
import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { GetLatencyResponse, LatencyPoint, Percentiles } from "../../gen/parley/console/v1/usage_pb.js";
import { latencyQuery, type UsageFilter } from "../api/usage.ts";
import { Unavailable } from "../components/alert.tsx";
import { Loading } from "../components/page.tsx";
import { formatDuration } from "../format/duration.ts";
import { formatCount } from "../format/number.ts";
import type { TableContent } from "./data-table.tsx";
import { logLink } from "./log-link.ts";
import { type ChartContent, Plot } from "./plot.tsx";
import { latencySeries } from "./series.ts";
import { endOfStep, type Step, stepsOf } from "./steps.ts";
import { fileName, formatMoment, fullStep, isoStep } from "./times.ts";

/** A measured duration. */
interface Wait {
  readonly title: string;
  readonly description: string;
  readonly of: (point: LatencyPoint) => Percentiles | undefined;
  readonly file: string;
}

const WAITS: readonly Wait[] = [
  {
    title: "Duration",
    description: "From request start to end of response.",
    of: ({ durationMs }) => durationMs,
    file: "duration",
  },
  {
    title: "Time to first token",
    description: "From request start to the first token of the stream.",
    of: ({ firstContentMs }) => firstContentMs,
    file: "time-to-first-token",
  },
];

const SHARES = [
  ["p50", "p50"],
  ["p95", "p95"],
  ["p99", "p99"],
] as const;

interface LatencyPlotsProps {
  readonly filter: UsageFilter;
  readonly step: Step;
}

/** Charts of the latency of successful requests. */
export function LatencyPlots({ filter, step }: LatencyPlotsProps) {
  const known = useQuery(latencyQuery(filter, step));
  if (known.isPending) return <Loading what="latency" shape="lines" />;
  if (known.isLoadingError) return <Unavailable error={known.error} onRetry={() => void known.refetch()} />;
  const { latency, ...asked } = known.data;
  if (latency.overall === undefined) return null;
  return (
    <>
      <div className="grid gap-6 *:min-w-0 xl:grid-cols-2">
        {WAITS.map((wait) => (
          <WaitPlot key={wait.title} wait={wait} latency={latency} {...asked} />
        ))}
      </div>
      <p className="text-sm text-muted">
        Based on {formatCount(latency.overall.served)} successful requests{" "}
        {latency.since && ` since ${formatMoment(timestampMs(latency.since))}`}, from the latest 50,000 requests.
      </p>
    </>
  );
}

interface WaitPlotProps extends LatencyPlotsProps {
  readonly wait: Wait;
  readonly latency: GetLatencyResponse;
}

function WaitPlot({ wait, latency: { points, overall }, filter, step }: WaitPlotProps) {
  const content = useMemo((): ChartContent => {
    const steps = stepsOf(filter, step);
    const series = [
      latencySeries(points, { steps, of: (point) => wait.of(point)?.p50, name: SHARES[0][1], colour: 1 }),
      latencySeries(points, {
        steps,
        of: (point) => wait.of(point)?.p95,
        name: SHARES[1][1],
        colour: 4,
        isDashed: true,
      }),
    ];
    return { steps, step, series, kind: "lines", format: formatDuration };
  }, [wait, points, filter, step]);
  const whole = overall && wait.of(overall);
  const summary =
    whole === undefined ? "none" : SHARES.map(([share, name]) => `${name} ${formatDuration(whole[share])}`).join(", ");
  return (
    <Plot
      title={wait.title}
      description={wait.description}
      content={content}
      summary={`${wait.title} over time. Whole period: ${summary}. The table below has all values.`}
      formatFull={formatDuration}
      overall={({ name }) => (name === SHARES[0][1] ? whole?.p50 : whole?.p95)}
      table={tableOf(wait, points, { content, filter })}
    />
  );
}

function tableOf(
  { title, of, file }: Wait,
  points: readonly LatencyPoint[],
  { content: { step }, filter }: { readonly content: ChartContent; readonly filter: UsageFilter },
): TableContent {
  const known = points.flatMap((point) => {
    const percentiles = of(point);
    return point.stepTime === undefined || percentiles === undefined
      ? []
      : [{ atMs: timestampMs(point.stepTime), served: point.served, percentiles }];
  });
  return {
    label: `${title} over time`,
    columns: [
      { id: "step", name: step.column },
      ...SHARES.map(([id, name]) => ({ id, name })),
      { id: "served", name: "Successful requests" },
    ],
    rows: known.toReversed().map(({ atMs, served, percentiles }) => ({
      id: String(atMs),
      name: fullStep(atMs, step),
      href: logLink({ ...filter, outcome: "served", sinceMs: atMs, untilMs: endOfStep(atMs, step) }),
      cells: [...SHARES.map(([share]) => formatDuration(percentiles[share])), formatCount(served)],
    })),
    csv: {
      name: fileName([file, step.each.replaceAll(" ", "-")], filter),
      rows: () => [
        [step.csvColumn, "p50_ms", "p95_ms", "p99_ms", "successful_requests"],
        ...known.map(({ atMs, served, percentiles: { p50, p95, p99 } }) => [
          isoStep(atMs, step),
          ...[p50, p95, p99].map((ms) => Math.round(ms * 10) / 10),
          Number(served),
        ]),
      ],
    },
  };
}
