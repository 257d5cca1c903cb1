import { timestampFromMs } from "@bufbuild/protobuf/wkt";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AccountKind, AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { RequestOrder } from "../../../gen/parley/console/v1/request_pb.js";
import { UsageGrouping } from "../../../gen/parley/console/v1/usage_pb.js";
import { TeamRole } from "../../../gen/parley/console/v1/team_role_pb.js";
import { hashApiKey } from "../../../src/access/api-key.ts";
import type { Role } from "../../../src/access/account-store.ts";
import { generateToken, hashToken } from "../../../src/access/secret-token.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import { entry } from "../../store/contracts/entries.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, startConsole } from "./set-up.ts";
import type { MemoryStores } from "../../support/memory-database.ts";

let store: MemoryStores;
let site: ConsoleUnderTest;
let ada: Browser;
let bob: Browser;
let cleo: Browser;
let team: string;

beforeEach(async () => {
  site = await startConsole();
  store = site.access.stores;
  ada = await signedIn("ada", "owner");
  bob = await signedIn("bob", "developer");
  cleo = await signedIn("cleo", "developer");
  team = (await ada.team.create({ name: "Search", limits: { monthlyBudgetMicroUsd: 5n } })).team!.account!.id;
  await ada.team.setMember({ teamId: team, email: "Bob@example.com", role: TeamRole.MAINTAINER });
});
afterEach(() => site.close());

/** What the audit log has of an account. */
async function entriesOf(accountId: string): Promise<object[]> {
  const { entries } = await ada.audit.list({ filter: { accountId } });
  const read = (json: string): unknown => (json === "" ? undefined : JSON.parse(json));
  return entries.map(({ action, beforeJson, afterJson, detailsJson }) => ({
    action,
    before: read(beforeJson),
    after: read(afterJson),
    details: read(detailsJson),
  }));
}

/** A browser with a session of a new account `acct_NAME`. */
async function signedIn(name: string, role: Role): Promise<Browser> {
  const id = generateToken();
  const nowMs = site.access.clock.now();
  await store.accounts.insert({
    id: `acct_${name}`,
    kind: "person",
    email: `${name}@example.com`,
    name,
    role,
    passwordHash: "x",
    limits: NO_LIMITS,
    createdAtMs: nowMs,
    disabledAtMs: undefined,
  });
  const at = { method: "password", createdAtMs: nowMs, lastSeenAtMs: nowMs, authenticatedAtMs: nowMs } as const;
  const facts = { hash: hashToken(id), accountId: `acct_${name}`, network: undefined, browser: undefined };
  await store.accounts.insertSession({ ...facts, ...at });
  return site.browser({ cookie: `sid=${id}` });
}

const codeOf = async (call: Promise<unknown>): Promise<Code> => (await errorOf(call)).code;

