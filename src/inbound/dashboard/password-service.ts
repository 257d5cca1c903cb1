import type { ServiceImpl } from "@connectrpc/connect";
import type { PasswordService } from "../../../gen/parley/console/v1/password_pb.js";
import type { AccessContext } from "../../access/context.ts";
import { PasswordResets, resetByLink } from "../../access/password-reset.ts";
import { callOf } from "./call.ts";

/** New passwords by link. */
export function createPasswordService(access: AccessContext): ServiceImpl<typeof PasswordService> {
  const resets = new PasswordResets(access);
  return {
    async requestReset({ email }, context) {
      await resets.request(email, callOf(context));
      return {};
    },

    async reset({ token, newPassword: password }, context) {
      await resetByLink(access, { token, password }, callOf(context));
      return {};
    },
  };
}
