import { useMutation, useQuery } from "@tanstack/react-query";
import { type Stop, StopKind } from "../../gen/parley/console/v1/stop_pb.js";
import { useOwners } from "../api/owners.ts";
import { refreshStops, stops, stopsQuery } from "../api/stops.ts";
import { Button } from "../components/button.tsx";
import { notify } from "../components/notify.ts";
import { formatFromNow } from "../format/time.ts";

/** The sessions and end users that are stopped. Shows nothing when there are none. */
export function Stops() {
  const { data = [] } = useQuery(stopsQuery);
  if (data.length === 0) return null;
  return (
    <details className="mb-3 text-sm">
      <summary className="-ml-3 inline-flex min-h-9 items-center rounded-lg px-3 font-medium text-accent hover:bg-accent-soft">
        Stopped sessions and end users ({data.length})
      </summary>
      <ul className="divide-y divide-line rounded-lg border border-line px-4">
        {data.map((stop) => (
          <StopItem key={stop.id} stop={stop} />
        ))}
      </ul>
    </details>
  );
}

function StopItem({ stop: { id, accountId, kind, value, expireTime } }: { readonly stop: Stop }) {
  const owner = useOwners().find((each) => each.id === accountId);
  const remove = useMutation({
    mutationFn: () => stops.remove({ accountId, id }),
    async onSuccess() {
      await refreshStops();
      notify("Calls are allowed again.");
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
