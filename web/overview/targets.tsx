import type { UnhealthyTarget } from "../../gen/parley/console/v1/overview_pb.js";
import { HealthBadge } from "../components/health-badge.tsx";
import { Panel } from "../components/panel.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatShare } from "../format/health.ts";
import { PATHS } from "../paths.ts";

/** Upstream models that are not healthy. */
export function Targets({ targets }: { readonly targets: readonly UnhealthyTarget[] }) {
  return (
    <Panel title="Unhealthy targets">
      {targets.length === 0 ? (
        <p className="text-[0.9375rem] text-muted">No circuit is open, and less than 10% of recent calls failed.</p>
      ) : (
        <ul className="-my-3 divide-y divide-line">
          {targets.map((target) => (
            <li key={`${target.provider} ${target.name}`} className="flex flex-wrap items-center gap-x-4 gap-y-1 py-3">
              <span className="min-w-0 flex-1 basis-48">
                <bdi className="block font-medium wrap-anywhere">{target.name}</bdi>
                <bdi className="block text-sm text-muted">{target.provider}</bdi>
              </span>
              <span className="text-sm text-muted tabular-nums">
                Errors {formatShare(target.failures, target.attempts)}
              </span>
              <HealthBadge of={target} />
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
