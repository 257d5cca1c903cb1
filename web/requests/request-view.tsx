import type { ReactNode } from "react";
import { MessageSquareText, Waypoints } from "lucide-react";
import { Link, useLocation } from "wouter";
import { adviceFor } from "../../src/inbound/failure-advice.ts";
import type { LoggedRequest } from "../../gen/parley/console/v1/request_pb.js";
import { StopKind } from "../../gen/parley/console/v1/stop_pb.js";
import { useOwners } from "../api/owners.ts";
import { readFailure } from "../api/failure.ts";
import { queryClient } from "../api/query-client.ts";
import { contentQuery, useMayReadContent } from "../api/requests.ts";
import { buttonClass } from "../components/button.tsx";
import { OutcomeBadge } from "../components/outcome-badge.tsx";
import { notify } from "../components/notify.ts";
import { Panel } from "../components/panel.tsx";
import { Words } from "../components/prose.tsx";
import { PATHS } from "../paths.ts";
import { Attempts } from "./attempts.tsx";
import { Content } from "./content.tsx";
import { Facts } from "./facts.tsx";
import { FieldChanges } from "./field-changes.tsx";
import { Limits } from "./limits.tsx";
import { StopCalls } from "./stop-calls.tsx";
import { Tokens } from "./tokens.tsx";

interface RequestViewProps {
  readonly request: LoggedRequest;
  /** Shown in a column beside the log. Default: as a page. */
  readonly isNarrow?: boolean;
}

/** Everything about one request: status, attempts, cost and details. */
export function RequestView({ request, isNarrow = false }: RequestViewProps) {
  const hasLimits = request.requestLimit !== undefined || request.tokenLimit !== undefined;
  return (
    <div className="space-y-5">
      {!(isNarrow && request.outcome === "served") && <What request={request} isNarrow={isNarrow} />}
      {request.attempts.length > 0 && (
        <Panel
          title="Attempts"
          description="Upstream calls with retries, fallbacks and the waits between them, since the request arrived."
        >
          <Attempts request={request} />
        </Panel>
      )}
      {(hasLimits || !request.refused) && (
        <div className={`grid items-start gap-5 ${isNarrow ? "" : "lg:grid-cols-2"}`}>
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
      {(request.omittedCount > 0 || request.clamped.length > 0) && (
        <Panel
          title="Changed fields"
          description="Fields of the request that the provider did not get as they were sent."
        >
          <FieldChanges request={request} />
        </Panel>
      )}
      <Content key={request.id} request={request} />
      <Panel title="Details">
        <Facts request={request} />
        <Stopping request={request} />
      </Panel>
    </div>
  );
}

function describeLimits({ refused }: LoggedRequest): string {
  const whose = "Of the key or its account, whichever had less remaining.";
  return refused ? whose : `${whose} Includes this request.`;
}

/** Buttons that stop the session or end user of the request, for accounts that may change keys of its account. */
function Stopping({ request: { accountId, session, endUser } }: { readonly request: LoggedRequest }) {
  const isWritable = useOwners().some((owner) => owner.id === accountId && owner.isWritable);
  if (!isWritable || (session === "" && endUser === "")) return null;
  return (
    <div className="mt-5 flex flex-wrap gap-2">
      {session !== "" && <StopCalls accountId={accountId} kind={StopKind.SESSION} value={session} />}
      {endUser !== "" && <StopCalls accountId={accountId} kind={StopKind.END_USER} value={endUser} />}
    </div>
  );
}

/** Links to actions on the request. */
export function RequestLinks({ request: { id, requestedModel, traceUrl, outcome, refused } }: RequestViewProps) {
  const mayRead = useMayReadContent() && !refused;
  const [, navigate] = useLocation();
  const playground = `${PATHS.playground}?${new URLSearchParams({ model: requestedModel }).toString()}`;
  const open = async (): Promise<void> => {
    await openConversation(id, requestedModel);
    navigate(playground);
  };
  return (
    <>
      {requestedModel !== "" && outcome !== "model_not_found" && (
        <Link
          href={playground}
          onClick={(event) => {
            if (!mayRead || event.ctrlKey || event.metaKey || event.shiftKey) return;
            event.preventDefault();
            void open();
          }}
          className={buttonClass("secondary", "small")}
        >
          <MessageSquareText aria-hidden className="size-4" />
          Open in playground
        </Link>
      )}
      {traceUrl !== "" && (
        <a href={traceUrl} target="_blank" rel="noreferrer" className={buttonClass("secondary", "small")}>
          <Waypoints aria-hidden className="size-4" />
          Trace
        </a>
      )}
    </>
  );
}

/** Opens the stored conversation of a request in the playground. Without one, only the model is selected there. */
async function openConversation(id: string, model: string): Promise<void> {
  try {
    const content = await queryClient.fetchQuery(contentQuery(id));
    if (content?.request === undefined) return;
    const [{ fromStored }, { workspace }] = await Promise.all([
      import("../playground/stored.ts"),
      import("../playground/workspace.ts"),
    ]);
    workspace.open(fromStored(content.request, model));
  } catch (error) {
    notify(`The stored prompt could not be read: ${readFailure(error)?.message ?? "the request was cancelled."}`);
  }
}

const SERVED = "Completed.";

/** Outcome of the request, with explanation and advice. */
function What({ request: { outcome, message, refused, partial, servedModel }, isNarrow = false }: RequestViewProps) {
  const advice = adviceFor(outcome);
  return (
    <Panel title="Status">
      <div className="space-y-3 text-sm">
        <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
          {/* Beside the log, the side panel shows the badge above this one. */}
          {!isNarrow && <OutcomeBadge code={outcome} refused={refused} />}
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