describe("teams", () => {
  it("are made by administrators, and have members whom maintainers choose", async () => {
    expect((await ada.team.list({})).teams).toMatchObject([
      { account: { id: team, name: "Search", kind: AccountKind.TEAM }, members: 1n, role: TeamRole.UNSPECIFIED },
    ]);
    expect((await bob.team.list({})).teams).toMatchObject([
      { members: 1n, role: TeamRole.MAINTAINER, monthSpentMicroUsd: 0n },
    ]);
    expect((await cleo.team.list({})).teams).toEqual([]);
    expect((await bob.session.getSession({})).session?.teams).toMatchObject([
      { accountId: team, name: "Search", role: TeamRole.MAINTAINER },
    ]);
    expect(await codeOf(bob.team.create({ name: "Another" }))).toBe(Code.PermissionDenied);
    for (const call of [
      () => cleo.team.listMembers({ teamId: team }),
      () => cleo.team.listMembers({ teamId: "acct_none" }),
      () => cleo.team.setMember({ teamId: team, accountId: "acct_cleo", role: TeamRole.VIEWER }),
      () => cleo.team.removeMember({ teamId: team, accountId: "acct_bob" }),
    ])
      expect(await codeOf(call())).toBe(Code.PermissionDenied);
    const added = await bob.team.setMember({ teamId: team, email: "cleo@example.com", role: TeamRole.VIEWER });
    expect(added.members).toMatchObject([
      { accountId: "acct_bob", email: "bob@example.com", role: TeamRole.MAINTAINER },
      { accountId: "acct_cleo", name: "cleo", role: TeamRole.VIEWER, disabled: false },
    ]);
    for (const change of [
      { teamId: team, role: TeamRole.VIEWER },
      { teamId: team, email: "cleo@example.com", accountId: "acct_cleo", role: TeamRole.VIEWER },
      { teamId: team, email: "nobody@example.com", role: TeamRole.VIEWER },
      { teamId: team, accountId: team, role: TeamRole.VIEWER },
      { teamId: team, accountId: "acct_cleo" },
    ])
      expect(await codeOf(bob.team.setMember(change))).toBe(Code.InvalidArgument);
    await bob.team.setMember({ teamId: team, accountId: "acct_cleo", role: TeamRole.DEVELOPER });
    expect((await bob.team.removeMember({ teamId: team, accountId: "acct_cleo" })).members).toHaveLength(1);
    expect((await cleo.team.list({})).teams).toEqual([]);
    const entries = await entriesOf(team);
    expect(entries).toHaveLength(5);
    expect(entries).toContainEqual({
      action: "team_created",
      before: undefined,
      after: { kind: "team", name: "Search", disabled: false, monthly_budget_micro_usd: 5 },
      details: undefined,
    });
    const details = { member: "acct_cleo" };
    for (const [action, before, after] of [
      ["member_added", undefined, { role: "viewer" }],
      ["member_changed", { role: "viewer" }, { role: "developer" }],
      ["member_removed", { role: "developer" }, undefined],
    ])
      expect(entries).toContainEqual({ action, before, after, details });
  });

  it("own keys and requests, which members see and change by their role", async () => {
    const { key, secret } = await bob.key.create({ accountId: team, name: "crawler" });
    expect(key).toMatchObject({ accountId: team });
    await store.ledger.insert([entry({ accountId: team, keyId: key!.id, requestId: "req_team" })]);
    const requests = async (browser: Browser) =>
      (await browser.request.list({ filter: { accountId: team } })).requests.map(({ keyName }) => keyName);
    const id = key!.id;
    expect(await requests(bob)).toEqual(["crawler"]);
    expect((await bob.request.get({ id: "req_team" })).request?.accountId).toBe(team);
    expect(await codeOf(requests(cleo))).toBe(Code.PermissionDenied);
    expect(await codeOf(cleo.request.get({ id: "req_team" }))).toBe(Code.InvalidArgument);
    expect((await errorOf(cleo.key.update({ id, name: "x" }))).rawMessage).toContain("there is no key");

    await bob.team.setMember({ teamId: team, accountId: "acct_cleo", role: TeamRole.VIEWER });
    expect(await requests(cleo)).toEqual(["crawler"]);
    expect((await cleo.key.list({})).keys.map(({ name }) => name)).toEqual(["crawler"]);
    expect((await errorOf(cleo.key.update({ id, name: "x" }))).rawMessage).toContain("keys.write");
    expect(await codeOf(cleo.key.create({ accountId: team, name: "x" }))).toBe(Code.PermissionDenied);
    await bob.team.setMember({ teamId: team, accountId: "acct_cleo", role: TeamRole.DEVELOPER });
    await cleo.key.update({ id, name: "renamed" });
    for (const call of [
      () => cleo.routing.setAliases({ accountId: team, aliases: [] }),
      () => cleo.account.update({ id: team, name: "Cleo's" }),
      () => bob.account.update({ id: team, limits: {} }),
      () => bob.account.update({ id: team, disabled: true }),
      () => cleo.team.setMember({ teamId: team, accountId: "acct_cleo", role: TeamRole.MAINTAINER }),
    ])
      expect(await codeOf(call())).toBe(Code.PermissionDenied);
    await bob.routing.setAliases({ accountId: team, aliases: [{ name: "best", model: "words" }] });
    expect((await bob.account.update({ id: team, name: "Find" })).account?.name).toBe("Find");

    // Whoever is a viewer of the organisation changes nothing, whatever the role in a team.
    await ada.account.update({ id: "acct_cleo", role: AccountRole.VIEWER });
    expect(await requests(cleo)).toEqual(["renamed"]);
    expect(await codeOf(cleo.key.revoke({ id }))).toBe(Code.PermissionDenied);
    await ada.account.update({ id: team, disabled: true });
    expect(await store.keys.findByHash(hashApiKey(secret))).toMatchObject({
      accountDisabled: true,
      accountLimits: { monthlyBudgetMicroUsd: 5 },
    });
    expect(await codeOf(ada.account.update({ id: team, role: AccountRole.OWNER }))).toBe(Code.InvalidArgument);
  });
});

