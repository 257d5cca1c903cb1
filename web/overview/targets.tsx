import { TargetState, type UnhealthyTarget } from "../../gen/parley/console/v1/overview_pb.js";
import { Badge } from "../components/badge.tsx";
import { Panel } from "../components/panel.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatCount } from "../format/number.ts";
import { formatTime } from "../format/time.ts";
import { PATHS } from "../paths.ts";

/** Upstream models that are not healthy. */
export function Targets({ targets }: { readonly targets: readonly UnhealthyTarget[] }) {
  return (
    <Panel title="Unhealthy targets">
      {targets.length === 0 ? (
        <p className="text-sm text-muted">No circuit is open, and less than 10% of recent calls failed.</p>
      ) : (
        <ul className="-my-3 divide-y divide-line">
          {targets.map((target) => (
            <li key={`${target.provider} ${target.name}`} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-3">
              <span className="min-w-0 flex-1 basis-48">
                <bdi className="block font-medium wrap-anywhere">{target.name}</bdi>
                <bdi className="block text-sm text-muted">{target.provider}</bdi>
              </span>
              <span className="text-sm text-muted tabular-nums">
                {formatCount(target.failures)} of {formatCount(target.attempts)} calls failed
              </span>
              <State target={target} />
            </li>
          ))}
        </ul>
      )}
      <p className="mt-5 text-sm">
        <TextLink to={PATHS.adminProviders}>All providers</TextLink>
      </p>
    </Panel>
  );
}

const STATES: Readonly<Record<TargetState, readonly [look: "warn" | "danger", label: string]>> = {
  [TargetState.UNSPECIFIED]: ["warn", "Unhealthy"],
  [TargetState.DEGRADED]: ["warn", "Degraded"],
  [TargetState.FAILING]: ["danger", "Failing"],
  [TargetState.CIRCUIT_OPEN]: ["danger", "Circuit open"],
  [TargetState.RECOVERING]: ["warn", "Recovering"],
};

function State({ target: { state, circuitOpenTime } }: { readonly target: UnhealthyTarget }) {
  const [look, label] = STATES[state];
  return (
    <Badge look={look}>
      {circuitOpenTime === undefined ? label : `${label}, since ${formatTime(circuitOpenTime)}`}
    </Badge>
  );
}
