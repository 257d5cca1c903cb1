import type { MessageInitShape } from "@bufbuild/protobuf";
import type { TeamMembershipSchema } from "../../../gen/parley/console/v1/team_pb.js";
import { TeamRole as RoleMessage } from "../../../gen/parley/console/v1/team_role_pb.js";
import { TEAM_ROLES } from "../../access/permissions.ts";
import type { Membership, TeamRole } from "../../access/team-store.ts";
import { invalidField } from "../../core/failure.ts";

const ROLES: Readonly<Record<TeamRole, RoleMessage>> = {
  maintainer: RoleMessage.MAINTAINER,
  developer: RoleMessage.DEVELOPER,
  viewer: RoleMessage.VIEWER,
};

/** The role in a team; undefined for none. */
export function toTeamRoleMessage(role: TeamRole | undefined): RoleMessage {
  return role === undefined ? RoleMessage.UNSPECIFIED : ROLES[role];
}

/** Reads the role of a request. Throws `invalid_request`. */
export function fromTeamRoleMessage(role: RoleMessage, field = "role"): TeamRole {
  const found = TEAM_ROLES.find((name) => ROLES[name] === role);
  if (found !== undefined) return found;
  throw invalidField(field, `must be one of ${TEAM_ROLES.map((name) => `TEAM_ROLE_${name.toUpperCase()}`).join(", ")}`);
}

/** A team of the signed-in account. */
export function toMembershipMessage(membership: Membership): MessageInitShape<typeof TeamMembershipSchema> {
  return { accountId: membership.teamId, name: membership.teamName, role: ROLES[membership.role] };
}
