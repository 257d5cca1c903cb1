import type { ServiceImpl } from "@connectrpc/connect";
import type { AccountService } from "../../../gen/parley/console/v1/account_pb.js";
import { findAccount, updateAccount } from "../../access/accounts.ts";
import type { AccessContext } from "../../access/context.ts";
import { createInvitation, revokeInvitation } from "../../access/invitations.ts";
import type { KeyStore } from "../../access/key-store.ts";
import { offboard } from "../../access/offboarding.ts";
import { requireEverywhere, requireFresh, requireIn } from "../../access/sessions.ts";
import { requireMayAdd } from "../../access/teams.ts";
import { invalidField } from "../../core/failure.ts";
import { fromLimitsMessage, fromRoleMessage, toAccountMessage, toInvitationMessage } from "./account-messages.ts";
import { actorOf, signedInOf } from "./call.ts";
import { endOfPage, readPage } from "./list-page.ts";
import { fromTeamRoleMessage } from "./team-messages.ts";

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

    async update({ id, name, role, customRoleId, disabled, limits }, context) {
      const signedIn = signedInOf(context);
      requireIn(signedIn, "profile.write", id);
      if (role !== undefined || disabled !== undefined || limits !== undefined) {
        requireEverywhere(signedIn, "accounts.write");
        requireFresh(signedIn, clock.now());
      }
      const update = {
        name,
        role: role === undefined ? undefined : fromRoleMessage(role, customRoleId),
        disabled,
        limits: limits === undefined ? undefined : fromLimitsMessage(limits),
      };
      return { account: toAccountMessage(await updateAccount(access, { id, update, actor: actorOf(context) })) };
    },

    async offboard({ id, keys: fate }, context) {
      const signedIn = signedInOf(context);
      if (fate.case === undefined || fate.value === false)
        throw invalidField("keys", "set transfer_keys_to, or revoke_keys to true");
      const keysTo = fate.case === "transferKeysTo" ? fate.value : undefined;
      // Revoking the keys is part of the end of an account. Giving them away needs the permission: another owner could use
      // them.
      if (keysTo !== undefined) for (const accountId of [id, keysTo]) requireIn(signedIn, "keys.write", accountId);
      const { keyIds, teams, sessions } = await offboard(access, { id, keysTo, actor: actorOf(context) });
      return {
        account: toAccountMessage(await findAccount(store, id)),
        keys: BigInt(keyIds.length),
        teams: BigInt(teams.length),
        sessions: BigInt(sessions),
      };
    },

    async createInvitation({ email, role, customRoleId, teamId, teamRole }, context) {
      const team = teamId === "" ? undefined : { teamId, role: fromTeamRoleMessage(teamRole, "team_role") };
      if (team !== undefined) await requireMayAdd(access, team, signedInOf(context));
      const { token, record } = await createInvitation(access, {
        email: email === "" ? undefined : email,
        role: fromRoleMessage(role, customRoleId),
        team,
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
