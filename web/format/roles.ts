import { AccountRole } from "../../gen/parley/console/v1/account_pb.js";

/** Display names of the roles. */
export const ROLE_NAMES = [
  [AccountRole.DEVELOPER, "Developer"],
  [AccountRole.VIEWER, "Viewer"],
  [AccountRole.ADMINISTRATOR, "Administrator"],
  [AccountRole.OWNER, "Owner"],
] as const;

/** Who has a role: a built-in one, or a custom one by its ID. */
export interface RoleHolder {
  readonly role: AccountRole;
  readonly customRoleId: string;
}

/** Returns the display name of a role. `names`: those of custom roles by ID. */
export function roleName({ role, customRoleId }: RoleHolder, names: ReadonlyMap<string, string>): string {
  if (role === AccountRole.CUSTOM) return names.get(customRoleId) ?? "Custom role";
  return ROLE_NAMES.find(([each]) => each === role)?.[1] ?? "Unknown";
}

/** The value of a role in a field. */
export function roleValue({ role, customRoleId }: RoleHolder): string {
  return role === AccountRole.CUSTOM ? customRoleId : String(role);
}

/** Reads the value of a field. */
export function readRoleValue(value: string): RoleHolder {
  const isCustom = value.startsWith("role_");
  return isCustom ? { role: AccountRole.CUSTOM, customRoleId: value } : { role: Number(value), customRoleId: "" };
}
