import type { ReactNode } from "react";
import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "wouter";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { readFailure } from "../api/failure.ts";
import { requestQuery } from "../api/requests.ts";
import { Unavailable } from "../components/alert.tsx";
import { buttonClass } from "../components/button.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { Panel } from "../components/panel.tsx";
import { Words } from "../components/prose.tsx";
import { PATHS } from "../paths.ts";
import { Attempts } from "./attempts.tsx";
import { Facts } from "./facts.tsx";
import { Limits } from "./limits.tsx";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { adviceFor } from "../../src/inbound/failure-advice.ts";
import { Tokens } from "./tokens.tsx";

/** Page of one request: status, attempts, cost and details. */
export default function Request() {
  const id = useId();
  const found = useQuery(requestQuery(id));
  return (
    <Page
      title="Request"
      description="Status, timing and cost. Prompts and responses are never stored."
      actions={
        <Link href={PATHS.requests} className={buttonClass("secondary")}>
          All requests
        </Link>
      }
    >
      {found.data !== undefined ? (
        <Shown request={found.data} />
      ) : found.isPending ? (
        <Loading what="the request" />
      ) : readFailure(found.error)?.fields.has("id") === true ? (
        <Empty title="Request not found">
          No request has the ID <bdi className="wrap-anywhere">{id}</bdi>. Of refused requests only samples are kept,
          for 7 days: up to 5 a minute of a key and error.
        </Empty>
      ) : (
        <Unavailable error={found.error} onRetry={() => void found.refetch()} />
      )}
    </Page>
  );
}

function Shown({ request }: { readonly request: LoggedRequest }) {
  const hasLimits = request.requestLimit !== undefined || request.tokenLimit !== undefined;
  return (
    <div className="space-y-5">
      <What request={request} />
      {request.attempts.length > 0 && (
        <Panel
          title="Attempts"
          description="Upstream calls as they ended, with retries, second attempts beside slow ones, fallbacks and the waits between them."
        >
          <Attempts request={request} />
        </Panel>
      )}
      {(hasLimits || !request.refused) && (
        <div className="grid items-start gap-5 lg:grid-cols-2">
          {!request.refused && (
            <Panel title="Tokens and cost">
              <Tokens request={request} />
            </Panel>
          )}
          {hasLimits && (
            <Panel title="Rate limits at the time" description={describeLimits(request)}>
              <Limits request={request} />
            </Panel>
          )}
        </div>
      )}
      <Panel title="Details">
        <Facts request={request} />
      </Panel>
    </div>
  );
}

function describeLimits({ refused }: LoggedRequest): string {
  const whose = "Of the key or its account, whichever had less remaining.";
  return refused ? whose : `${whose} Includes this request.`;
}

const SERVED = "Completed.";

/** Outcome of the request, with explanation and advice. */
function What({ request: { outcome, message, refused, partial, servedModel } }: { readonly request: LoggedRequest }) {
  const advice = adviceFor(outcome);
  return (
    <Panel title="Status">
      <div className="space-y-3 text-[0.9375rem]">
        <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
          <OutcomeBadge code={outcome} refused={refused} />
          <span>{outcome === "served" ? SERVED : advice && <Words text={advice.means} />}</span>
        </p>
        {message !== "" && (
          <div>
            <p className="text-sm text-muted">Error message returned to the client:</p>
            <p className="mt-1 rounded-lg bg-sunken px-4 py-3 wrap-anywhere whitespace-pre-wrap">
              <bdi>{message}</bdi>
            </p>
          </div>
        )}
        {advice && (
          <Note>
            <Words text={advice.todo} />{" "}
            <a href={`${PATHS.docs}#section/Errors/${outcome}`} className="text-accent underline underline-offset-2">
              About this error
            </a>
          </Note>
        )}
        {partial && (
          <Note>
            The response of <bdi className="wrap-anywhere">{servedModel}</bdi> ended early: the client received only
            part of it.
          </Note>
        )}
        {refused && (
          <Note>
            No upstream call was made and nothing was charged. Refused requests are kept only for a short time.
          </Note>
        )}
      </div>
    </Panel>
  );
}

function Note({ children }: { readonly children: ReactNode }) {
  return <p className="text-muted">{children}</p>;
}

/**
 * Returns the ID from the URL. Clients choose request IDs, so the ID that the router has decoded may not be decodable
 * again.
 */
function useId(): string {
  const { id } = useParams<{ readonly id: string }>();
  try {
    return decodeURIComponent(location.pathname.split("/").at(-1) ?? id);
  } catch {
    return id;
  }
}
