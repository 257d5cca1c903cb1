import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";

/** Display names of the roles. */
export const ROLE_NAMES = [
  [AccountRole.DEVELOPER, "Developer"],
  [AccountRole.VIEWER, "Viewer"],
  [AccountRole.ADMINISTRATOR, "Administrator"],
  [AccountRole.OWNER, "Owner"],
] as const;

/** Returns the display name of a role. */
export function roleName(role: AccountRole): string {
  return ROLE_NAMES.find(([each]) => each === role)?.[1] ?? "Unknown";
}
