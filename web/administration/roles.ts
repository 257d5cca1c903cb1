import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";

/** What the roles are called. */
export const ROLE_NAMES = [
  [AccountRole.MEMBER, "Member"],
  [AccountRole.ADMINISTRATOR, "Administrator"],
] as const;

/** What a role is called. */
export function roleName(role: AccountRole): string {
  return ROLE_NAMES.find(([each]) => each === role)?.[1] ?? "Unknown";
}
