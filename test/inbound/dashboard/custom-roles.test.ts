import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { TeamRole } from "../../../gen/parley/console/v1/team_role_pb.js";
import { PERMISSIONS_EVERYWHERE } from "../../../src/access/permissions.ts";
import { errorOf, fieldOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";

let site: ConsoleUnderTest;
let ada: Browser & { readonly id: string };
let bob: Browser & { readonly id: string };
beforeEach(async () => {
  site = await startConsole();
  ada = await site.signedUp("ada");
  bob = await site.signedUp("bob");
});
afterEach(() => site.close());

async function makeRole(name: string, permissions: readonly string[], base = AccountRole.DEVELOPER): Promise<string> {
  return (await ada.role.create({ name, permissions: [...permissions], base })).role!.id;
}

const give = (customRoleId: string, by: Browser = ada, to = bob.id) =>
  by.account.update({ id: to, role: AccountRole.CUSTOM, customRoleId });

describe("a custom role", () => {
  it("allows its permissions in all accounts, beside those of its base in the own account", async () => {
    await ada.key.create({ name: "of ada" });
    await give(await makeRole("Key auditor", ["keys.read", "audit.read"], AccountRole.VIEWER));
    expect((await bob.key.list({})).keys.map(({ name }) => name)).toContain("of ada");
    expect((await bob.audit.list({})).entries.length).toBeGreaterThan(0);
    for (const call of [bob.account.list({}), bob.key.create({ name: "own" }), bob.team.create({ name: "team" })])
      expect((await errorOf(call)).code).toBe(Code.PermissionDenied);
    const { session } = await bob.session.getSession({});
    expect(session).toMatchObject({
      permissions: ["keys.read", "audit.read"],
      customRoleName: "Key auditor",
      account: { role: AccountRole.CUSTOM, customRoleBase: AccountRole.VIEWER },
    });
  });

  it("limits what its holder may do in teams by its base", async () => {
    const team = (await ada.team.create({ name: "Search" })).team!.account!.id;
    await ada.team.setMember({ teamId: team, accountId: bob.id, role: TeamRole.MAINTAINER });
    const id = await makeRole("Reader", ["usage.read"], AccountRole.VIEWER);
    await give(id);
    expect((await errorOf(bob.key.create({ accountId: team, name: "k" }))).code).toBe(Code.PermissionDenied);
    await ada.role.update({ id, name: "Reader", permissions: ["usage.read"], base: AccountRole.DEVELOPER });
    await bob.key.create({ accountId: team, name: "k" });
    await bob.team.setMember({ teamId: team, accountId: ada.id, role: TeamRole.VIEWER });
  });

  it("changes at once for those who have it, and is removed when no account does", async () => {
    const id = await makeRole("Support", ["accounts.read"]);
    await give(id);
    await bob.account.list({});
    await ada.role.update({ id, name: "Support 2", permissions: ["audit.read"] });
    expect((await errorOf(bob.account.list({}))).rawMessage).toContain("The role Support 2 does not allow this");
    await ada.account.createInvitation({ role: AccountRole.CUSTOM, customRoleId: id });
    expect((await errorOf(ada.role.remove({ id }))).rawMessage).toContain("in use by 2 accounts and invitations");
    await ada.account.update({ id: bob.id, role: AccountRole.DEVELOPER });
    const [invitation] = (await ada.account.listInvitations({})).invitations;
    await ada.account.revokeInvitation({ id: invitation!.id });
    await ada.role.remove({ id });
    expect((await ada.role.list({})).roles).toEqual([]);
    expect(await fieldOf(give(id))).toBe("role");
    const { entries } = await ada.audit.list({});
    const ofRole = entries.filter(({ object }) => object?.kind === "role" && object.id === id);
    expect(ofRole.map(({ action }) => action)).toEqual(["role_removed", "role_updated", "role_created"]);
  });

  it("takes the unused invitations of those who have it back when it allows less", async () => {
    const id = await makeRole("Support", ["accounts.read", "accounts.write", "audit.read"]);
    await give(id);
    await ada.account.createInvitation({ role: AccountRole.DEVELOPER });
    await bob.account.createInvitation({ role: AccountRole.CUSTOM, customRoleId: id });
    await ada.role.update({
      id,
      name: "Support",
      permissions: ["accounts.read", "accounts.write", "audit.read", "keys.read"],
    });
    expect((await ada.account.listInvitations({})).invitations).toHaveLength(2);
    await ada.role.update({ id, name: "Support", permissions: ["accounts.read", "accounts.write"] });
    const { invitations } = await ada.account.listInvitations({});
    expect(invitations.map(({ role }) => role)).toEqual([AccountRole.DEVELOPER]);
  });

  it("has a name of its own, known permissions, and a base", async () => {
    await makeRole("Support", ["accounts.read"]);
    const role = { name: "other", permissions: ["accounts.read"], base: AccountRole.DEVELOPER };
    for (const [change, field] of [
      [{ name: "SUPPORT" }, "name"],
      [{ name: "Owner" }, "name"],
      [{ name: "" }, "name"],
      [{ permissions: [] }, "permissions"],
      [{ permissions: ["everything"] }, "permissions"],
      [{ permissions: ["playground.use"] }, "permissions"],
      [{ base: AccountRole.OWNER }, "base"],
    ] satisfies [Partial<typeof role>, string][])
      expect([change, await fieldOf(ada.role.create({ ...role, ...change }))]).toEqual([change, field]);
    expect(await fieldOf(ada.role.update({ id: "role_none", ...role }))).toBe("id");
    expect((await ada.role.list({})).permissions).toEqual(PERMISSIONS_EVERYWHERE);
  });

  it("is made by owners only, and given by those who have as much", async () => {
    const eve = await site.signedUp("eve");
    await ada.account.update({ id: eve.id, role: AccountRole.ADMINISTRATOR });
    const role = { name: "of eve", permissions: ["audit.read"] };
    expect((await errorOf(eve.role.create(role))).code).toBe(Code.PermissionDenied);
    await give(await makeRole("Auditor", ["audit.read"]), eve);
    const owners = await makeRole("Second owner", ["accounts.read", "accounts.write", "owners.write"]);
    expect((await errorOf(give(owners, eve))).code).toBe(Code.PermissionDenied);
    await give(owners, ada);
    // With accounts.write, but without the permissions of an administrator.
    for (const call of [
      bob.account.update({ id: bob.id, role: AccountRole.ADMINISTRATOR }),
      bob.account.update({ id: eve.id, disabled: true }),
      bob.account.createInvitation({ role: AccountRole.ADMINISTRATOR }),
    ])
      expect((await errorOf(call)).code).toBe(Code.PermissionDenied);
    const { invitation: developers } = await bob.account.createInvitation({ role: AccountRole.DEVELOPER });
    await bob.account.createInvitation({ role: AccountRole.CUSTOM, customRoleId: owners });
    const { invitation: ofOwner } = await ada.account.createInvitation({ role: AccountRole.OWNER });
    for (const by of [bob, eve])
      expect((await errorOf(by.account.revokeInvitation({ id: ofOwner!.id }))).rawMessage).toContain("roles: owner");
    await eve.account.revokeInvitation({ id: developers!.id });
    await ada.account.revokeInvitation({ id: ofOwner!.id });
  });

  it("resets the second factors of those only who have no more permissions", async () => {
    const eve = await site.signedUp("eve");
    const zoe = await site.signedUp("zoe");
    await give(await makeRole("Help desk", ["accounts.read", "accounts.write"], AccountRole.VIEWER));
    await ada.account.update({ id: eve.id, role: AccountRole.ADMINISTRATOR });
    await site.access.store.insertTotp(eve.id, { sealed: "x", lastStep: 1, createdAtMs: 1, codeHashes: [] });
    for (const id of [eve.id, ada.id]) {
      const error = await errorOf(bob.factor.reset({ id }));
      expect([error.code, error.rawMessage]).toEqual([
        Code.PermissionDenied,
        expect.stringContaining("these roles: owner"),
      ]);
    }
    expect(await site.access.store.findTotp(eve.id)).toBeDefined();
    expect((await eve.session.getSession({})).session).toBeDefined();
    await bob.factor.reset({ id: zoe.id });
    await eve.factor.reset({ id: bob.id });
  });

  it("gives no account, also not its holder, a role in a team that allows more", async () => {
    const team = (await ada.team.create({ name: "Search" })).team!.account!.id;
    await give(await makeRole("Member desk", ["members.read", "members.write"]));
    const eve = await site.signedUp("eve");
    for (const accountId of [bob.id, eve.id])
      for (const role of [TeamRole.MAINTAINER, TeamRole.DEVELOPER, TeamRole.VIEWER])
        expect((await errorOf(bob.team.setMember({ teamId: team, accountId, role }))).code).toBe(Code.PermissionDenied);
    await ada.team.setMember({ teamId: team, accountId: bob.id, role: TeamRole.MAINTAINER });
    await bob.team.setMember({ teamId: team, accountId: eve.id, role: TeamRole.MAINTAINER });
  });

  it("makes no account a developer, in the own account and in teams, by a holder who is a viewer there", async () => {
    const permissions = ["roles.write", "accounts.read", "accounts.write", "profile.write"];
    const id = await makeRole("Role keeper", permissions, AccountRole.VIEWER);
    await give(id);
    const name = "Role keeper";
    const other = await makeRole("Reader", ["accounts.read"]);
    for (const call of [
      () => bob.role.update({ id, name, permissions, base: AccountRole.DEVELOPER }),
      () => bob.role.create({ name: "New", permissions: ["accounts.read"], base: AccountRole.DEVELOPER }),
      () => bob.role.update({ id: other, name: "Reader", permissions: ["accounts.read"], base: AccountRole.VIEWER }),
      () => bob.account.update({ id: bob.id, role: AccountRole.DEVELOPER }),
      () => give(other, bob),
      () => bob.account.createInvitation({ role: AccountRole.DEVELOPER }),
    ])
      expect((await errorOf(call())).code).toBe(Code.PermissionDenied);
    expect((await errorOf(bob.key.create({ name: "k" }))).code).toBe(Code.PermissionDenied);
    await bob.role.update({ id, name: "Keeper", permissions, base: AccountRole.VIEWER });
    await bob.account.createInvitation({ role: AccountRole.VIEWER });
    const eve = await site.signedUp("eve");
    await bob.account.update({ id: eve.id, role: AccountRole.VIEWER });
  });

  it("lets its holder make roles up to its own permissions", async () => {
    await give(await makeRole("Role maker", ["roles.write", "accounts.read", "audit.read"]));
    await bob.role.create({ name: "smaller", permissions: ["audit.read"] });
    const larger = await makeRole("larger", ["configuration.write"]);
    for (const call of [
      bob.role.update({ id: larger, name: "larger", permissions: ["audit.read"] }),
      bob.role.remove({ id: larger }),
    ])
      expect((await errorOf(call)).code).toBe(Code.PermissionDenied);
    expect(await fieldOf(bob.role.create({ name: "too large", permissions: ["configuration.write"] }))).toBe(
      "permissions",
    );
  });
});
