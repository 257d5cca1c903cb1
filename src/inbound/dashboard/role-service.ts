import type { MessageInitShape } from "@bufbuild/protobuf";
import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import type { CreateRoleRequest, CustomRoleSchema, RoleService } from "../../../gen/parley/console/v1/role_pb.js";
import type { AccessContext } from "../../access/context.ts";
import { PERMISSIONS_EVERYWHERE } from "../../access/permissions.ts";
import type { CustomRole } from "../../access/role-store.ts";
import { changeRole, createRole, removeRole, type RoleRequest } from "../../access/roles.ts";
import { invalidField } from "../../core/failure.ts";
import { actorOf, signedInOf } from "./call.ts";

/** Roles that owners make. */
export function createRoleService(access: AccessContext): ServiceImpl<typeof RoleService> {
  return {
    async list() {
      return { roles: (await access.store.roles()).map(toMessage), permissions: [...PERMISSIONS_EVERYWHERE] };
    },

    async create(request, context) {
      return { role: toMessage(await createRole(access, readRole(request, context))) };
    },

    async update({ id, ...request }, context) {
      return { role: toMessage(await changeRole(access, id, readRole(request, context))) };
    },

    async remove({ id }, context) {
      await removeRole(access, id, { holder: signedInOf(context), actor: actorOf(context) });
      return {};
    },
  };
}

function readRole(
  { name, permissions, base }: Pick<CreateRoleRequest, "name" | "permissions" | "base">,
  context: Pick<HandlerContext, "values">,
): RoleRequest {
  if (base !== AccountRole.UNSPECIFIED && base !== AccountRole.DEVELOPER && base !== AccountRole.VIEWER)
    throw invalidField("base", "must be ACCOUNT_ROLE_DEVELOPER or ACCOUNT_ROLE_VIEWER");
  return {
    name,
    permissions,
    base: base === AccountRole.VIEWER ? "viewer" : "developer",
    holder: signedInOf(context),
    actor: actorOf(context),
  };
}

/** The role that a custom one builds on. */
export function toBaseMessage({ base }: Pick<CustomRole, "base">): AccountRole {
  return base === "viewer" ? AccountRole.VIEWER : AccountRole.DEVELOPER;
}

function toMessage({
  id,
  name,
  permissions,
  base,
  createdAtMs,
}: CustomRole): MessageInitShape<typeof CustomRoleSchema> {
  return {
    id,
    name,
    permissions: [...permissions],
    base: toBaseMessage({ base }),
    createTime: timestampFromMs(createdAtMs),
  };
}
