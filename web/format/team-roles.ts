import { TeamRole } from "../../gen/parley/console/v1/team_role_pb.js";

/** Display names of the roles in a team. */
export const TEAM_ROLE_NAMES = [
  [TeamRole.DEVELOPER, "Developer"],
  [TeamRole.VIEWER, "Viewer"],
  [TeamRole.MAINTAINER, "Maintainer"],
] as const;

/** Returns the display name of a role in a team. */
export function teamRoleName(role: TeamRole): string {
  return TEAM_ROLE_NAMES.find(([each]) => each === role)?.[1] ?? "Unknown";
}
