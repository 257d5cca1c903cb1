import { useState } from "react";
import { isAdministrator, useAccount, useTeams } from "../api/session.ts";
import { Page } from "../components/page.tsx";
import { useFilter } from "./filter.ts";
import { Filters } from "./filters.tsx";
import { FindRequest } from "./find-request.tsx";
import { Log } from "./log.tsx";

/** Page of the request log. */
export default function Requests() {
  const [filter, change] = useFilter();
  const [isLive, setLive] = useState(true);
  const isAll = isAdministrator(useAccount());
  const hasTeams = useTeams().length > 0;
  return (
    <Page
      isWide
      title="Requests"
      description={`${isAll ? "Requests of all accounts" : hasTeams ? "Requests of your account and teams" : "Requests of your account"}, and samples of refused ones. Prompts and responses are never stored.`}
    >
      <div className="grid gap-x-3 gap-y-3 xl:grid-cols-[minmax(0,1fr)_24rem]">
        <Filters filter={filter} onChange={change} />
        <FindRequest />
      </div>
      {/* A new instance per filter, so that no state of the previous filter remains. */}
      <Log key={JSON.stringify(filter)} filter={filter} isLive={isLive} onLive={setLive} />
    </Page>
  );
}
