import type { ReactNode } from "react";
import { Link } from "wouter";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { useOwners } from "../api/owners.ts";
import { CopyIcon } from "../components/copy-icon.tsx";
import { PATHS } from "../paths.ts";
import type { AttributionField } from "../format/attribution.ts";
import { keyLabel, NO_CALLER } from "../format/callers.ts";
import { formatDuration } from "../format/duration.ts";
import { formatPreciseMoment } from "../format/time.ts";
import { describeEndpoint } from "./entrances.ts";
import { describeFinish, tokensPerSecond } from "./measures.ts";

/** Details of a request: IDs, models, key, account, endpoint and times. */
export function Facts({ request }: { readonly request: LoggedRequest }) {
  const { id, requestId, requestedModel, servedModel, keyId, streamed, client, traceId } = request;
  const { startTime, endTime, durationMs, firstContentMs } = request;
  const finish = describeFinish(request);
  const perSecond = tokensPerSecond(request);
  return (
    <dl className="grid gap-x-6 gap-y-4 text-sm sm:grid-cols-2">
      <Fact name="Request ID">
        <Copied text={requestId} what="the request ID" />
      </Fact>
      <Fact name="Completion ID">
        <Copied text={id} what="the completion ID" />
      </Fact>
      <Fact name="Requested model">
        <bdi>{requestedModel || "Unknown: the request could not be parsed"}</bdi>
      </Fact>
      <Fact name="Served by">
        <bdi>{servedModel || "None"}</bdi>
      </Fact>
      <Fact name="Key">
        <Link
          href={`${PATHS.requests}?${new URLSearchParams({ key: keyId }).toString()}`}
          className="text-accent underline underline-offset-2"
        >
          <bdi>{keyLabel(request)}</bdi>
        </Link>
      </Fact>
      <Fact name="Account">
        <Owner id={request.accountId} />
      </Fact>
      <Fact name="Endpoint">
        {describeEndpoint(request)}
        {streamed ? " (streamed)" : " (not streamed)"}
      </Fact>
      {client !== "" && (
        <Fact name="Client">
          <bdi>{client}</bdi>
        </Fact>
      )}
      {request.endUser !== "" && (
        <Fact name="End user">
          <Narrowing field="endUser" value={request.endUser} />
        </Fact>
      )}
      {request.session !== "" && (
        <Fact name="Session">
          <Narrowing field="session" value={request.session} />
        </Fact>
      )}
      {request.agent !== "" && (
        <Fact name="Agent">
          <Narrowing field="agent" value={request.agent} />
        </Fact>
      )}
      {request.tags.length > 0 && (
        <Fact name="Tags">
          <ul className="flex flex-wrap gap-x-3">
            {request.tags.map((tag) => (
              <li key={tag}>
                <Narrowing field="tag" value={tag} />
              </li>
            ))}
          </ul>
        </Fact>
      )}
      {finish !== undefined && <Fact name="Finish reason">{finish}</Fact>}
      <Fact name="Duration">{formatDuration(durationMs)}</Fact>
      {firstContentMs !== undefined && <Fact name="Time to first token">{formatDuration(firstContentMs)}</Fact>}
      {perSecond !== undefined && <Fact name="Tokens per second">{perSecond.toFixed(1)}</Fact>}
      <Fact name="Started">{startTime && formatPreciseMoment(startTime)}</Fact>
      <Fact name="Ended">{endTime && formatPreciseMoment(endTime)}</Fact>
      {traceId !== "" && (
        <Fact name="Trace ID">
          <Copied text={traceId} what="the trace ID" />
        </Fact>
      )}
    </dl>
  );
}

/** Link to all requests with the same value of a field. */
function Narrowing({ field, value }: { readonly field: AttributionField; readonly value: string }) {
  return (
    <Link
      href={`${PATHS.requests}?${new URLSearchParams({ [field]: value }).toString()}`}
      className="text-accent underline underline-offset-2"
    >
      <bdi>{value}</bdi>
    </Link>
  );
}

function Fact({ name, children }: { readonly name: string; readonly children: ReactNode }) {
  return (
    <div className="min-w-0">
      <dt className="text-muted">{name}</dt>
      <dd className="mt-0.5 wrap-anywhere">{children}</dd>
    </div>
  );
}

function Copied({ text, what }: { readonly text: string; readonly what: string }) {
  return (
    <span className="flex items-center gap-x-1.5">
      <code className="min-w-0 font-mono wrap-anywhere">{text}</code>
      <CopyIcon text={text} what={what} />
    </span>
  );
}

function Owner({ id }: { readonly id: string }) {
  const found = useOwners().find((each) => each.id === id);
  if (id === NO_CALLER) return "None";
  return <bdi>{found === undefined ? id : found.email || found.name}</bdi>;
}
