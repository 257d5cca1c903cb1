import { useMutation, useQuery } from "@tanstack/react-query";
import type { OpenSession } from "../../gen/parley/console/v1/session_pb.js";
import { readFailure } from "../api/failure.ts";
import { queryClient } from "../api/query-client.ts";
import { openSessionsQuery, sessions } from "../api/session.ts";
import { Alert, Unavailable } from "../components/alert.tsx";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { notify } from "../components/notify.ts";
import { Loading } from "../components/page.tsx";
import { RelativeTime } from "../components/relative-time.tsx";

/** Open sessions of the account, with a button that ends all others. */
export function Sessions() {
  const list = useQuery(openSessionsQuery);
  const signOut = useMutation({
    mutationFn: () => sessions.signOutElsewhere({}),
    onSuccess: ({ ended }) => {
      notify(describeEnded(ended));
      return queryClient.invalidateQueries({ queryKey: openSessionsQuery.queryKey });
    },
  });
  if (list.isPending) return <Loading what="the sessions" shape="lines" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  const others = list.data.filter(({ current }) => !current);
  const failing = signOut.isError ? readFailure(signOut.error) : undefined;
  return (
    <>
      <ul aria-label="Sessions" className="divide-y divide-line">
        {list.data.map((session) => (
          <Session key={toKey(session)} session={session} />
        ))}
      </ul>
      <div className="mt-5 flex flex-wrap items-center gap-4 border-t border-line pt-5">
        <Button
          look="secondary"
          disabled={others.length === 0}
          busy={signOut.isPending}
          onClick={() => signOut.mutate()}
        >
          Sign out other sessions
        </Button>
        {others.length === 0 && <p className="text-sm text-muted">No other sessions.</p>}
      </div>
      {failing && (
        <div className="mt-4">
          <Alert>{failing.message}</Alert>
        </div>
      )}
    </>
  );
}

function Session({
  session: { browser, network, createTime, lastUseTime, current },
}: {
  readonly session: OpenSession;
}) {
  return (
    <li className="py-3 text-sm first:pt-0 last:pb-0">
      <p className="flex flex-wrap items-center gap-x-3 gap-y-1">
        <bdi className="font-medium wrap-anywhere">{browser || "Unknown browser"}</bdi>
        {current && <Badge look="good">This session</Badge>}
      </p>
      <p className="mt-0.5 text-muted">
        {network === "" ? "Unknown network" : network}
        {createTime && (
          <>
            , signed in <RelativeTime time={createTime} />
          </>
        )}
        {lastUseTime && (
          <>
            , last active <RelativeTime time={lastUseTime} />
          </>
        )}
      </p>
    </li>
  );
}

/** Returns a React key. The API does not expose session IDs, so sessions with the same fields share a key. */
function toKey({ browser, network, createTime, current }: OpenSession): string {
  return `${browser} ${network} ${createTime?.seconds} ${createTime?.nanos} ${current}`;
}

function describeEnded(count: number): string {
  return count === 1 ? "Signed out of 1 other session." : `Signed out of ${count} other sessions.`;
}
