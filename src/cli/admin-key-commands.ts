import type { AdminKeyRecord } from "../access/admin-key-store.ts";
import { adminKeyState, createAdminKey, listAdminKeys, revokeAdminKey } from "../access/admin-keys.ts";
import { toIso } from "../access/audit-fields.ts";
import { isCustom, PERMISSIONS_EVERYWHERE } from "../access/permissions.ts";
import { ACTOR, withAccounts } from "./accounts-commands.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, parseDuration, UsageError, writeJson } from "./command.ts";
import { formatTable } from "./output.ts";
import { findAccountByIdOrEmail } from "./with-store.ts";

export const adminKeyCreate: Command = {
  name: "admin-key create",
  summary: "create a key by which programs administer, and print it once",
  positionals: ["NAME"],
  flags: {
    account: { value: "ID|EMAIL", help: "account of the key, which has no further permissions; required" },
    permissions: {
      value: "LIST",
      help: `permissions of the key, with commas; required: ${PERMISSIONS_EVERYWHERE.join(", ")}`,
    },
    expires: { value: "30d", help: "lifetime in m, h, d or w (default: does not expire)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const { account: asked, permissions, expires } = invocation.flags;
      if (asked === undefined || permissions === undefined)
        throw new UsageError("--account ID|EMAIL and --permissions LIST are required");
      const lifetimeMs = expires === undefined ? undefined : parseDuration(expires);
      if (expires !== undefined && lifetimeMs === undefined)
        throw new UsageError("--expires is a lifetime such as 90m, 12h, 30d or 4w, at most ten years");
      const { store } = access;
      const account = await findAccountByIdOrEmail(store, asked);
      const { role } = account;
      const { record, secret } = await createAdminKey(access, {
        name: invocation.positionals[0] ?? "",
        permissions: permissions.split(",").map((permission) => permission.trim()),
        lifetimeMs,
        maker: {
          account,
          memberships: await store.memberships(account.id),
          customRole: isCustom(role) ? (await store.roles()).find(({ id }) => id === role) : undefined,
        },
        actor: ACTOR,
      });
      if (invocation.switches.has("json")) writeJson(context.stdout, { ...toJson(record), key: secret });
      else {
        context.stderr.write(`Created ${record.id}. The key is shown only now:\n`);
        context.stdout.write(`${secret}\n`);
      }
    }),
};

export const adminKeyList: Command = {
  name: "admin-key list",
  summary: "list administration keys, newest first",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const keys = await listAdminKeys(access);
      if (invocation.switches.has("json")) return writeJson(context.stdout, keys.map(toJson));
      const rows = keys.map((key) => [
        key.id,
        key.display,
        adminKeyState(key, Date.now()),
        toIso(key.lastUsedAtMs) ?? "never",
        key.accountId,
        key.name,
      ]);
      context.stdout.write(`${formatTable([["ID", "KEY", "STATE", "LAST USED", "ACCOUNT", "NAME"], ...rows])}\n`);
    }),
};

export const adminKeyRevoke: Command = {
  name: "admin-key revoke",
  summary: "end an administration key at once",
  positionals: ["ID"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const key = await revokeAdminKey(access, { id: invocation.positionals[0] ?? "", actor: ACTOR });
      if (invocation.switches.has("json")) writeJson(context.stdout, toJson(key));
      else context.stdout.write(`Revoked ${key.id}.\n`);
    }),
};

function toJson(key: AdminKeyRecord): object {
  return {
    id: key.id,
    name: key.name,
    display: key.display,
    account: key.accountId,
    permissions: key.permissions,
    state: adminKeyState(key, Date.now()),
    created: toIso(key.createdAtMs),
    expires: toIso(key.expiresAtMs),
    last_used: toIso(key.lastUsedAtMs),
    revoked: toIso(key.revokedAtMs),
  };
}
