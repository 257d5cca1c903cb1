import { ConnectError } from "@connectrpc/connect";
import { AttemptListSchema } from "../../gen/parley/v1/report_pb.js";
import { type Attempt, readAttempt } from "../format/attempt.ts";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { formatDuration } from "../format/duration.ts";
import type { Run } from "./run.ts";

/** Returns the attempts of a run, if reported. */
export function attemptsOf({ answer, error }: Run): readonly Attempt[] {
  const attempts =
    error == null ? answer.report?.attempts : ConnectError.from(error).findDetails(AttemptListSchema)[0]?.attempts;
  return (attempts ?? []).map(readAttempt);
}

/** List of the attempts in order. */
export function Attempts({ attempts }: { readonly attempts: readonly Attempt[] }) {
  return (
    <ol className="divide-y divide-line text-sm">
      {Array.from(attempts.entries(), ([index, { model, code, httpStatusCode, message, durationMs }]) => (
        <li key={index} className="flex flex-wrap items-baseline gap-x-3 gap-y-1 py-2.5">
          <span className="font-mono text-[0.8125rem] wrap-anywhere">{model}</span>
          <OutcomeBadge code={code} />
          <span className="text-muted tabular-nums">
            {formatDuration(durationMs)}
            {httpStatusCode !== undefined && `, HTTP ${httpStatusCode}`}
          </span>
          {message !== "" && <span className="w-full wrap-anywhere text-muted">{message}</span>}
        </li>
      ))}
    </ol>
  );
}
