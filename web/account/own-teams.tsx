import { lazy, Suspense, useState } from "react";
import type { TeamMembership } from "../../gen/parley/console/v1/team_pb.js";
import { TeamRole } from "../../gen/parley/console/v1/team_role_pb.js";
import { mayWrite, useAccount } from "../api/session.ts";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { teamRoleName } from "../format/team-roles.ts";

const Members = lazy(() => import("../teams/members.tsx"));

/** The teams of the signed-in account. */
export function OwnTeams({ teams }: { readonly teams: readonly TeamMembership[] }) {
  const account = useAccount();
  const [shown, setShown] = useState<{ readonly team: TeamMembership; readonly isOpen: boolean }>();
  return (
    <>
      <ul aria-label="Teams" className="divide-y divide-line">
        {teams.map((team) => (
          <li key={team.accountId} className="flex flex-wrap items-center justify-between gap-x-4 gap-y-2 py-2">
            <p className="flex min-w-0 flex-wrap items-center gap-x-3">
              <bdi className="font-medium wrap-anywhere">{team.name}</bdi>
              <Badge look="plain">{teamRoleName(team.role)}</Badge>
            </p>
            <Button
              look="secondary"
              size="small"
              aria-label={`Members of ${team.name}`}
              onClick={() => setShown({ team, isOpen: true })}
            >
              Members
            </Button>
          </li>
        ))}
      </ul>
      {shown && (
        <Suspense>
          <Members
            key={shown.team.accountId}
            team={{ id: shown.team.accountId, name: shown.team.name }}
            isWritable={mayWrite(account) && shown.team.role === TeamRole.MAINTAINER}
            open={shown.isOpen}
            onClose={() => setShown({ ...shown, isOpen: false })}
          />
        </Suspense>
      )}
    </>
  );
}
