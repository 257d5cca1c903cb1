import type { ServiceImpl } from "@connectrpc/connect";
import type { AccountService } from "../../gen/parley/console/v1/account_pb.js";
import { updateAccount } from "../access/accounts.ts";
import type { AccessContext } from "../access/context.ts";
import { createInvitation, revokeInvitation } from "../access/invitations.ts";
import { requireAdministrator, requireFresh } from "../access/sessions.ts";
import { fromRoleMessage, toAccountMessage, toInvitationMessage, toSecurityEventMessage } from "./account-messages.ts";
import { accountInView, actorOf, signedInOf } from "./call.ts";
import { fromLimitsMessage } from "./limits-message.ts";
import { pageSize } from "./page-size.ts";

/** Accounts, invitations and what happened to them. */
export function createAccountService(access: AccessContext): ServiceImpl<typeof AccountService> {
  const { store, clock } = access;
  return {
    async list() {
      return { accounts: (await store.list()).map(toAccountMessage) };
    },

    async update({ id, name, role, disabled, limits }, context) {
      const signedIn = signedInOf(context);
      if (id !== signedIn.account.id) requireAdministrator(signedIn);
      if (role !== undefined || disabled !== undefined || limits !== undefined) {
        requireAdministrator(signedIn);
        requireFresh(signedIn, clock.now());
      }
      const update = {
        name,
        role: role === undefined ? undefined : fromRoleMessage(role),
        disabled,
        limits: limits === undefined ? undefined : fromLimitsMessage(limits),
      };
      return { account: toAccountMessage(await updateAccount(access, { id, update, actor: actorOf(context) })) };
    },

    async createInvitation({ email, role }, context) {
      const { token, record } = await createInvitation(access, {
        email: email === "" ? undefined : email,
        role: fromRoleMessage(role),
        ...actorOf(context),
      });
      return { invitation: toInvitationMessage(record), token };
    },

    async listInvitations() {
      return { invitations: (await store.listInvitations()).map(toInvitationMessage) };
    },

    async revokeInvitation({ id }, context) {
      await revokeInvitation(access, id, actorOf(context));
      return {};
    },

    async listSecurityEvents({ accountId, limit }, context) {
      const query = { limit: pageSize(limit), accountId: accountInView(signedInOf(context), accountId) };
      return { events: (await store.events(query)).map(toSecurityEventMessage) };
    },
  };
}