describe("a key that is transferred", () => {
  it("keeps working for its new owner, and its past requests stay", async () => {
    const { key, secret } = await bob.key.create({ name: "mine" });
    const id = key!.id;
    await store.ledger.insert([entry({ accountId: "acct_bob", keyId: id, requestId: "req_past" })]);
    expect(await codeOf(bob.key.transfer({ id, accountId: "acct_cleo" }))).toBe(Code.PermissionDenied);
    expect(await codeOf(cleo.key.transfer({ id, accountId: "acct_cleo" }))).toBe(Code.InvalidArgument);
    for (const accountId of ["", "acct_bob", "x"])
      expect(await codeOf(bob.key.transfer({ id, accountId }))).toBe(Code.InvalidArgument);
    expect((await bob.key.transfer({ id, accountId: team })).key).toMatchObject({ id, accountId: team });
    expect(await store.keys.findByHash(hashApiKey(secret))).toMatchObject({
      record: { accountId: team, revokedAtMs: undefined },
      accountLimits: { monthlyBudgetMicroUsd: 5 },
    });
    const past = await bob.request.list({ filter: { accountId: "acct_bob" } });
    expect(past.requests.map(({ requestId }) => requestId)).toEqual(["req_past"]);
    expect((await bob.request.list({ filter: { accountId: team } })).requests).toEqual([]);
  });

  it("shows its name to the members of its account, and to administrators", async () => {
    const { key } = await bob.key.create({ name: "mine" });
    const id = key!.id;
    const past = entry({ accountId: "acct_bob", keyId: id });
    await store.ledger.insert([past]);
    await store.ledger.flush();
    const sinceNoon = { since: timestampFromMs(past.startedAtMs), until: timestampFromMs(past.endedAtMs + 1) };
    const namesFor = async ({ request, usage }: Browser): Promise<unknown[]> => {
      const filter = { accountId: "acct_bob" };
      const lists = [await request.list({ filter }), await request.list({ filter, order: RequestOrder.COST })];
      const [listed, sorted] = lists.map(({ requests }) => requests[0]?.keyName);
      const exported: Buffer[] = [];
      for await (const { data } of request.export({ filter })) exported.push(Buffer.from(data));
      const { key_name: written } = JSON.parse(Buffer.concat(exported).toString()) as { readonly key_name: unknown };
      const sums = await usage.summarize({ filter: { ...filter, ...sinceNoon }, by: UsageGrouping.KEY });
      const summed = sums.rows.find(({ group }) => group === id)?.name;
      return [listed, sorted, (await request.get({ id: past.completionId })).request?.keyName, summed, written];
    };
    expect(await namesFor(bob)).toEqual(["mine", "mine", "mine", "mine", "mine"]);
    await ada.key.transfer({ id, accountId: team });
    // Of one of his teams; a file has those of its own account only.
    expect(await namesFor(bob)).toEqual(["mine", "mine", "mine", "mine", null]);
    await ada.team.removeMember({ teamId: team, accountId: "acct_bob" });
    await ada.key.update({ id, name: "of the others" });
    expect(await namesFor(bob)).toEqual(["", "", "", "", null]);
    expect(await namesFor(ada)).toEqual(Array.from({ length: 5 }, () => "of the others"));
  });

  it("is one that works, and not locked by an administrator; its new owner is in use", async () => {
    const { key } = await bob.key.create({ name: "mine" });
    const id = key!.id;
    await ada.key.update({ id, limits: { requestsPerMinute: 1n } });
    expect((await errorOf(bob.key.transfer({ id, accountId: team }))).rawMessage).toContain(
      "locked by an administrator",
    );
    await ada.account.update({ id: "acct_cleo", disabled: true });
    expect((await errorOf(ada.key.transfer({ id, accountId: "acct_cleo" }))).rawMessage).toContain("is disabled");
    expect((await errorOf(ada.key.transfer({ id, accountId: "acct_none" }))).rawMessage).toContain("no account");
    await ada.key.transfer({ id, accountId: team });
    await ada.key.revoke({ id });
    expect((await errorOf(ada.key.transfer({ id, accountId: "acct_bob" }))).rawMessage).toContain("is revoked");
  });
});

