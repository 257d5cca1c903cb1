import { useState } from "react";
import { useContentNotice } from "../api/requests.ts";
import { useMay, useTeams } from "../api/session.ts";
import { Page } from "../components/page.tsx";
import { AttributionSum } from "./attribution-sum.tsx";
import { ColumnMenu } from "./column-menu.tsx";
import { ExportMenu } from "./export-menu.tsx";
import { useLogView } from "./filter.ts";
import { Filters } from "./filters.tsx";
import { FindRequest } from "./find-request.tsx";
import { Log } from "./log.tsx";
import { SavedFilters } from "./saved-filters.tsx";
import { SortedLog } from "./sorted-log.tsx";
import { Stops } from "./stops.tsx";
import { useColumns } from "./use-columns.ts";

/** Page of the request log. */
export default function Requests() {
  const view = useLogView();
  const [columns, setColumns] = useColumns();
  const [isLive, setLive] = useState(true);
  const [slot, setSlot] = useState<HTMLElement | null>(null);
  const isAll = useMay("requests.read");
  const hasTeams = useTeams().length > 0;
  // A new instance per filter, so that no state of the previous filter remains.
  const key = JSON.stringify([view.filter, view.order, view.isAscending]);
  return (
    <Page
      isWide
      title="Requests"
      description={`${isAll ? "Requests of all accounts" : hasTeams ? "Requests of your account and teams" : "Requests of your account"}, and samples of refused ones. ${useContentNotice()}`}
      actions={<FindRequest />}
    >
      <Filters view={view}>
        <SavedFilters query={view.query} />
        <ColumnMenu columns={columns} onChange={setColumns} />
        <ExportMenu view={view} />
        <div ref={setSlot} className="ml-auto flex items-center gap-2" />
      </Filters>
      <Stops />
      <AttributionSum key={key} filter={view.filter} />
      {view.order === "time" && !view.isAscending ? (
        <Log key={key} view={view} columns={columns} isLive={isLive} onLive={setLive} slot={slot} />
      ) : (
        <SortedLog key={key} view={view} columns={columns} />
      )}
    </Page>
  );
}
