import { useQuery } from "@tanstack/react-query";
import type { GetOverviewResponse } from "../../gen/parley/console/v1/overview_pb.js";
import { overviewQuery } from "../api/overview.ts";
import { useMay } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Loading, Page } from "../components/page.tsx";
import { Checklist } from "./checklist.tsx";
import { KeyNotices } from "./key-notices.tsx";
import { Spending } from "./spending.tsx";
import { Targets } from "./targets.tsx";
import { Traffic } from "./traffic.tsx";

/** Home page: cost, traffic, and what needs attention. */
export default function Overview() {
  const isAll = useMay("usage.read");
  const found = useQuery(overviewQuery);
  return (
    <Page isWide title="Overview" description={isAll ? "All accounts at a glance." : "Your account at a glance."}>
      {found.data !== undefined ? (
        <Shown overview={found.data} isAll={isAll} />
      ) : found.isPending ? (
        <Loading what="the overview" shape="tiles" />
      ) : (
        <Unavailable error={found.error} onRetry={() => void found.refetch()} />
      )}
    </Page>
  );
}

function Shown({ overview, isAll }: { readonly overview: GetOverviewResponse; readonly isAll: boolean }) {
  const { spending, traffic, unhealthyTargets, keys, checklist } = overview;
  return (
    <div className="space-y-6">
      {checklist && <Checklist state={checklist} />}
      {spending && <Spending spending={spending} />}
      {traffic && <Traffic traffic={traffic} />}
      <div className={`grid gap-6 *:min-w-0 ${isAll ? "xl:grid-cols-2" : ""}`}>
        {isAll && <Targets targets={unhealthyTargets} />}
        <KeyNotices keys={keys} />
      </div>
    </div>
  );
}
