import type { Upstream, UpstreamFailure } from "../../gen/parley/console/v1/model_pb.js";
import { HealthBadge } from "../components/health-badge.tsx";
import { Fact } from "../components/fact.tsx";
import { Fold } from "../components/fold.tsx";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { TextLink } from "../components/text-link.tsx";
import { requestPath } from "../paths.ts";
import { formatLatency, formatShare } from "../format/health.ts";
import { formatCount } from "../format/number.ts";
import { outcomeOf } from "../format/outcomes.ts";
import { formatPreciseMoment, formatTime } from "../format/time.ts";
import { TestConnection } from "./test-connection.tsx";

/** Health of one upstream model. */
export function UpstreamItem({ upstream }: { readonly upstream: Upstream }) {
  const { provider, name, modelIds, attempts, failures, skipped, outcomes, lastFailures } = upstream;
  const hasOtherIds = modelIds.length !== 1 || modelIds[0] !== name;
  return (
    <li className="rounded-xl border border-line bg-surface p-5">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0">
          <h2 className="flex flex-wrap items-center gap-x-3 gap-y-1 text-base font-semibold">
            <span className="wrap-anywhere">
              <bdi>{provider}</bdi> / <code className="font-mono">{name}</code>
            </span>
            <HealthBadge of={upstream} />
          </h2>
          {hasOtherIds && <p className="mt-1 text-sm wrap-anywhere text-muted">Requested as {modelIds.join(", ")}</p>}
        </div>
        <TestConnection upstream={upstream} />
      </div>
      <dl className="mt-4 grid grid-cols-2 gap-x-6 gap-y-3 text-sm lg:grid-cols-4">
        <Fact name="Error rate">{formatShare(failures, attempts)}</Fact>
        <Fact name="Time to first token">{formatLatency(upstream.firstContent, attempts)}</Fact>
        <Fact name="Total duration">{formatLatency(upstream.duration, attempts)}</Fact>
        <Fact name="Skipped">{describeTimes(skipped)}</Fact>
      </dl>
      {outcomes.some(({ outcome }) => outcome !== "served") && (
        <p className="mt-3 text-sm text-muted">
          Attempts:{" "}
          {outcomes.map(({ outcome, count }) => `${outcomeOf(outcome).label} (${formatCount(count)})`).join(", ")}.
        </p>
      )}
      {lastFailures.length > 0 && (
        <div className="mt-4">
          <Fold title="Recent errors" summary={`${lastFailures.length}`} isOpen={false}>
            <ol className="divide-y divide-line text-sm">
              {Array.from(lastFailures.entries(), ([index, failure]) => (
                <Failure key={`${failure.completionId} ${index}`} failure={failure} />
              ))}
            </ol>
          </Fold>
        </div>
      )}
    </li>
  );
}

function describeTimes(count: bigint): string {
  if (count === 0n) return "Never";
  return count === 1n ? "Once" : `${formatCount(count)} times`;
}

function Failure({ failure }: { readonly failure: UpstreamFailure }) {
  const { time, outcome, httpStatusCode, reason, requestId, completionId } = failure;
  return (
    <li className="py-2.5 first:pt-0 last:pb-0">
      <p className="flex flex-wrap items-baseline gap-x-3 gap-y-1">
        <span title={time && formatPreciseMoment(time)}>{time && formatTime(time)}</span>
        <OutcomeBadge code={outcome} />
        {httpStatusCode !== undefined && <span>HTTP {httpStatusCode}</span>}
      </p>
      <p className="mt-0.5 wrap-anywhere text-muted">
        <bdi>{reason}</bdi>
      </p>
      <p className="mt-0.5 wrap-anywhere">
        <TextLink to={requestPath(completionId)} label={`Request ${requestId}`}>
          {requestId}
        </TextLink>
      </p>
    </li>
  );
}
