import type { ServiceImpl } from "@connectrpc/connect";
import type { AccountService } from "../../../gen/parley/console/v1/account_pb.js";
import { updateAccount } from "../../access/accounts.ts";
import type { AccessContext } from "../../access/context.ts";
import { createInvitation, revokeInvitation } from "../../access/invitations.ts";
import type { KeyStore } from "../../access/key-store.ts";
import { requireAdministrator, requireFresh } from "../../access/sessions.ts";
import { fromLimitsMessage, fromRoleMessage, toAccountMessage, toInvitationMessage } from "./account-messages.ts";
import { actorOf, signedInOf } from "./call.ts";
import { endOfPage, readPage } from "./list-page.ts";

/** Ports of the account service. */
export interface AccountServicePorts {
  readonly access: AccessContext;
  readonly keys: Pick<KeyStore, "countWorking">;
}

/** Accounts and invitations. */
export function createAccountService({ access, keys }: AccountServicePorts): ServiceImpl<typeof AccountService> {
  const { store, clock } = access;
  return {
    async list(request) {
      const page = readPage(request);
      const accounts = await store.list(page);
      const ids = accounts.map(({ id }) => id);
      const working = await keys.countWorking(ids, clock.now());
      return {
        accounts: accounts.map((account) => ({
          ...toAccountMessage(account),
          workingKeys: BigInt(working.get(account.id) ?? 0),
        })),
        nextPageToken: endOfPage(accounts, page),
      };
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
  };
}
