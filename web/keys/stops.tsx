import { useMutation, useQuery } from "@tanstack/react-query";
import { type Stop, StopKind } from "../../gen/parley/console/v1/stop_pb.js";
import { useOwners } from "../api/owners.ts";
import { refreshStops, stops, stopsQuery } from "../api/stops.ts";
import { Button } from "../components/button.tsx";
import { notify } from "../components/notify.ts";
import { Panel } from "../components/panel.tsx";
import { formatFromNow } from "../format/time.ts";

/** The sessions and end users that are stopped. Shows nothing when there are none. */
export function Stops() {
  const { data = [] } = useQuery(stopsQuery);
  if (data.length === 0) return null;
  return (
    <div className="mt-8">
      <Panel title="Stopped sessions and end users" description="Their calls with keys of the account are refused.">
        <ul className="divide-y divide-line">
          {data.map((stop) => (
            <StopItem key={stop.id} stop={stop} />
          ))}
        </ul>
      </Panel>
    </div>
  );
}

function StopItem({ stop: { id, accountId, kind, value, expireTime } }: { readonly stop: Stop }) {
  const owner = useOwners().find((each) => each.id === accountId);
  const remove = useMutation({
    mutationFn: () => stops.remove({ accountId, id }),
    async onSuccess() {
      await refreshStops();
      notify("Calls are let in again.");
    },
  });
  return (
    <li className="flex flex-wrap items-center gap-x-4 gap-y-1 py-2 text-sm">
      <span className="min-w-0 flex-1">
        {kind === StopKind.SESSION ? "Session" : "End user"} <bdi className="font-medium wrap-anywhere">{value}</bdi>
        <span className="block text-muted">
          <bdi>{owner?.name ?? accountId}</bdi>
          {expireTime !== undefined && `, ends ${formatFromNow(expireTime)}`}
        </span>
      </span>
      {owner?.isWritable === true && (
        <Button
          look="secondary"
          size="small"
          busy={remove.isPending}
          aria-label={`End the stop of ${value}`}
          onClick={() => remove.mutate()}
        >
          End stop
        </Button>
      )}
    </li>
  );
}
