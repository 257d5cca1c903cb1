import { useMutation, useQuery } from "@tanstack/react-query";
import { PlugZap } from "lucide-react";
import { useId, useState } from "react";
import {
  type Breaker,
  BreakerState,
  type Latency,
  type ListTargetHistoryResponse,
  type TestFailure,
  type TestModelResponse,
  type Upstream,
  type UpstreamFailure,
} from "../../gen/parley/console/v1/model_pb.js";
import { readFailure } from "../api/failure.ts";
import { dayHistoryQuery, monthHistoryQuery, testModel } from "../api/models.ts";
import { Fact } from "../components/fact.tsx";
import { HealthBadge } from "../components/health-badge.tsx";
import { useIsWide } from "../components/media.ts";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { DetailRow, RowOpener } from "../components/row-details.tsx";
import { APART, SortedHead, type SortedColumn } from "../components/sorted-head.tsx";
import type { Sorting, SortValues } from "../components/sorting.ts";
import { Cell, ICON_BUTTON, None, OnPhones } from "../components/table.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatDuration } from "../format/duration.ts";
import { formatShare, type Health, healthOf } from "../format/health.ts";
import { formatCount, formatPercent } from "../format/number.ts";
import { outcomeOf } from "../format/outcomes.ts";
import { formatPreciseMoment, formatTime } from "../format/time.ts";
import { requestPath } from "../paths.ts";
import { HealthStrip, ReadableStrip } from "./health-strip.tsx";
import { processName } from "./process-name.ts";
import { stripOf } from "./target-periods.ts";

/** Columns by which targets are sorted. */
export type UpstreamColumn = "target" | "health" | "attempts" | "errors" | "ttft" | "duration";

/** Grid columns on wide screens, where a target is one line. On phones it has two. */
const GRID =
  "grid grid-cols-[minmax(0,1fr)_auto_2rem] gap-x-3 px-4 lg:gap-x-4 lg:px-5 lg:grid-cols-[minmax(0,1fr)_7.5rem_4.5rem_4rem_8.5rem_7rem] xl:grid-cols-[minmax(0,1fr)_8rem_7rem_4.75rem_4.25rem_8.25rem_8.25rem_8.5rem]";

/** Classes of a column without room on narrow windows. */
const ROOMY = "lg:max-xl:hidden";

const COLUMNS: readonly SortedColumn<UpstreamColumn>[] = [
  { name: "Target", column: "target" },
  { name: "Health", column: "health" },
  { name: "Last 24 hours", className: ROOMY },
  { name: "Attempts", column: "attempts", isRight: true },
  { name: "Errors", title: "Error rate", column: "errors", isRight: true },
  { name: "TTFT p50 / p95", title: "Time to first token, median and 95th percentile", column: "ttft", isRight: true },
  {
    name: "Total p50 / p95",
    title: "Total duration, median and 95th percentile",
    column: "duration",
    isRight: true,
    className: ROOMY,
  },
  { name: "Connection", isApart: true },
];

/** The worst come first. */
const SEVERITY: readonly Health[] = [
  "circuit open",
  "failing",
  "recovering",
  "ready to retry",
  "degraded",
  "unknown",
  "healthy",
];

/** What a target is sorted by. */
export const SORT_VALUES: SortValues<Upstream, UpstreamColumn> = {
  target: ({ provider, name }) => `${provider} / ${name}`.toLowerCase(),
  health: (upstream) => SEVERITY.indexOf(healthOf(upstream)),
  attempts: ({ attempts }) => attempts,
  errors: ({ attempts, failures }) => (attempts === 0n ? undefined : Number(failures) / Number(attempts)),
  ttft: ({ firstContent }) => medianOf(firstContent),
  duration: ({ duration }) => medianOf(duration),
};

function medianOf(latency: Latency | undefined): number | undefined {
  return latency === undefined || latency.count === 0n ? undefined : latency.p50Ms;
}

interface UpstreamHeadProps {
  readonly sorting: Sorting<UpstreamColumn> | undefined;
  readonly onSort: (sorting: Sorting<UpstreamColumn> | undefined) => void;
}

/** Column headers, by which the table is sorted. */
export function UpstreamHead(props: UpstreamHeadProps) {
  return <SortedHead columns={COLUMNS} grid={GRID} {...props} />;
}

interface UpstreamRowProps {
  readonly upstream: Upstream;
  /** Undefined until it is known. */
  readonly history: ListTargetHistoryResponse | undefined;
}

