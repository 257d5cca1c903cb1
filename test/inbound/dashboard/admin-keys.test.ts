import { Code } from "@connectrpc/connect";
import { durationFromMs } from "@bufbuild/protobuf/wkt";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { TeamRole } from "../../../gen/parley/console/v1/team_role_pb.js";
import { AdminKeyState } from "../../../gen/parley/console/v1/admin_key_pb.js";
import { PERMISSIONS, type Permission, PERMISSIONS_EVERYWHERE } from "../../../src/access/permissions.ts";
import { errorOf, fieldOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, JSON_TYPE, refusalOf, startConsole } from "./set-up.ts";

let site: ConsoleUnderTest;
let ada: Browser & { readonly id: string };
beforeEach(async () => {
  site = await startConsole();
  ada = await site.signedUp("ada");
});
afterEach(() => site.close());

/** A program with a new key of this person. */
async function program(permissions: readonly Permission[], { maker = ada, lifetimeMs = 3_600_000 } = {}) {
  const lifetime = durationFromMs(lifetimeMs);
  const { key, secret } = await maker.adminKey.create({ name: "terraform", permissions: [...permissions], lifetime });
  return { ...site.browser({ authorization: `Bearer ${secret}` }), secret, keyId: key!.id };
}

const list = (secret: string, headers: Readonly<Record<string, string>> = {}) =>
  site.send("/parley.console.v1.AccountService/List", {
    headers: { ...JSON_TYPE, authorization: `Bearer ${secret}`, ...headers },
    body: "{}",
  });

