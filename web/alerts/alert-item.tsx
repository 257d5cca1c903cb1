import { useMutation, useQuery } from "@tanstack/react-query";
import { type Alert, type AlertDelivery, AlertRule, AlertSeverity } from "../../gen/parley/console/v1/alert_pb.js";
import { accountsQuery } from "../api/accounts.ts";
import { alerts, refreshAlerts } from "../api/alerts.ts";
import { readFailure } from "../api/failure.ts";
import { useAccount, useMay } from "../api/session.ts";
import { Alert as Problem } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { TextLink } from "../components/text-link.tsx";
import { formatFromNow, formatMoment } from "../format/time.ts";
import { PATHS } from "../paths.ts";
import { Mute } from "./mute.tsx";

/** An alert with its state and its actions, and for administrators its messages. */
export function AlertItem({ alert }: { readonly alert: Alert }) {
  const { id, title, detail, severity, resolveTime, acknowledgeTime, muteUntil, deliveries } = alert;
  const isAll = useMay("alerts.manage");
  const acknowledge = useMutation({ mutationFn: () => alerts.acknowledge({ id }), onSuccess: refreshAlerts });
  const failing = acknowledge.isError ? readFailure(acknowledge.error) : undefined;
  return (
    <li className="px-4 py-3 text-sm sm:px-5">
      <div className="flex flex-wrap items-start justify-between gap-x-6 gap-y-3">
        <div className="min-w-0 flex-1 basis-80">
          <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
            <span className="font-medium wrap-anywhere">{title}</span>
            {resolveTime !== undefined ? (
              <Badge look="good">Resolved</Badge>
            ) : severity === AlertSeverity.CRITICAL ? (
              <Badge look="danger">Critical</Badge>
            ) : (
              <Badge look="warn">Warning</Badge>
            )}
            {muteUntil !== undefined && <Badge look="plain">Muted</Badge>}
          </p>
          <p className="mt-0.5 wrap-anywhere">{detail}</p>
          <Times alert={alert} />
        </div>
        <div className="flex flex-wrap items-center gap-2">
          {resolveTime === undefined && acknowledgeTime === undefined && (
            <Button
              look="secondary"
              size="small"
              busy={acknowledge.isPending}
              aria-label={`Acknowledge: ${title}`}
              onClick={() => acknowledge.mutate()}
            >
              Acknowledge
            </Button>
          )}
          {isAll && <Mute alert={alert} />}
        </div>
      </div>
      {failing && (
        <div className="mt-3">
          <Problem>{failing.message}</Problem>
        </div>
      )}
      {deliveries.length > 0 && <Messages deliveries={deliveries} />}
    </li>
  );
}

function Times({ alert }: { readonly alert: Alert }) {
  const { openTime, resolveTime, acknowledgeTime, acknowledgedBy, muteUntil, mutedBy } = alert;
  const nameOf = useNames();
  const link = linkOf(alert);
  return (
    <p className="mt-0.5 flex flex-wrap gap-x-4 text-muted">
      {openTime && <span title={formatMoment(openTime)}>Opened {formatFromNow(openTime)}</span>}
      {resolveTime && <span title={formatMoment(resolveTime)}>Resolved {formatFromNow(resolveTime)}</span>}
      {acknowledgeTime && (
        <span title={formatMoment(acknowledgeTime)}>
          Acknowledged by <bdi>{nameOf(acknowledgedBy)}</bdi> {formatFromNow(acknowledgeTime)}
        </span>
      )}
      {muteUntil && (
        <span>
          Muted by <bdi>{nameOf(mutedBy)}</bdi> until {formatMoment(muteUntil)}
        </span>
      )}
      {link !== undefined && <TextLink to={link.path}>{link.name}</TextLink>}
    </p>
  );
}

/** Returns a function that names an account: `you`, its name, or `an administrator` if the reader cannot see accounts. */
function useNames(): (accountId: string) => string {
  const account = useAccount();
  const { data = [] } = useQuery({ ...accountsQuery, enabled: useMay("accounts.read") });
  return (accountId) =>
    accountId === account.id ? "you" : (data.find(({ id }) => id === accountId)?.name ?? "an administrator");
}

/** Returns the page with details about the subject of an alert. */
function linkOf({ rule, subject }: Alert): { readonly path: string; readonly name: string } | undefined {
  const [, kind = "", name = ""] = /^(\w+):(.*)$/.exec(subject) ?? [];
  const requests = (values: Record<string, string>): string =>
    `${PATHS.requests}?${new URLSearchParams(values).toString()}`;
  if (rule === AlertRule.PROVIDER_DOWN) return { path: PATHS.adminProviders, name: "Provider health" };
  if (rule === AlertRule.KEY_EXPIRING) return { path: PATHS.keys, name: "Keys" };
  if (kind === "model") return { path: requests({ model: name }), name: "Requests" };
  if (kind === "key") return { path: requests({ key: name }), name: "Requests" };
  return { path: PATHS.usage, name: "Usage" };
}

function Messages({ deliveries }: { readonly deliveries: readonly AlertDelivery[] }) {
  const failed = deliveries.filter(({ problem }) => problem !== "").length;
  const sent = deliveries.filter(({ sendTime }) => sendTime !== undefined).length;
  const summary = `${sent} of ${deliveries.length} messages sent${failed === 0 ? "" : `, ${failed} with a problem`}`;
  return (
    <details className="mt-2 text-sm text-muted">
      <summary className="min-h-6 w-fit cursor-pointer">{summary}</summary>
      <ul className="mt-2 space-y-1">
        {deliveries.map((delivery) => (
          <li key={delivery.id} className="wrap-anywhere">
            <bdi className="font-medium">{delivery.recipient}</bdi>
            {delivery.aboutEnd && " (about its end)"}: {stateOf(delivery)}
          </li>
        ))}
      </ul>
    </details>
  );
}

function stateOf({ sendTime, nextTime, problem, attempts }: AlertDelivery): string {
  if (sendTime !== undefined) return `sent ${formatFromNow(sendTime)}`;
  if (nextTime === undefined) return `not sent. ${problem}`;
  return attempts === 0 ? "waiting" : `tried ${attempts} times, next ${formatFromNow(nextTime)}. ${problem}`;
}
