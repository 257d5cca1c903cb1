import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { OmissionReason } from "../../gen/parley/v1/report_pb.js";
import { describeClamp } from "../format/clamp.ts";
import { formatCount } from "../format/number.ts";

const REASONS: Readonly<Record<number, string>> = {
  [OmissionReason.UNSUPPORTED]: "not supported by the model or its provider",
  [OmissionReason.NOT_ALLOWED]: "not allowed by the key or the provider’s configuration",
  [OmissionReason.UNKNOWN]: "unknown field",
  [OmissionReason.FOREIGN_STATE]: "state of another provider or account",
};

/** Fields of the request that were omitted, or sent with another value. */
export function FieldChanges({ request: { omitted, omittedCount, clamped } }: { readonly request: LoggedRequest }) {
  const more = omittedCount - omitted.length;
  return (
    <dl className="space-y-4 text-sm">
      {omitted.length > 0 && (
        <div>
          <dt className="text-muted">Omitted</dt>
          {omitted.map(({ field, reason }) => (
            <dd key={field} className="mt-0.5 wrap-anywhere">
              <bdi className="font-mono">{field}</bdi>
              <span className="text-muted"> · {REASONS[reason] ?? "not honoured"}</span>
            </dd>
          ))}
          {more > 0 && <dd className="mt-0.5 text-muted">and {formatCount(more)} more</dd>}
        </div>
      )}
      {clamped.length > 0 && (
        <div>
          <dt className="text-muted">Adjusted for the provider</dt>
          {clamped.map((clamp) => (
            <dd key={clamp.field} className="mt-0.5 wrap-anywhere">
              <bdi className="font-mono">{describeClamp(clamp)}</bdi>
            </dd>
          ))}
        </div>
      )}
    </dl>
  );
}
