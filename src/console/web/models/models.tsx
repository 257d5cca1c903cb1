import { useQuery } from "@tanstack/react-query";
import { settingsQuery } from "../api/settings.ts";
import { Unavailable } from "../parts/alert.tsx";
import { Badge } from "../parts/badge.tsx";
import { CopyButton } from "../parts/copy-button.tsx";
import { Empty, Loading, Page } from "../parts/page.tsx";

/** The models that can be asked for. */
export default function Models() {
  const settings = useQuery(settingsQuery);
  return (
    <Page title="Models" description="What a request may name as its model.">
      {settings.isPending ? (
        <Loading what="the models" />
      ) : settings.isError ? (
        <Unavailable error={settings.error} onRetry={() => void settings.refetch()} />
      ) : settings.data.models.length === 0 ? (
        <Empty title="No models">The configuration of this installation names none.</Empty>
      ) : (
        <ul aria-label="Models" className="divide-y divide-line rounded-xl border border-line bg-surface">
          {settings.data.models.map(({ id, images }) => (
            <li key={id} className="flex items-center justify-between gap-4 px-5 py-3">
              <span className="flex min-w-0 flex-wrap items-center gap-x-3 gap-y-1">
                <code className="font-mono text-sm wrap-anywhere">{id}</code>
                {images && <Badge look="plain">Makes images</Badge>}
              </span>
              <CopyButton text={id} what={`the name ${id}`} />
            </li>
          ))}
        </ul>
      )}
    </Page>
  );
}
