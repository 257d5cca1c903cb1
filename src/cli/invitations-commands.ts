import type { InvitationRecord } from "../access/account-store.ts";
import { createInvitation, revokeInvitation } from "../access/invitations.ts";
import { ROLES, TEAM_ROLES } from "../access/permissions.ts";
import { requireMayAdd } from "../access/teams.ts";
import { ACTOR, withAccounts } from "./accounts-commands.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, UsageError, writeJson } from "./command.ts";
import { formatTable, toInvitationFacts, toInvitationJson, writeInvitation } from "./output.ts";
import { BY_COMMAND } from "./roles-commands.ts";
import { readRole } from "./teams-commands.ts";

export const teamsInvite: Command = {
  name: "teams invite",
  summary: "invite a person who has no account yet into a team, and print the invitation's token, if passwords are on",
  positionals: ["ID", "EMAIL"],
  flags: {
    role: { value: TEAM_ROLES.join("|"), help: "role in the team (default: developer)" },
    "account-role": { value: ROLES.join("|"), help: "role of the new account (default: developer)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const [teamId = "", email = ""] = invocation.positionals;
      const { role: word = "developer", "account-role": accountWord = "developer" } = invocation.flags;
      const role = ROLES.find((known) => known === accountWord);
      if (role === undefined) throw new UsageError(`--account-role is one of ${ROLES.join(", ")}`);
      const team = { teamId, role: readRole(word) };
      await requireMayAdd(access, team, BY_COMMAND.holder);
      const invitation = await createInvitation(access, { email, role, team, ...ACTOR });
      if (invocation.switches.has("json")) writeJson(context.stdout, toInvitationJson(invitation));
      else writeInvitation(context, invitation, access.signIn);
    }),
};

export const invitationsList: Command = {
  name: "invitations list",
  summary: "list invitations of the last weeks, without their tokens",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async ({ store, clock }) => {
      const invitations = await store.listInvitations();
      const nowMs = clock.now();
      if (invocation.switches.has("json")) {
        const toJson = (record: InvitationRecord) => ({ ...toInvitationFacts(record), state: stateOf(record, nowMs) });
        return writeJson(context.stdout, invitations.map(toJson));
      }
      const rows = invitations.map((record) => {
        const { id, email, role, team, expires_at } = toInvitationFacts(record);
        const joined = team === null ? "-" : `${team.id} (${team.role})`;
        return [id, email ?? "(anyone with the link)", role, joined, stateOf(record, nowMs), expires_at];
      });
      context.stdout.write(`${formatTable([HEADING, ...rows])}\n`);
    }),
};

export const invitationsRevoke: Command = {
  name: "invitations revoke",
  summary: "revoke an invitation, so that its token no longer works",
  positionals: ["ID"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const [id = ""] = invocation.positionals;
      await revokeInvitation(access, id, ACTOR);
      if (invocation.switches.has("json")) writeJson(context.stdout, { id, state: "revoked" });
      else context.stdout.write(`Revoked ${id}.\n`);
    }),
};

const HEADING = ["ID", "EMAIL", "ROLE", "TEAM", "STATE", "EXPIRES"];

function stateOf({ usedAtMs, expiresAtMs }: InvitationRecord, nowMs: number): "pending" | "used" | "expired" {
  if (usedAtMs !== undefined) return "used";
  return expiresAtMs <= nowMs ? "expired" : "pending";
}
