import { expect, it } from "vitest";
import type { Role } from "../../../src/access/account-store.ts";
import type { Person } from "../../../src/access/oidc/person.ts";
import { roleOf } from "../../../src/access/oidc/roles.ts";

const roles = new Map<string, Role>([
  ["staff", "developer"],
  ["support", "role_support"],
  ["audit", "role_audit"],
  ["admins", "administrator"],
]);

it.each([
  [["staff", "support"], "role_support"],
  [["audit", "support"], "role_support"],
  [["support", "admins"], "administrator"],
  [["others"], "viewer"],
] as const)("people in the groups %j are %s", (groups, role) => {
  expect(roleOf({ groups } as unknown as Person, { roles, defaultRole: "viewer" })).toBe(role);
});
