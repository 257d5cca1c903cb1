import { useQuery } from "@tanstack/react-query";
import type { Model, Upstream } from "../../gen/parley/console/v1/model_pb.js";
import { dayHistoryQuery, upstreamsQuery } from "../api/models.ts";
import { useMay } from "../api/session.ts";
import { ReadableStrip } from "../administration/health-strip.tsx";
import { stripOf } from "../administration/target-periods.ts";
import { HealthBadge } from "../components/health-badge.tsx";
import { Panel } from "../components/panel.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatLatency, formatShare } from "../format/health.ts";
import { formatMicroUsd } from "../format/money.ts";
import { modelPath, PATHS } from "../paths.ts";

interface TargetsProps {
  readonly model: Model;
  readonly all: readonly Model[];
}

/** Health of a model, or of each of its targets. */
export function Targets({ model, all }: TargetsProps) {
  const maySeeUpstreams = useMay("configuration.read");
  const isRoute = model.targets.length > 0;
  const served = isRoute ? all.filter(({ id }) => model.targets.includes(id)) : [model];
  return (
    <Panel
      title={isRoute ? "Targets" : "Health"}
      description="Of the last 15 minutes, in the process that answers this page."
    >
      <ul className="-my-3 divide-y divide-line">
        {served.map((each) => (
          <li key={each.id} className="py-3 text-sm">
            <Target model={each} isNamed={isRoute} />
            {maySeeUpstreams && <History modelId={each.id} />}
          </li>
        ))}
      </ul>
      {maySeeUpstreams && (
        <p className="mt-5 text-sm">
          <TextLink to={PATHS.adminProviders}>Provider health</TextLink>
        </p>
      )}
    </Panel>
  );
}

function Target({ model, isNamed }: { readonly model: Model; readonly isNamed: boolean }) {
  const { id, provider, attempts, failures, firstContent, price } = model;
  return (
    <div className="flex flex-wrap items-center gap-x-4 gap-y-1">
      {isNamed && (
        <span className="w-full wrap-anywhere">
          <TextLink to={modelPath(id)}>{id}</TextLink> <bdi className="text-muted">{provider}</bdi>
          {price !== undefined && (
            <span className="text-muted">
              {" "}
              · {formatMicroUsd(price.inputMicroUsdPerMtok)} / {formatMicroUsd(price.outputMicroUsdPerMtok)} per million
              tokens
            </span>
          )}
        </span>
      )}
      <HealthBadge of={model} />
      <span>
        <span className="text-muted">Errors </span>
        {formatShare(failures, attempts)}
      </span>
      <span>
        <span className="text-muted">Time to first token </span>
        {formatLatency(firstContent, attempts)}
      </span>
    </div>
  );
}

/** The last 24 hours of a model's target, over all processes. */
function History({ modelId }: { readonly modelId: string }) {
  const upstream = useQuery(upstreamsQuery).data?.upstreams.find(({ modelIds }) => modelIds.includes(modelId));
  return upstream === undefined ? null : <Strip of={upstream} />;
}

function Strip({ of }: { readonly of: Upstream }) {
  const { data } = useQuery(dayHistoryQuery([of]));
  const strip = data && stripOf(data, of, "half hour");
  if (strip === undefined) return null;
  return (
    <div className="mt-3">
      <ReadableStrip strip={strip} label={`Last 24 hours of ${of.provider} / ${of.name}`} />
    </div>
  );
}
