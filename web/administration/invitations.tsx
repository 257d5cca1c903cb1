import { lazy, Suspense, useState } from "react";
import { useQuery } from "@tanstack/react-query";
import type { Invitation } from "../../gen/parley/console/v1/account_pb.js";
import { SignUpMode } from "../../gen/parley/console/v1/session_pb.js";
import { accountsQuery, invitationsQuery } from "../api/accounts.ts";
import { useRoleNames } from "../api/roles.ts";
import { sessionQuery } from "../api/session.ts";
import { Unavailable } from "../components/alert.tsx";
import { Button } from "../components/button.tsx";
import { More, useShown } from "../components/more.tsx";
import { Empty, Loading } from "../components/page.tsx";
import { Administration } from "./administration.tsx";
import { InvitationItem, invitationState } from "./invitation-item.tsx";

const Invite = lazy(() => import("./invite.tsx"));
const RevokeInvitation = lazy(() => import("./revoke-invitation.tsx"));

/** Number of invitations shown initially, and added per click on "Show more". */
const SHOWN = 50;

/** Page of all invitations, for administrators. */
export function Invitations() {
  const [creation, setCreation] = useState<"open" | "closed">();
  const { signUpMode, acceptsPasswords = true, providerName = "" } = useQuery(sessionQuery).data ?? {};
  const isClosed = signUpMode === SignUpMode.CLOSED;
  const invite = isClosed ? undefined : <Button onClick={() => setCreation("open")}>Invite</Button>;
  return (
    <Administration
      title="Invitations"
      description={`${acceptsPasswords ? "One-time links to create an account." : `Addresses that get an account at the first sign-in with ${providerName}.`} They expire after 7 days.`}
      actions={invite}
    >
      {() => (
        <>
          {isClosed && (
            <p className="mb-5 rounded-lg bg-warn-soft px-4 py-3 text-sm text-warn">
              Sign-up is closed, so invitations cannot be used. To change this, set{" "}
              <code className="font-mono">sign_up</code> in the configuration file.
            </p>
          )}
          <InvitationList />
          {creation && (
            <Suspense>
              <Invite open={creation === "open"} onClose={() => setCreation("closed")} />
            </Suspense>
          )}
        </>
      )}
    </Administration>
  );
}

function InvitationList() {
  const list = useQuery(invitationsQuery);
  const { data: accounts = [] } = useQuery(accountsQuery);
  const roleNames = useRoleNames();
  const [act, setAct] = useState<{ readonly target: Invitation; readonly isOpen: boolean }>();
  const shown = useShown(list.data ?? [], SHOWN);
  if (list.isPending) return <Loading what="the invitations" />;
  if (list.isLoadingError) return <Unavailable error={list.error} onRetry={() => void list.refetch()} />;
  const names = new Map(accounts.map(({ id, name }) => [id, name]));
  return (
    <>
      {list.data.length === 0 ? (
        <Empty title="No invitations">Used and expired invitations stay here for 30 days.</Empty>
      ) : (
        <ul aria-label="Invitations" className="divide-y divide-line rounded-xl border border-line bg-surface">
          {shown.visible.map((invitation) => (
            <InvitationItem
              key={invitation.id}
              invitation={invitation}
              roleNames={roleNames}
              inviter={names.get(invitation.createdBy) ?? invitation.createdBy}
              team={names.get(invitation.teamId) ?? invitation.teamId}
              onRevoke={
                invitationState(invitation) === "open" ? () => setAct({ target: invitation, isOpen: true }) : undefined
              }
            />
          ))}
        </ul>
      )}
      <More {...shown} />
      {act && (
        <Suspense>
          <RevokeInvitation
            key={act.target.id}
            target={act.target}
            open={act.isOpen}
            onClose={() => setAct({ ...act, isOpen: false })}
          />
        </Suspense>
      )}
    </>
  );
}
