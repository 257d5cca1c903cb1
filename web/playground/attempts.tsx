import { ConnectError } from "@connectrpc/connect";
import { type Attempt, AttemptListSchema } from "../../gen/parley/v1/report_pb.js";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { formatDuration } from "../format/duration.ts";
import type { Run } from "./run.ts";

/** The upstream models that were tried for a run, as far as it is known. */
export function attemptsOf({ answer, error }: Run): readonly Attempt[] {
  if (error != null) return ConnectError.from(error).findDetails(AttemptListSchema)[0]?.attempts ?? [];
  return answer.report?.attempts ?? [];
}

/** What was tried, in its order. */
export function Attempts({ attempts }: { readonly attempts: readonly Attempt[] }) {
  return (
    <ol className="divide-y divide-line text-sm">
      {Array.from(attempts.entries(), ([index, { model, outcome, upstreamStatus, reason, durationMs }]) => (
        <li key={index} className="flex flex-wrap items-baseline gap-x-3 gap-y-1 py-2.5">
          <span className="font-mono text-[0.8125rem] wrap-anywhere">{model}</span>
          <OutcomeBadge code={outcome} />
          <span className="text-muted tabular-nums">
            {formatDuration(durationMs)}
            {upstreamStatus !== undefined && `, HTTP ${upstreamStatus}`}
          </span>
          {reason !== "" && <span className="w-full wrap-anywhere text-muted">{reason}</span>}
        </li>
      ))}
    </ol>
  );
}