/** Health of one target: a row, and below it what is known about its errors. */
export function UpstreamRow({ upstream, history }: UpstreamRowProps) {
  const { provider, name, modelIds, attempts, failures } = upstream;
  const strip = history && stripOf(history, upstream, "half hour");
  const [isOpen, setOpen] = useState(false);
  const test = useMutation({ mutationFn: () => testModel(modelIds[0]!) });
  const details = useId();
  const target = `${provider} / ${name}`;
  const hasOtherIds = modelIds.length !== 1 || modelIds[0] !== name;
  const isWide = useIsWide();
  const errorRate = formatPercent(Number(failures) / Number(attempts));
  const hasProblem = test.isError || test.data?.failure !== undefined;
  return (
    <>
      <div role="row" className={`${GRID} py-1.5 hover:bg-sunken lg:min-h-7.5 lg:items-center lg:py-0`}>
        <Cell className="max-lg:col-span-2">
          <RowOpener
            isOpen={isOpen}
            details={details}
            title={hasOtherIds ? `${target}, requested as ${modelIds.join(", ")}` : target}
            onToggle={() => setOpen(!isOpen)}
          >
            <bdi className="text-muted">{provider}</bdi> <span className="text-muted">/</span>{" "}
            <code className="font-mono font-medium">{name}</code>
            {hasOtherIds && <span className="text-muted"> as {modelIds.join(", ")}</span>}
          </RowOpener>
        </Cell>
        <Cell className="max-lg:order-3">
          <HealthBadge of={upstream} isShort />
        </Cell>
        <Cell className="max-xl:hidden">{strip && <HealthStrip strip={strip} label="Last 24 hours" />}</Cell>
        <Cell className="truncate max-lg:order-2 max-lg:text-xs max-lg:text-muted lg:text-right">
          {attempts === 0n ? isWide ? <None /> : "No recent traffic" : formatCount(attempts)}
          <OnPhones>
            {attempts > 0n &&
              `${attempts === 1n ? " attempt" : " attempts"} · ${errorRate} errors · TTFT ${describeLatency(upstream.firstContent)}`}
          </OnPhones>
        </Cell>
        <Cell className="max-lg:hidden lg:text-right">
          {attempts === 0n ? <None /> : <span title={formatShare(failures, attempts)}>{errorRate}</span>}
        </Cell>
        <LatencyCell of={upstream.firstContent} />
        <LatencyCell of={upstream.duration} className={ROOMY} />
        <Cell className={`max-lg:order-1 max-lg:row-span-2 max-lg:self-center ${APART}`}>
          <span className="flex items-center gap-1">
            <button
              type="button"
              aria-label={`Test connection to ${target}`}
              title="Test the connection: asks for one token, at the provider’s price"
              aria-busy={test.isPending || undefined}
              disabled={test.isPending}
              className={`${ICON_BUTTON} -ml-1.5 disabled:opacity-60`}
              onClick={() => test.mutate()}
            >
              <PlugZap aria-hidden className="size-4" />
            </button>
            <span
              role="status"
              className={`min-w-0 text-xs max-lg:sr-only ${hasProblem ? "text-danger" : "text-muted"}`}
            >
              {test.isPending ? "Testing …" : test.isSuccess ? outcomeOfTest(test.data) : test.isError && "Not tested."}
            </span>
          </span>
        </Cell>
      </div>
      {(hasProblem || (test.isSuccess && !isWide)) && (
        <DetailRow columns={COLUMNS.length}>
          <p className="wrap-anywhere">
            {test.isError ? (
              readFailure(test.error)?.message
            ) : hasProblem ? (
              <TestProblem failure={test.data?.failure} />
            ) : (
              outcomeOfTest(test.data!)
            )}
          </p>
        </DetailRow>
      )}
      {isOpen && (
        <DetailRow id={details} columns={COLUMNS.length}>
          <Details of={upstream} />
        </DetailRow>
      )}
    </>
  );
}

interface LatencyCellProps {
  readonly of: Latency | undefined;
  readonly className?: string;
}

function LatencyCell({ of, className = "" }: LatencyCellProps) {
  return (
    <Cell className={`whitespace-nowrap max-lg:hidden lg:text-right ${className}`}>
      {of === undefined || of.count === 0n ? (
        <None />
      ) : (
        <span title={of.count === 1n ? "Of 1 request" : `Of ${formatCount(of.count)} requests`}>
          {describeLatency(of)}
        </span>
      )}
    </Cell>
  );
}

function describeLatency(of: Latency | undefined): string {
  if (of === undefined || of.count === 0n) return "–";
  return `${formatDuration(of.p50Ms)} / ${formatDuration(of.p95Ms)}`;
}

