import type { MessageInitShape } from "@bufbuild/protobuf";
import type { HandlerContext, ServiceImpl } from "@connectrpc/connect";
import { AccountKind as KindMessage } from "../../../gen/parley/console/v1/account_pb.js";
import type { TeamMemberSchema, TeamSchema, TeamService } from "../../../gen/parley/console/v1/team_pb.js";
import type { AccessContext } from "../../access/context.ts";
import type { KeyStore } from "../../access/key-store.ts";
import { permitsEverywhere, permitsIn } from "../../access/permissions.ts";
import { requireIn, type SignedIn } from "../../access/sessions.ts";
import type { Member, TeamRecord } from "../../access/team-store.ts";
import { createTeam, listMembers, removeMember, setMember } from "../../access/teams.ts";
import { monthOf } from "../../core/clock.ts";
import { invalidField } from "../../core/failure.ts";
import type { LedgerStore } from "../../ledger/ledger-store.ts";
import { fromLimitsMessage, toAccountMessage } from "./account-messages.ts";
import { actorOf, signedInOf } from "./call.ts";
import { endOfPage, readPage } from "./list-page.ts";
import { fromTeamRoleMessage, toTeamRoleMessage } from "./team-messages.ts";

/** Ports of the team service. */
export interface TeamServicePorts {
  readonly access: AccessContext;
  readonly keys: Pick<KeyStore, "countWorking">;
  readonly ledger: Pick<LedgerStore, "spending">;
}

/** Teams and their members. */
export function createTeamService({ access, keys, ledger }: TeamServicePorts): ServiceImpl<typeof TeamService> {
  const { store, clock } = access;
  const toTeams = async (
    teams: readonly TeamRecord[],
    signedIn: SignedIn,
  ): Promise<MessageInitShape<typeof TeamSchema>[]> => {
    const ids = teams.map(({ account }) => account.id);
    const readable = ids.filter((id) => permitsIn(signedIn, "usage.read", id));
    const subjects = readable.map((id) => `account:${id}`);
    const [working, spending] = await Promise.all([
      keys.countWorking(ids, clock.now()),
      ledger.spending(subjects, monthOf(clock.now())),
    ]);
    const spent = new Map(readable.map((id, index) => [id, BigInt(spending[index]!.spentMicroUsd)]));
    return teams.map(({ account, members }) => ({
      account: { ...toAccountMessage(account), workingKeys: BigInt(working.get(account.id) ?? 0) },
      members: BigInt(members),
      role: toTeamRoleMessage(signedIn.memberships.find(({ teamId }) => teamId === account.id)?.role),
      monthSpentMicroUsd: spent.get(account.id),
    }));
  };
  /** The members of a team, for a caller with the permission. */
  const membersOf = async (teamId: string): Promise<MessageInitShape<typeof TeamMemberSchema>[]> =>
    (await listMembers(access, teamId)).map(toMemberMessage);
  /** The common part of changes of members. Throws `permission_denied`. */
  const changeOf = (teamId: string, context: HandlerContext) => {
    requireIn(signedInOf(context), "members.write", teamId);
    return { teamId, actor: actorOf(context) };
  };

  return {
    async list(request, context) {
      const signedIn = signedInOf(context);
      const page = readPage(request);
      const memberId = permitsEverywhere(signedIn, "members.read") ? undefined : signedIn.account.id;
      const teams = await store.listTeams(page, memberId);
      const nextPageToken = endOfPage(
        teams.map(({ account }) => account),
        page,
      );
      return { teams: await toTeams(teams, signedIn), nextPageToken };
    },

    async create({ name, kind: asked, limits }, context) {
      const kind = readKind(asked);
      const actor = actorOf(context);
      const account = await createTeam(access, { name, kind, limits: limits && fromLimitsMessage(limits), actor });
      const [team] = await toTeams([{ account, members: 0 }], signedInOf(context));
      return { team: team! };
    },

    async listMembers({ teamId }, context) {
      requireIn(signedInOf(context), "members.read", teamId);
      return { members: await membersOf(teamId) };
    },

    async setMember({ teamId, accountId, email, role: asked }, context) {
      const change = changeOf(teamId, context);
      if ((accountId === "") === (email === "")) throw invalidField("email", "is required, or account_id in its place");
      const person = accountId === "" ? { email } : { id: accountId };
      await setMember(access, { ...change, person, role: fromTeamRoleMessage(asked) });
      return { members: await membersOf(teamId) };
    },

    async removeMember({ teamId, accountId }, context) {
      const change = changeOf(teamId, context);
      await removeMember(access, { ...change, person: { id: accountId } });
      // A caller who has just left the team may not see its members.
      const isGone = accountId === signedInOf(context).account.id;
      return { members: isGone ? [] : await membersOf(teamId) };
    },
  };
}

function readKind(kind: KindMessage): "team" | "service" {
  if (kind === KindMessage.UNSPECIFIED || kind === KindMessage.TEAM) return "team";
  if (kind === KindMessage.SERVICE) return "service";
  throw invalidField("kind", "must be ACCOUNT_KIND_TEAM or ACCOUNT_KIND_SERVICE");
}

function toMemberMessage(member: Member): MessageInitShape<typeof TeamMemberSchema> {
  const { id, name, email = "", role, disabledAtMs } = member;
  return { accountId: id, name, email, role: toTeamRoleMessage(role), disabled: disabledAtMs !== undefined };
}
