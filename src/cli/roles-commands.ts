import { DEFAULT_ACCOUNT_ID } from "../access/key-store.ts";
import type { CustomRole } from "../access/role-store.ts";
import { createRole, removeRole } from "../access/roles.ts";
import { PERMISSIONS_EVERYWHERE, ROLES } from "../access/permissions.ts";
import { ACTOR, withAccounts } from "./accounts-commands.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, UsageError, writeJson } from "./command.ts";
import { formatTable } from "./output.ts";

/** The command line has the permissions of an owner. */
export const BY_COMMAND = {
  holder: { account: { id: DEFAULT_ACCOUNT_ID, role: "owner" }, memberships: [] },
  actor: ACTOR,
} as const;

const BASES = ["developer", "viewer"] as const;

export const rolesList: Command = {
  name: "roles list",
  summary: "list the custom roles with their permissions",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async ({ store }) => {
      const roles = await store.roles();
      if (invocation.switches.has("json")) return writeJson(context.stdout, roles.map(toJson));
      const rows = roles.map(({ id, name, base, permissions }) => [id, base, name, permissions.join(",")]);
      context.stdout.write(`${formatTable([["ID", "BASE", "NAME", "PERMISSIONS"], ...rows])}\n`);
    }),
};

export const rolesCreate: Command = {
  name: "roles create",
  summary: "create a role: a name for permissions that accounts can have",
  positionals: ["NAME"],
  flags: {
    permissions: {
      value: "LIST",
      help: `permissions in all accounts, with commas; required: ${PERMISSIONS_EVERYWHERE.join(", ")}`,
    },
    base: {
      value: BASES.join("|"),
      help: "role of its holders in their own account and in teams (default: developer)",
    },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const { permissions, base: word = "developer" } = invocation.flags;
      if (permissions === undefined) throw new UsageError("--permissions LIST is required");
      const base = BASES.find((known) => known === word);
      if (base === undefined) throw new UsageError(`--base is one of ${BASES.join(", ")}`);
      const role = await createRole(access, {
        name: invocation.positionals[0] ?? "",
        permissions: permissions.split(",").map((permission) => permission.trim()),
        base,
        ...BY_COMMAND,
      });
      if (invocation.switches.has("json")) writeJson(context.stdout, toJson(role));
      else context.stdout.write(`Created ${role.id} (${role.name}).\n`);
    }),
};

export const rolesRemove: Command = {
  name: "roles remove",
  summary: "remove a custom role that no account and no unused invitation has",
  positionals: ["ID|NAME"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const [asked = ""] = invocation.positionals;
      const role = (await access.store.roles()).find(({ id, name }) => id === asked || name === asked);
      if (role === undefined) {
        const isBuiltIn = ROLES.some((name) => name === asked);
        throw new UsageError(
          `${isBuiltIn ? `${asked} is built in` : `there is no role ${asked}`}; parley roles list shows all`,
        );
      }
      await removeRole(access, role.id, BY_COMMAND);
      if (invocation.switches.has("json")) writeJson(context.stdout, toJson(role));
      else context.stdout.write(`Removed ${role.id} (${role.name}).\n`);
    }),
};

function toJson({ id, name, base, permissions, createdAtMs }: CustomRole): object {
  return { id, name, base, permissions, created: new Date(createdAtMs).toISOString() };
}