describe("an administration key", () => {
  it("calls what its permissions allow, without a session, a fresh proof and the host of the dashboard", async () => {
    const { secret, ...terraform } = await program(["teams.write", "members.read", "keys.read", "keys.write"]);
    site.access.clock.advance(11 * 60_000);
    const team = (await terraform.team.create({ name: "Search" })).team!.account!.id;
    await terraform.key.create({ accountId: team, name: "ci" });
    expect((await terraform.key.list({ accountId: team })).keys).toHaveLength(1);
    expect(await errorOf(terraform.account.list({}))).toMatchObject({
      code: Code.PermissionDenied,
      rawMessage: expect.stringContaining("does not have the permission accounts.read"),
    });
    const inside = await site.send("/parley.console.v1.TeamService/List", {
      headers: { ...JSON_TYPE, authorization: `Bearer ${secret}`, host: "parley.default.svc" },
      body: "{}",
    });
    expect(inside).toMatchObject({ status: 200, text: expect.stringContaining("Search") });
    expect(inside.headers["set-cookie"]).toBeUndefined();
  });

  it("sees what teams spend with usage.read only", async () => {
    await ada.team.create({ name: "Search" });
    const spent = async (...permissions: Permission[]) =>
      (await (await program(permissions)).team.list({})).teams.map(({ monthSpentMicroUsd }) => monthSpentMicroUsd);
    expect(await spent("members.read")).toEqual([undefined]);
    expect(await spent("members.read", "usage.read")).toEqual([0n]);
  });

  it("is the actor of its changes in the audit log, and is listed with its last use", async () => {
    const { keyId, ...terraform } = await program(PERMISSIONS_EVERYWHERE);
    const team = (await terraform.team.create({ name: "Search" })).team!.account!.id;
    await terraform.team.setMember({ teamId: team, accountId: ada.id, role: TeamRole.MAINTAINER });
    await terraform.account.createInvitation({ role: AccountRole.DEVELOPER });
    const actor = { kind: "admin_key", id: keyId };
    expect((await ada.audit.list({})).entries.slice(0, 4)).toMatchObject([
      { action: "invitation_created", actor },
      { action: "member_added", actor },
      { action: "team_created", actor },
      { action: "admin_key_created", actor: { kind: "account", id: ada.id }, object: actor },
    ]);
    const [key] = (await ada.adminKey.list({})).keys;
    expect(key).toMatchObject({ id: keyId, name: "terraform", accountId: ada.id, state: AdminKeyState.ACTIVE });
    expect(key!.display).toMatch(/^sk_parley_admin_\w\w…\w{4}$/);
    expect(key!.lastUseTime).toBeDefined();
    expect(JSON.stringify(site.access.logged)).not.toContain("sk_parley_admin_");
  });

  it("ends at once when it is revoked, expires, or its account is disabled", async () => {
    const revoked = await program(["accounts.read"]);
    const expiring = await program(["accounts.read"], { lifetimeMs: 60_000 });
    expect((await list(revoked.secret)).status).toBe(200);
    await ada.adminKey.revoke({ id: revoked.keyId });
    expect((await list(revoked.secret)).status).toBe(401);
    expect(await fieldOf(ada.adminKey.revoke({ id: revoked.keyId }))).toBe("id");
    expect((await list(expiring.secret)).status).toBe(200);
    site.access.clock.advance(60_001);
    expect((await list(expiring.secret)).text).toContain("This administration key is not valid");
    const states = new Map((await ada.adminKey.list({})).keys.map(({ id, state }) => [id, state]));
    expect(states.get(revoked.keyId)).toBe(AdminKeyState.REVOKED);
    expect(states.get(expiring.keyId)).toBe(AdminKeyState.EXPIRED);
    const other = await program(["accounts.read"]);
    await site.access.store.update(ada.id, { disabledAtMs: 1 });
    expect((await list(other.secret)).status).toBe(401);
  });

  it("never allows more than its account may do at the moment of the call", async () => {
    const bob = await site.signedUp("bob");
    await ada.account.update({ id: bob.id, role: AccountRole.ADMINISTRATOR });
    const everything = PERMISSIONS_EVERYWHERE.filter((each) => each !== "owners.write" && each !== "roles.write");
    const { secret, ...terraform } = await program(everything, { maker: bob });
    expect((await list(secret)).status).toBe(200);
    await ada.account.update({ id: bob.id, role: AccountRole.DEVELOPER });
    expect((await list(secret)).status).toBe(403);
    await terraform.key.create({ name: "own" });
    expect((await errorOf(terraform.key.create({ name: "of another", accountId: ada.id }))).code).toBe(
      Code.PermissionDenied,
    );
  });

  it("explains routes for keys only that it may read", async () => {
    const keyId = (await ada.key.create({ name: "of ada" })).key!.id;
    const asked = { keyId, completion: { model: "gpt-5" } };
    expect(await fieldOf((await program(["models.test"])).model.explainRoute(asked))).toBe("key_id");
    expect(await fieldOf((await program(["models.test", "keys.read"])).model.explainRoute(asked))).not.toBe("key_id");
  });

  it("cannot have what its maker does not have, what needs a page, and unknown permissions", async () => {
    const bob = await site.signedUp("bob");
    await ada.account.update({ id: bob.id, role: AccountRole.ADMINISTRATOR });
    for (const [maker, permission] of [
      [bob, "owners.write"],
      [ada, "playground.use"],
      [ada, "everything"],
    ] as const)
      expect(await fieldOf(maker.adminKey.create({ name: "k", permissions: [permission] }))).toBe("permissions");
    expect(await fieldOf(ada.adminKey.create({ name: "k" }))).toBe("permissions");
    expect(await fieldOf(ada.adminKey.create({ name: "", permissions: ["keys.read"] }))).toBe("name");
  });

  it("gives no role beyond its permissions, whatever its account may give", async () => {
    const terraform = await program(["accounts.read", "accounts.write"]);
    await terraform.account.createInvitation({ role: AccountRole.VIEWER });
    const bob = await site.signedUp("bob");
    const { invitation } = await ada.account.createInvitation({ role: AccountRole.ADMINISTRATOR });
    for (const call of [
      terraform.account.revokeInvitation({ id: invitation!.id }),
      terraform.account.createInvitation({ role: AccountRole.ADMINISTRATOR }),
      terraform.account.update({ id: bob.id, role: AccountRole.OWNER }),
      terraform.account.update({ id: ada.id, disabled: true }),
      terraform.account.offboard({ id: ada.id, keys: { case: "revokeKeys", value: true } }),
    ])
      expect(await errorOf(call)).toMatchObject({
        code: Code.PermissionDenied,
        rawMessage: expect.stringContaining("This administration key does not have the permission"),
      });
  });

  it("gives and takes no role in a team beyond its permissions", async () => {
    const bob = await site.signedUp("bob");
    const team = (await ada.team.create({ name: "Search" })).team!.account!.id;
    const reading = ["keys.read", "usage.read", "requests.read", "audit.read", "alerts.read", "routing.read"] as const;
    const terraform = await program(["members.write", "members.read", ...reading]);
    const give = (role: TeamRole, by: Browser = terraform) =>
      by.team.setMember({ teamId: team, accountId: bob.id, role });
    for (const role of [TeamRole.MAINTAINER, TeamRole.DEVELOPER])
      expect(await errorOf(give(role))).toMatchObject({
        code: Code.PermissionDenied,
        rawMessage: expect.stringContaining("does not have the permission keys.write"),
      });
    await give(TeamRole.VIEWER);
    await give(
      TeamRole.DEVELOPER,
      await program(["members.write", "members.read", ...reading, "keys.write", "alerts.write"]),
    );
    for (const call of [
      () => give(TeamRole.VIEWER),
      () => terraform.team.removeMember({ teamId: team, accountId: bob.id }),
    ])
      expect((await errorOf(call())).code).toBe(Code.PermissionDenied);
    await give(TeamRole.VIEWER, ada);
    await terraform.team.removeMember({ teamId: team, accountId: bob.id });
  });

  it("transfers the keys of somebody who is offboarded only with the permission for keys", async () => {
    const bob = await site.signedUp("bob");
    const offboard = (by: Browser, keys: "transferKeysTo" | "revokeKeys") =>
      by.account.offboard({
        id: bob.id,
        keys: keys === "revokeKeys" ? { case: keys, value: true } : { case: keys, value: ada.id },
      });
    const without = await program(["accounts.write"]);
    expect(await errorOf(offboard(without, "transferKeysTo"))).toMatchObject({
      code: Code.PermissionDenied,
      rawMessage: expect.stringContaining("does not have the permission keys.write"),
    });
    expect((await site.access.store.find(bob.id))?.disabledAtMs).toBeUndefined();
    await offboard(await program(["accounts.write", "keys.write"]), "transferKeysTo");
    await ada.account.update({ id: bob.id, disabled: false });
    await offboard(without, "revokeKeys");
  });

  it("of an owner is revoked by owners, and of others by administrators", async () => {
    const [bob, eve] = [await site.signedUp("bob"), await site.signedUp("eve")];
    for (const { id } of [bob, eve]) await ada.account.update({ id, role: AccountRole.ADMINISTRATOR });
    const { keyId: ofOwner, ...own } = await program(["admin_keys.write"]);
    const { keyId: ofBob } = await program(["admin_keys.write"], { maker: bob });
    expect((await errorOf(bob.adminKey.revoke({ id: ofOwner }))).rawMessage).toContain("owners.write");
    await eve.adminKey.revoke({ id: ofBob });
    await own.adminKey.revoke({ id: ofOwner });
  });

  it("sets credentials only with the permission for them", async () => {
    const without = await program(["routing.write"]);
    const set = (by: Browser) => by.routing.setCredential({ provider: "openai", secret: "a-key-at-the-provider" });
    expect((await errorOf(set(without))).code).toBe(Code.PermissionDenied);
    await set(await program(["credentials.write"]));
  });

  it.each([
    ["SessionService/GetSession", "{}"],
    ["SessionService/SignIn", '{"email":"ada@example.com","password":"x"}'],
    ["SessionService/Reauthenticate", "{}"],
    ["SessionService/ListSessions", "{}"],
    ["RequestService/SaveFilter", "{}"],
    ["AdminKeyService/Create", '{"name":"k","permissions":["keys.read"]}'],
  ])("is refused by %s, which needs a person", async (method, body) => {
    const { secret } = await program(PERMISSIONS_EVERYWHERE);
    const headers = { ...JSON_TYPE, authorization: `Bearer ${secret}`, cookie: ada.cookie() };
    expect(await site.send(`/parley.console.v1.${method}`, { headers, body })).toMatchObject({
      status: 403,
      text: expect.stringContaining("This needs a person who has signed in"),
    });
  });

  it("is refused from a page, and beside a cookie is all that counts", async () => {
    const { secret } = await program(["keys.read"]);
    for (const headers of [{ origin: `http://127.0.0.1:${site.server.port}` }, { "sec-fetch-site": "same-origin" }])
      expect(await list(secret, headers)).toMatchObject({ status: 403, text: expect.stringContaining("for programs") });
    expect((await list(secret, { cookie: ada.cookie() })).status).toBe(403);
    expect((await list(`${secret}x`, { cookie: ada.cookie() })).status).toBe(401);
  });

  it("is distinguished from a key for completions, on both sides", async () => {
    const { secret } = await program(["accounts.read"]);
    const { secret: apiKey } = await ada.key.create({ name: "for completions" });
    expect(await list(apiKey)).toMatchObject({
      status: 401,
      text: expect.stringContaining("take administration keys, which begin with sk_parley_admin_"),
    });
    const answer = await site.send("/v1/models", { method: "GET", headers: { authorization: `Bearer ${secret}` } });
    expect(answer).toMatchObject({
      status: 401,
      text: expect.stringContaining("This one is an administration key, which only the dashboard's RPCs take"),
    });
    expect(answer.text).not.toContain(secret);
    // A proxy's own credentials are not Parley's.
    for (const authorization of ["Basic YTpi", "Bearer eyJhbGciOiJub25lIn0.e30."])
      expect((await list("", { authorization, cookie: ada.cookie() })).status).toBe(200);
  });

  it("is limited in its changes as a session is", async () => {
    const terraform = await program(["teams.write"]);
    for (let index = 0; index < 30; index++) await terraform.team.create({ name: `team ${index}` });
    const error = await refusalOf(site, terraform.team.create({ name: "one more" }));
    expect(error.code).toBe(Code.ResourceExhausted);
  });

  it("ends a stream when it is revoked", async () => {
    const { keyId, ...watcher } = await program(["requests.read"]);
    const stream = watcher.request.watch({})[Symbol.asyncIterator]();
    await stream.next();
    await ada.adminKey.revoke({ id: keyId });
    const next = errorOf(
      (async () => {
        for (;;) if ((await stream.next()).done === true) return;
      })(),
    );
    site.access.clock.advance(5_000);
    expect((await next).code).toBe(Code.Unauthenticated);
  });
});

it("permissions that can be held everywhere are all but that of the playground", () => {
  expect(PERMISSIONS.filter((each) => !PERMISSIONS_EVERYWHERE.includes(each))).toEqual(["playground.use"]);
});
