import type { AccountRecord } from "../access/account-store.ts";
import { TEAM_ROLES } from "../access/permissions.ts";
import type { Member, TeamRecord, TeamRole } from "../access/team-store.ts";
import { createTeam, listMembers, removeMember, setMember } from "../access/teams.ts";
import { NO_LIMITS } from "../core/principal.ts";
import { ACTOR, withAccounts } from "./accounts-commands.ts";
import { type Command, CONFIG_FLAG, JSON_FLAG, UsageError, writeJson } from "./command.ts";
import { LIMIT_FLAGS, readLimits } from "./limit-flags.ts";
import { formatTable, toAccountJson } from "./output.ts";
import { pagesOf, writeJsonPages, writeTablePages } from "./pages.ts";
import { findAccountByIdOrEmail } from "./with-store.ts";

export const teamsCreate: Command = {
  name: "teams create",
  summary: "create a team: an account without sign-in, whose members share its keys",
  positionals: ["NAME"],
  flags: {
    service: { help: "a service account, for a program of the organisation" },
    ...LIMIT_FLAGS,
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withAccounts(invocation, { ...context, createsDatabase: true }, async (access) => {
      const account = await createTeam(access, {
        name: invocation.positionals[0] ?? "",
        kind: invocation.switches.has("service") ? "service" : "team",
        limits: readLimits(invocation.flags, NO_LIMITS),
        actor: ACTOR,
      });
      if (invocation.switches.has("json")) writeJson(context.stdout, toAccountJson(account));
      else context.stdout.write(`Created ${account.id} (${account.name}).\n`);
    }),
};

export const teamsList: Command = {
  name: "teams list",
  summary: "list all teams and service accounts",
  positionals: [],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async ({ store }) => {
      // `pagesOf` continues after the last row.
      const list = async (page: Parameters<typeof store.listTeams>[0]) =>
        (await store.listTeams(page)).map((team) => ({ ...team, ...pick(team.account) }));
      const pages = pagesOf(list);
      if (invocation.switches.has("json")) await writeJsonPages(context.stdout, pages, toTeamJson);
      else await writeTablePages(context.stdout, pages, { heading: TEAM_HEADING, toRow: toTeamRow });
    }),
};

export const teamsMembers: Command = {
  name: "teams members",
  summary: "list the members of a team",
  positionals: ["ID"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const members = await listMembers(access, invocation.positionals[0] ?? "");
      if (invocation.switches.has("json")) writeJson(context.stdout, members.map(toMemberJson));
      else context.stdout.write(`${formatTable([MEMBER_HEADING, ...members.map(toMemberRow)])}\n`);
    }),
};

export const teamsAdd: Command = {
  name: "teams add",
  summary: "add a person to a team, or change the person's role in it",
  positionals: ["ID", "ID|EMAIL"],
  flags: {
    role: { value: TEAM_ROLES.join("|"), help: "role in the team (default: developer)" },
    ...CONFIG_FLAG,
    ...JSON_FLAG,
  },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const [teamId = "", person = ""] = invocation.positionals;
      const role = readRole(invocation.flags["role"] ?? "developer");
      const { id } = await findAccountByIdOrEmail(access.store, person);
      await setMember(access, { teamId, person: { id }, role, actor: ACTOR });
      if (invocation.switches.has("json")) writeJson(context.stdout, { team: teamId, account: id, role });
      else context.stdout.write(`${id} is a ${role} of ${teamId}.\n`);
    }),
};

export const teamsRemove: Command = {
  name: "teams remove",
  summary: "remove a person from a team",
  positionals: ["ID", "ID|EMAIL"],
  flags: { ...CONFIG_FLAG, ...JSON_FLAG },
  run: (invocation, context) =>
    withAccounts(invocation, context, async (access) => {
      const [teamId = "", person = ""] = invocation.positionals;
      const { id } = await findAccountByIdOrEmail(access.store, person);
      if (!(await removeMember(access, { teamId, person: { id }, actor: ACTOR })))
        throw new UsageError(`${id} is no member of ${teamId}; parley teams members ${teamId} shows all`);
      if (invocation.switches.has("json")) writeJson(context.stdout, { team: teamId, account: id, role: null });
      else context.stdout.write(`Removed ${id} from ${teamId}.\n`);
    }),
};

export function readRole(word: string): TeamRole {
  const role = TEAM_ROLES.find((known) => known === word);
  if (role !== undefined) return role;
  throw new UsageError(`--role is one of ${TEAM_ROLES.join(", ")}`);
}

function pick({ id, createdAtMs }: AccountRecord): Pick<AccountRecord, "id" | "createdAtMs"> {
  return { id, createdAtMs };
}

const TEAM_HEADING = ["ID", "NAME", "KIND", "MEMBERS", "STATE"];

function toTeamRow({ account: { id, name, kind, disabledAtMs }, members }: TeamRecord): string[] {
  return [id, name, kind, String(members), disabledAtMs === undefined ? "active" : "disabled"];
}

function toTeamJson({ account, members }: TeamRecord): object {
  return { ...toAccountJson(account), members };
}

const MEMBER_HEADING = ["ID", "EMAIL", "NAME", "ROLE"];

function toMemberRow({ id, email = "", name, role }: Member): string[] {
  return [id, email, name, role];
}

function toMemberJson({ id, email, name, role, disabledAtMs }: Member): object {
  return { id, email: email ?? null, name, role, disabled: disabledAtMs !== undefined };
}
