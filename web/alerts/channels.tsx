import { useMutation, useQuery } from "@tanstack/react-query";
import { lazy, Suspense, useState } from "react";
import { type AlertChannel, AlertSeverity, ChannelKind } from "../../gen/parley/console/v1/alert_pb.js";
import { alerts, channelsQuery, refreshAlerts } from "../api/alerts.ts";
import { readFailure } from "../api/failure.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { ConfirmDialog } from "../components/confirm-dialog.tsx";
import { Loading } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { formatFromNow, formatMoment } from "../format/time.ts";
import { RULE_NAMES } from "./rule-names.ts";

const AddChannel = lazy(() => import("./add-channel.tsx"));
const EditChannel = lazy(() => import("./edit-channel.tsx"));

const KINDS: Readonly<Record<ChannelKind, string>> = {
  [ChannelKind.UNSPECIFIED]: "",
  [ChannelKind.WEBHOOK]: "Webhook",
  [ChannelKind.SLACK]: "Slack",
  [ChannelKind.EMAIL]: "E-mail",
};

/** Panel of the channels, for administrators. */
export function Channels() {
  const found = useQuery(channelsQuery);
  const [adding, setAdding] = useState<"open" | "closed">();
  const hasMail = found.data?.hasMail === true;
  return (
    <Panel
      title="Channels"
      description={
        hasMail
          ? "Each channel gets the alerts that were chosen for it. Administrators, and owners of the key or account, get e-mail without a channel."
          : "Each channel gets the alerts that were chosen for it. For e-mail set smtp in the configuration file."
      }
    >
      {found.isPending ? (
        <Loading what="the channels" shape="lines" />
      ) : found.isLoadingError ? (
        <Unavailable error={found.error} onRetry={() => void found.refetch()} />
      ) : (
        <>
          {found.data.channels.length > 0 && (
            <ul aria-label="Channels" className="mb-5 divide-y divide-line border-y border-line">
              {found.data.channels.map((channel) => (
                <Channel key={channel.id} channel={channel} />
              ))}
            </ul>
          )}
          <Button look="secondary" onClick={() => setAdding("open")}>
            Add channel
          </Button>
        </>
      )}
      {adding && (
        <Suspense>
          <AddChannel open={adding === "open"} hasMail={hasMail} onClose={() => setAdding("closed")} />
        </Suspense>
      )}
    </Panel>
  );
}

/** Which alerts a channel gets. */
function alertsOf({ rules, leastSeverity }: AlertChannel): string {
  const names = RULE_NAMES.flatMap(([rule, name]) => (rules.includes(rule) ? [name.toLowerCase()] : [])).join(", ");
  return `${leastSeverity === AlertSeverity.CRITICAL ? "Critical alerts" : "Alerts"}: ${names || "all"}`;
}

function Channel({ channel }: { readonly channel: AlertChannel }) {
  const { id, kind, name, target, createTime } = channel;
  const [isRemoving, setRemoving] = useState(false);
  const [editing, setEditing] = useState<"open" | "closed">();
  const test = useMutation({ mutationFn: () => alerts.testChannel({ id }) });
  const remove = useMutation({
    mutationFn: () => alerts.removeChannel({ id }),
    async onSuccess() {
      setRemoving(false);
      await refreshAlerts();
    },
  });
  return (
    <li className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 py-3 text-sm">
      <div className="min-w-0 flex-1 basis-60">
        <p className="font-medium wrap-anywhere">
          <bdi>{name}</bdi>
        </p>
        <p className="mt-0.5 wrap-anywhere text-muted">
          {KINDS[kind]}: {target}
          {createTime && <span title={formatMoment(createTime)}>, added {formatFromNow(createTime)}</span>}
        </p>
        <p className="wrap-anywhere text-muted">{alertsOf(channel)}</p>
        <p role="status" className={test.isSuccess && test.data.problem === "" ? "text-good" : "text-danger"}>
          {test.isSuccess && (test.data.problem === "" ? "The test was sent." : test.data.problem)}
          {test.isError && readFailure(test.error)?.message}
        </p>
      </div>
      <div className="flex gap-2">
        <Button
          look="secondary"
          size="small"
          busy={test.isPending}
          aria-label={`Send a test to ${name}`}
          onClick={() => test.mutate()}
        >
          {test.isPending ? "Sending …" : "Send a test"}
        </Button>
        <Button look="secondary" size="small" aria-label={`Edit ${name}`} onClick={() => setEditing("open")}>
          Edit
        </Button>
        <Button look="quiet danger" size="small" aria-label={`Remove ${name}`} onClick={() => setRemoving(true)}>
          Remove
        </Button>
      </div>
      {editing && (
        <Suspense>
          <EditChannel target={channel} open={editing === "open"} onClose={() => setEditing("closed")} />
        </Suspense>
      )}
      <ConfirmDialog
        open={isRemoving}
        title={`Remove the channel ${name}?`}
        description="The channel gets no further alerts. Messages not yet sent are dropped."
        action="Remove channel"
        doing="Removing …"
        act={remove}
        onClose={() => setRemoving(false)}
      />
    </li>
  );
}
