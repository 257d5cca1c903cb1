import { timestampMs } from "@bufbuild/protobuf/wkt";
import type { Invitation } from "../../gen/parley/console/v1/account_pb.js";
import { Badge } from "../components/badge.tsx";
import { Button } from "../components/button.tsx";
import { formatFromNow } from "../format/time.ts";
import { roleName } from "../format/roles.ts";
import { teamRoleName } from "../format/team-roles.ts";

/** Describes the recipient of an invitation. */
export function invited({ email }: Invitation): string {
  return email === "" ? "Anyone with the link" : email;
}

/** Returns the state of an invitation. */
export function invitationState({ useTime, expireTime }: Invitation): "open" | "used" | "expired" {
  if (useTime !== undefined) return "used";
  return expireTime !== undefined && timestampMs(expireTime) <= Date.now() ? "expired" : "open";
}

interface InvitationItemProps {
  readonly invitation: Invitation;
  /** Name of the account that created the invitation. */
  readonly inviter: string;
  /** Name of the team that the person joins; empty for none. */
  readonly team: string;
  /** Names of custom roles by ID. */
  readonly roleNames: ReadonlyMap<string, string>;
  /** Undefined if the invitation cannot be revoked. */
  readonly onRevoke: (() => void) | undefined;
}

export function InvitationItem({ invitation, inviter, team, roleNames, onRevoke }: InvitationItemProps) {
  const { createTime } = invitation;
  return (
    <li className="flex items-center justify-between gap-x-4 px-4 py-2 text-sm lg:px-5">
      <div className="min-w-0">
        <h2 className="flex flex-wrap items-center gap-x-2 gap-y-1 font-medium">
          <bdi className="wrap-anywhere">{invited(invitation)}</bdi>
          <State invitation={invitation} />
        </h2>
        <p className="wrap-anywhere text-muted">
          {roleName(invitation, roleNames)}
          {invitation.teamId !== "" && (
            <>
              , {teamRoleName(invitation.teamRole).toLowerCase()} of <bdi>{team}</bdi>
            </>
          )}
          , invited by <bdi>{inviter}</bdi>
          {createTime && `, ${formatFromNow(createTime)}`}
        </p>
      </div>
      {onRevoke && (
        <Button
          look="quiet danger"
          size="small"
          className="-mr-3 shrink-0"
          onClick={onRevoke}
          aria-label={`Revoke the invitation for ${invited(invitation).toLowerCase()}`}
        >
          Revoke
        </Button>
      )}
    </li>
  );
}

function State({ invitation }: { readonly invitation: Invitation }) {
  const { useTime, expireTime } = invitation;
  switch (invitationState(invitation)) {
    case "used":
      return <Badge look="plain">Used {useTime && formatFromNow(useTime)}</Badge>;
    case "expired":
      return <Badge look="plain">Expired {expireTime && formatFromNow(expireTime)}</Badge>;
    case "open":
      return <Badge look="good">Pending, expires {expireTime && formatFromNow(expireTime)}</Badge>;
  }
}
