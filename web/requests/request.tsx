import { useQuery } from "@tanstack/react-query";
import { Link, useParams } from "wouter";
import { readFailure } from "../api/failure.ts";
import { requestQuery, useContentNotice } from "../api/requests.ts";
import { Unavailable } from "../components/alert.tsx";
import { buttonClass } from "../components/button.tsx";
import { Empty, Loading, Page } from "../components/page.tsx";
import { PATHS } from "../paths.ts";
import { RequestLinks, RequestView } from "./request-view.tsx";

/** Page of one request: status, attempts, cost and details. */
export default function Request() {
  const id = useId();
  const found = useQuery(requestQuery(id));
  return (
    <Page
      title="Request"
      description={`Status, timing and cost. ${useContentNotice()}`}
      actions={
        <div className="flex flex-wrap gap-2">
          {found.data !== undefined && <RequestLinks request={found.data} />}
          <Link href={PATHS.requests} className={buttonClass("secondary", "small")}>
            All requests
          </Link>
        </div>
      }
    >
      {found.data !== undefined ? (
        <RequestView request={found.data} />
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