function outcomeOfTest({ durationMs, failure }: TestModelResponse): string {
  return failure === undefined ? `Answered in ${formatDuration(durationMs)}.` : `${outcomeOf(failure.outcome).label}.`;
}

function TestProblem({ failure }: { readonly failure: TestFailure | undefined }) {
  if (failure === undefined) return null;
  const { outcome, httpStatusCode, reason, advice } = failure;
  const status = httpStatusCode === undefined ? "" : ` (HTTP ${httpStatusCode})`;
  return (
    <>
      <strong className="font-medium text-danger">
        {outcomeOf(outcome).label}
        {status}.
      </strong>{" "}
      <bdi>{reason}</bdi> {advice}
    </>
  );
}

function Details({ of }: { readonly of: Upstream }) {
  const { data: history } = useQuery(dayHistoryQuery([of]));
  const strip = history && stripOf(history, of, "half hour");
  const { modelIds, outcomes, lastFailures, skipped } = of;
  return (
    <>
      <div className="mb-4 space-y-2">
        {strip && <ReadableStrip strip={strip} label="Last 24 hours" />}
        <Month of={of} />
      </div>
      <dl className="grid gap-x-8 gap-y-2 sm:grid-cols-4">
        <Fact name="Requested as">
          <span className="wrap-anywhere">{modelIds.join(", ")}</span>
        </Fact>
        <Fact name="Circuit">
          <Circuit of={of} history={history} />
        </Fact>
        <Fact name="Skipped">
          {skipped === 0n ? "Never" : skipped === 1n ? "Once" : `${formatCount(skipped)} times`}
        </Fact>
        <Fact name="Attempts by outcome">
          {outcomes.length === 0
            ? "No recent traffic"
            : outcomes.map(({ outcome, count }) => `${outcomeOf(outcome).label} (${formatCount(count)})`).join(", ")}
        </Fact>
      </dl>
      {lastFailures.length > 0 && (
        <ol aria-label="Recent errors" className="mt-3 divide-y divide-line border-t border-line">
          {Array.from(lastFailures.entries(), ([index, failure]) => (
            <Failure key={`${failure.completionId} ${index}`} failure={failure} />
          ))}
        </ol>
      )}
    </>
  );
}

/** The last 30 days. */
function Month({ of }: { readonly of: Upstream }) {
  const { data } = useQuery(monthHistoryQuery(of));
  const strip = data && stripOf(data, of, "day");
  return strip === undefined ? null : <ReadableStrip strip={strip} label="Last 30 days" />;
}

interface CircuitProps {
  readonly of: Upstream;
  /** Undefined until it is known. */
  readonly history: ListTargetHistoryResponse | undefined;
}

/** State of the circuit breaker in each process of the installation. */
function Circuit({ of: { provider, name, breaker }, history }: CircuitProps) {
  const replicas = history?.replicas ?? [];
  // A process tells of itself after its first seconds.
  if (replicas.length < 2) return <>{describeCircuit(breaker)}</>;
  const own = history?.targets.find(({ target }) => target?.provider === provider && target.name === name);
  const open = new Map(own?.breakers.map((each) => [each.replicaId, each.breaker]));
  if (open.size === 0) return <>Closed in all {replicas.length} processes</>;
  return (
    <ul>
      {replicas.map((replica) => (
        <li key={replica.id} className="wrap-anywhere">
          <bdi>{processName(replica)}</bdi>: {describeCircuit(open.get(replica.id))}
        </li>
      ))}
    </ul>
  );
}

function describeCircuit(breaker: Breaker | undefined): string {
  if (breaker?.restStartTime === undefined) return "Closed";
  const since = `since ${formatTime(breaker.restStartTime)}`;
  if (breaker.state === BreakerState.OPEN) return `Open ${since}`;
  return breaker.probeInFlight ? `Open ${since}, a probe is in flight` : `Open ${since}, the next request is a probe`;
}

function Failure({ failure }: { readonly failure: UpstreamFailure }) {
  const { time, outcome, httpStatusCode, reason, requestId, completionId } = failure;
  return (
    <li className="flex flex-wrap items-center gap-x-3 gap-y-0.5 py-1.5 last:pb-0">
      <span className="tabular-nums" title={time && formatPreciseMoment(time)}>
        {time && formatTime(time)}
      </span>
      <OutcomeBadge code={outcome} />
      {httpStatusCode !== undefined && <span>HTTP {httpStatusCode}</span>}
      <bdi className="min-w-0 wrap-anywhere text-muted">{reason}</bdi>
      <span className="wrap-anywhere">
        <TextLink to={requestPath(completionId)} label={`Request ${requestId}`}>
          {requestId}
        </TextLink>
      </span>
    </li>
  );
}
