import type { LimitSnapshot, LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { formatDuration } from "../format/duration.ts";
import { formatCount } from "../format/number.ts";

/** Remaining rate limits at the time of the request. */
export function Limits({ request: { requestLimit, tokenLimit } }: { readonly request: LoggedRequest }) {
  return (
    <dl className="space-y-4 text-sm tabular-nums">
      {requestLimit !== undefined && <Limit name="Requests per minute" snapshot={requestLimit} />}
      {tokenLimit !== undefined && <Limit name="Tokens per minute" snapshot={tokenLimit} />}
    </dl>
  );
}

function Limit({
  name,
  snapshot: { limit, remaining, resetMs },
}: {
  readonly name: string;
  readonly snapshot: LimitSnapshot;
}) {
  const left = limit === 0n ? 0 : Math.min(1, Number(remaining) / Number(limit));
  const look = left === 0 ? "bg-danger" : left < 0.2 ? "bg-warn" : "bg-accent";
  return (
    <div>
      <dt className="text-muted">{name}</dt>
      <dd className="mt-0.5">
        {formatCount(remaining)} of {formatCount(limit)} remaining
        <span className="text-muted"> · resets in {formatDuration(Number(resetMs))}</span>
        <span className="mt-1.5 block h-1.5 overflow-hidden rounded-full bg-line" aria-hidden>
          <span className={`block h-full rounded-full ${look}`} style={{ width: `${left * 100}%` }} />
        </span>
      </dd>
    </div>
  );
}
