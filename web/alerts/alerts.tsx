import { useInfiniteQuery } from "@tanstack/react-query";
import { alertsQuery } from "../api/alerts.ts";
import { useMay } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { AlertItem } from "./alert-item.tsx";
import { Channels } from "./channels.tsx";
import { Thresholds } from "./thresholds.tsx";

/** Page of alerts: open ones, then resolved ones, and for administrators the channels and thresholds. */
export default function Alerts() {
  const isAll = useMay("alerts.manage");
  return (
    <Page
      title="Alerts"
      description={
        isAll
          ? "Budgets, errors, latency, providers, keys and spending of all accounts. Alerts resolve by themselves."
          : "Budgets, errors, keys and spending of your account. Alerts resolve by themselves."
      }
    >
      <div className="space-y-8">
        <AlertList resolved={false} />
        <AlertList resolved />
        {isAll && <Channels />}
        {isAll && <Thresholds />}
      </div>
    </Page>
  );
}

function AlertList({ resolved }: { readonly resolved: boolean }) {
  const title = resolved ? "History" : "Open";
  return (
    <section aria-label={title}>
      <h2 className="mb-3 text-base font-semibold">{title}</h2>
      <Items resolved={resolved} title={title} />
    </section>
  );
}

function Items({ resolved, title }: { readonly resolved: boolean; readonly title: string }) {
  const list = useInfiniteQuery(alertsQuery(resolved));
  if (list.isPending) return <Loading what="the alerts" shape="lines" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  const all = list.data.pages.flatMap(({ alerts }) => alerts);
  if (all.length === 0)
    return resolved ? (
      <p className="text-sm text-muted">No alerts in the last 90 days.</p>
    ) : (
      <Empty title="No open alerts">Nothing needs your attention.</Empty>
    );
  return (
    <>
      <ul aria-label={`${title} alerts`} className="divide-y divide-line rounded-xl border border-line bg-surface">
        {all.map((alert) => (
          <AlertItem key={alert.id} alert={alert} />
        ))}
      </ul>
      {list.hasNextPage && (
        <div className="mt-4 text-center">
          <Button look="secondary" busy={list.isFetchingNextPage} onClick={() => void list.fetchNextPage()}>
            {list.isFetchingNextPage ? "Loading …" : "Show more"}
          </Button>
        </div>
      )}
    </>
  );
}