describe("offboarding", () => {
  it("ends what a person has, and gives the keys to a team", async () => {
    const { key } = await bob.key.create({ name: "mine" });
    const done = await ada.account.offboard({ id: "acct_bob", keys: { case: "transferKeysTo", value: team } });
    expect(done).toMatchObject({ account: { id: "acct_bob" }, keys: 1n, teams: 1n, sessions: 1n });
    expect(done.account?.disableTime).toBeDefined();
    expect((await bob.session.getSession({})).session).toBeUndefined();
    expect((await ada.key.list({ accountId: team })).keys.map(({ id }) => id)).toEqual([key!.id]);
    expect((await ada.team.listMembers({ teamId: team })).members).toEqual([]);
    expect(await entriesOf(team)).toEqual(
      expect.arrayContaining([
        { action: "key_transferred", before: { account: "acct_bob" }, after: { account: team }, details: undefined },
        { action: "member_removed", before: { role: "maintainer" }, after: undefined, details: { member: "acct_bob" } },
      ]),
    );
    expect(await entriesOf("acct_bob")).toContainEqual({
      action: "account_offboarded",
      before: { disabled: false, active_keys: 1, teams: 1, sessions: 1 },
      after: { disabled: true, active_keys: 0, teams: 0, sessions: 0 },
      details: undefined,
    });
  });

  it("says what to do with the keys, is for administrators, of owners for owners, and leaves an owner", async () => {
    const admin = await signedIn("eve", "administrator");
    const revoke = { case: "revokeKeys", value: true } as const;
    expect(await codeOf(bob.account.offboard({ id: "acct_cleo", keys: revoke }))).toBe(Code.PermissionDenied);
    expect(await codeOf(admin.account.offboard({ id: "acct_ada", keys: revoke }))).toBe(Code.PermissionDenied);
    expect((await errorOf(ada.account.offboard({ id: "acct_ada", keys: revoke }))).rawMessage).toContain("last owner");
    for (const request of [
      { id: "acct_cleo" },
      { id: "acct_cleo", keys: { case: "revokeKeys", value: false } },
      { id: "acct_cleo", keys: { case: "transferKeysTo", value: "acct_cleo" } },
      { id: "acct_cleo", keys: { case: "transferKeysTo", value: "acct_none" } },
      { id: team, keys: revoke },
      { id: "acct_none", keys: revoke },
    ] as const)
      expect(await codeOf(admin.account.offboard(request))).toBe(Code.InvalidArgument);
    expect(await admin.account.offboard({ id: "acct_cleo", keys: revoke })).toMatchObject({ keys: 0n, teams: 0n });
  });
});
