import { useQuery } from "@tanstack/react-query";
import { Link, useLocation } from "wouter";
import type { Model } from "../../gen/parley/console/v1/model_pb.js";
import { Modality } from "../../gen/parley/v1/modality_pb.js";
import { modelsQuery } from "../api/models.ts";
import { useMay } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { buttonClass } from "../components/button.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { TextLink } from "../components/text-link.tsx";
import { PATHS } from "../paths.ts";
import { RecentRequests } from "../requests/recent.tsx";
import { UsageSection } from "../usage/usage-section.tsx";
import { makes } from "./abilities.ts";
import { ModelFacts } from "./model-facts.tsx";
import { ModelKeys } from "./model-keys.tsx";
import { actionsOn } from "./model-row.tsx";
import { Prices } from "./prices.tsx";
import { Targets } from "./targets.tsx";

const REFRESH_MS = 15_000;

/** Page of one model: what it can do, its prices, targets and their health, its keys, usage and requests. */
export default function OneModel() {
  const id = useModelId();
  const models = useQuery({ ...modelsQuery, refetchInterval: REFRESH_MS });
  if (models.isPending) return <Loading what="the model" shape="page" />;
  const model = models.data?.find((each) => each.id === id);
  if (model !== undefined) return <ModelView model={model} all={models.data ?? []} />;
  return (
    <Page title="Model">
      {models.isLoadingError ? (
        <Unavailable error={models.error} onRetry={() => void models.refetch()} />
      ) : (
        <Empty title="No such model">
          No model has the name <bdi className="wrap-anywhere">{id}</bdi>.{" "}
          <TextLink to={PATHS.models}>All models</TextLink>
        </Empty>
      )}
    </Page>
  );
}

/** Returns the ID of the URL. It is read from there, because the router decodes a part of it. */
function useModelId(): string {
  useLocation();
  const path = location.pathname.slice(PATHS.models.length + 1);
  try {
    return decodeURIComponent(path);
  } catch {
    return path;
  }
}

function ModelView({ model, all }: { readonly model: Model; readonly all: readonly Model[] }) {
  const { id, provider, description, targets } = model;
  const isRoute = targets.length > 0;
  const mayListKeys = useMay("keys.read");
  return (
    <Page
      isWide
      title={id}
      description={[provider, description === id ? "" : description].filter(Boolean).join(" · ")}
      actions={
        <div className="flex flex-wrap gap-2">
          {actionsOn(model, { isRoute, isEmbedding: makes(model, Modality.EMBEDDING) }).map(
            ({ verb, Icon, ...action }) =>
              "href" in action && (
                <Link key={verb} href={action.href} className={buttonClass("secondary", "small")}>
                  <Icon aria-hidden className="size-4" />
                  {verb}
                </Link>
              ),
          )}
          <Link href={PATHS.models} className={buttonClass("secondary", "small")}>
            All models
          </Link>
        </div>
      }
    >
      <div className="space-y-6">
        <div className="grid items-start gap-4 xl:grid-cols-2">
          <div className="grid gap-4">
            <Panel title="Model">
              <ModelFacts model={model} all={all} />
            </Panel>
            <Targets model={model} all={all} />
          </div>
          <div className="grid gap-4">
            {!isRoute && (
              <Panel title="Prices" description="In US dollars.">
                <Prices model={model} />
              </Panel>
            )}
            <ModelKeys modelId={id} isOfAll={mayListKeys} />
          </div>
        </div>
        {/* Usage is counted for the served model, so a route has none. */}
        {!isRoute && <UsageSection of={{ model: id }} by="key" />}
        <RecentRequests filter={{ model: id }} columns={COLUMNS} query={{ model: id }} />
      </div>
    </Page>
  );
}

const COLUMNS = ["time", "model", "key", "status", "tokens", "cost", "duration", "ttft"] as const;
