import { afterEach, beforeEach, expect, it } from "vitest";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { TeamRole } from "../../../gen/parley/console/v1/team_role_pb.js";
import { PERMISSIONS_EVERYWHERE } from "../../../src/access/permissions.ts";
import { PASSWORD } from "../../access/set-up.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import type { MemoryStores } from "../../support/memory-database.ts";

type Person = Browser & { readonly id: string };

let store: MemoryStores;
let site: ConsoleUnderTest;
let [ada, bob]: Person[] = [];
let [red, blue] = ["", ""];

beforeEach(async () => {
  site = await startConsole({ signUp: "open" });
  store = site.access.stores;
  [ada, bob] = [await site.signedUp("ada"), await site.signedUp("bob")];
  [red, blue] = [await makeTeam("red"), await makeTeam("blue")];
});
afterEach(() => site.close());

async function makeTeam(name: string): Promise<string> {
  return (await ada!.team.create({ name })).team!.account!.id;
}

/** Gives Bob a custom role with these permissions. */
async function give(...permissions: string[]): Promise<void> {
  rest();
  const name = permissions.join(" ").slice(0, 90);
  const { role } = await ada!.role.create({ name, permissions, base: AccountRole.DEVELOPER });
  await ada!.account.update({ id: bob!.id, role: AccountRole.CUSTOM, customRoleId: role!.id });
}

/** Refills the rate of changes. */
function rest(): void {
  site.access.clock.advance(5_000);
}

const invite = (by: Browser, teamId: string, teamRole: TeamRole) =>
  by.account.createInvitation({ role: AccountRole.DEVELOPER, teamId, teamRole });
const teamsOf = async (id: string) =>
  (await store.accounts.memberships(id)).map(({ teamId, role }) => `${role} of ${teamId}`);

/** An account made with an invitation. */
async function accept(invitationToken: string): Promise<string> {
  const { session } = await site
    .browser()
    .session.signUp({ email: "eve@example.com", password: PASSWORD, invitationToken });
  return session!.account!.id;
}

it("an invited person joins the team with the new account, which the invitation and the audit log say", async () => {
  const { token, invitation } = await invite(ada!, red, TeamRole.VIEWER);
  expect(invitation).toMatchObject({ teamId: red, teamRole: TeamRole.VIEWER });
  expect((await ada!.account.listInvitations({})).invitations).toEqual([invitation]);
  const id = await accept(token);
  expect(await teamsOf(id)).toEqual([`viewer of ${red}`]);
  const entries = await store.audit.list({ limit: 100 });
  expect(entries.find(({ action }) => action === "invitation_accepted")?.details).toContain('"joined":"yes"');
  expect(entries.find(({ action }) => action === "member_added")?.actor).toMatchObject({ id: ada!.id });
});

it("an account is made without the team when the inviter can no longer add members", async () => {
  await give("accounts.read", "accounts.write");
  await ada!.team.setMember({ teamId: red, accountId: bob!.id, role: TeamRole.MAINTAINER });
  const { token } = await invite(bob!, red, TeamRole.DEVELOPER);
  await ada!.team.removeMember({ teamId: red, accountId: bob!.id });
  expect(await teamsOf(await accept(token))).toEqual([]);
  const entries = await store.audit.list({ limit: 100 });
  expect(entries.find(({ action }) => action === "invitation_accepted")?.details).toContain('"joined":"no"');
});

it.each([
  ["administers accounts only", ["accounts.read", "accounts.write"], undefined],
  ["is a viewer of the team", ["accounts.read", "accounts.write"], TeamRole.VIEWER],
  ["is a developer of the team", ["accounts.read", "accounts.write"], TeamRole.DEVELOPER],
  ["is a maintainer of the team", ["accounts.read", "accounts.write"], TeamRole.MAINTAINER],
  ["manages members, and not keys", ["accounts.read", "accounts.write", "members.read", "members.write"], undefined],
  [
    "may do everything except for owners",
    PERMISSIONS_EVERYWHERE.filter((each) => !/owners|roles/.test(each)),
    undefined,
  ],
] as const)("who %s invites into teams exactly as members can be added", async (_, permissions, role) => {
  const guest = await site.signedUp("guest");
  await give(...permissions);
  if (role !== undefined) await ada!.team.setMember({ teamId: red, accountId: bob!.id, role });
  const codeOf = (call: Promise<unknown>) =>
    call.then(
      () => "done",
      async () => (await errorOf(call)).code,
    );
  for (const teamId of [red, blue])
    for (const teamRole of [TeamRole.VIEWER, TeamRole.DEVELOPER, TeamRole.MAINTAINER]) {
      rest();
      const added = await codeOf(bob!.team.setMember({ teamId, accountId: guest.id, role: teamRole }));
      if (added === "done") await ada!.team.removeMember({ teamId, accountId: guest.id });
      rest();
      expect([teamId, teamRole, await codeOf(invite(bob!, teamId, teamRole))]).toEqual([teamId, teamRole, added]);
    }
});

it("refuses a team without a role, an unknown team, and the account of a person", async () => {
  const call = { role: AccountRole.DEVELOPER, teamId: red };
  await expect(ada!.account.createInvitation(call)).rejects.toThrow(/team_role/);
  await expect(invite(ada!, "acct_unknown", TeamRole.VIEWER)).rejects.toThrow(/team_id: there is no team/);
  await expect(invite(ada!, bob!.id, TeamRole.VIEWER)).rejects.toThrow(/team_id: there is no team/);
});
