import type { MessageInitShape } from "@bufbuild/protobuf";
import { durationMs, timestampFromMs } from "@bufbuild/protobuf/wkt";
import type { ServiceImpl } from "@connectrpc/connect";
import {
  type AdminKeySchema,
  type AdminKeyService,
  AdminKeyState,
} from "../../../gen/parley/console/v1/admin_key_pb.js";
import type { AdminKeyRecord } from "../../access/admin-key-store.ts";
import { adminKeyState, createAdminKey, listAdminKeys, revokeAdminKey } from "../../access/admin-keys.ts";
import type { AccessContext } from "../../access/context.ts";
import { optionalTime } from "./account-messages.ts";
import { actorOf, signedInOf } from "./call.ts";
import { checkLifetime } from "./key-service.ts";

const STATES = {
  active: AdminKeyState.ACTIVE,
  expired: AdminKeyState.EXPIRED,
  revoked: AdminKeyState.REVOKED,
} as const;

/** Keys of programs for administration. */
export function createAdminKeyService(access: AccessContext): ServiceImpl<typeof AdminKeyService> {
  const toMessage = (key: AdminKeyRecord): MessageInitShape<typeof AdminKeySchema> => ({
    id: key.id,
    name: key.name,
    display: key.display,
    accountId: key.accountId,
    permissions: [...key.permissions],
    state: STATES[adminKeyState(key, access.clock.now())],
    createTime: timestampFromMs(key.createdAtMs),
    ...optionalTime("expireTime", key.expiresAtMs),
    ...optionalTime("lastUseTime", key.lastUsedAtMs),
    ...optionalTime("revokeTime", key.revokedAtMs),
  });
  return {
    async list() {
      return { keys: (await listAdminKeys(access)).map(toMessage) };
    },

    async create({ name, permissions, lifetime }, context) {
      const { record, secret } = await createAdminKey(access, {
        name,
        permissions,
        lifetimeMs: lifetime && checkLifetime(Math.round(durationMs(lifetime))),
        maker: signedInOf(context),
        actor: actorOf(context),
      });
      return { key: toMessage(record), secret };
    },

    async revoke({ id }, context) {
      return { key: toMessage(await revokeAdminKey(access, { id, by: signedInOf(context), actor: actorOf(context) })) };
    },
  };
}
