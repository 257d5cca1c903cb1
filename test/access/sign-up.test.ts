import { describe, expect, it, vi } from "vitest";
import type { Role } from "../../src/access/account-store.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { prepareSetup } from "../../src/access/setup-token.ts";
import { createAccount, updateAccount } from "../../src/access/accounts.ts";
import { pruneAccess } from "../../src/access/prune-access.ts";
import { createInvitation, revokeInvitation } from "../../src/access/invitations.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import { hashToken } from "../../src/access/secret-token.ts";
import { findSession } from "../../src/access/sessions.ts";
import { signIn } from "../../src/access/sign-in.ts";
import { signUp } from "../../src/access/sign-up.ts";
import { networkNumber, PASSWORD, setUpAccess } from "./set-up.ts";

const DAY_MS = 24 * 60 * 60 * 1000;
const HERE = { network: "192.0.2.0/24" };
const CLI = { actorId: undefined, network: undefined };
const application = (name: string, token?: string) => ({ email: `${name}@example.com`, password: PASSWORD, token });

async function setUp(mode: "open" | "invited" | "closed") {
  const access = setUpAccess({ signUp: mode });
  const first = await signUp({ ...access, signUp: "open" }, application("ada"), HERE);
  const invite = (email?: string, role: Role = "developer") =>
    createInvitation(access, { email, role, actorId: first.account.id, network: HERE.network });
  return { access, first, invite };
}

describe("the first person", () => {
  it.each(["open", "invited"] as const)("takes over the default account when sign-up is %s", async (mode) => {
    const access = setUpAccess({ signUp: mode });
    expect(await access.store.isClaimed()).toBe(false);
    const { id, account } = await signUp(access, { ...application("ada"), name: "Ada L." }, HERE);
    expect(account).toMatchObject({ id: DEFAULT_ACCOUNT_ID, role: "owner", name: "Ada L." });
    expect((await findSession(access, id))?.account).toEqual(account);
    expect(await access.store.isClaimed()).toBe(true);
  });

  it("is exactly one of two who sign up at the same moment (100 rounds)", async () => {
    for (let round = 0; round < 100; round += 1) {
      const access = setUpAccess({ signUp: round % 2 === 0 ? "open" : "invited" });
      const both = await Promise.allSettled(["ada", "bob"].map((name) => signUp(access, application(name), HERE)));
      const accounts = await access.store.list();
      expect(accounts.filter(({ role }) => role === "owner")).toHaveLength(1);
      expect(both.filter(({ status }) => status === "fulfilled")).toHaveLength(round % 2 === 0 ? 2 : 1);
      expect(accounts).toHaveLength(round % 2 === 0 ? 2 : 1);
    }
  });

  it("is made by the command line only where sign-up is closed", async () => {
    for (const isExposed of [false, true]) {
      const access = setUpAccess({ signUp: "closed", isExposed });
      expect(await prepareSetup(access)).toEqual({ hasOwner: false, token: undefined });
      await expect(signUp(access, application("ada"), HERE)).rejects.toThrow("parley accounts create");
      const owner = { ...application("ada"), name: "", role: "owner" } as const;
      expect((await createAccount(access, owner)).id).toBe(DEFAULT_ACCOUNT_ID);
    }
  });

  it("needs a setup token where others reach the page", async () => {
    const access = setUpAccess({ isExposed: true });
    const [one, two] = [await prepareSetup(access), await prepareSetup(access)];
    const refused = [undefined, "", "x", "a".repeat(43), one.token!.toLowerCase().padEnd(43, "a")];
    for (const setupToken of refused) {
      const attempt = signUp(access, { ...application("eve"), setupToken }, HERE);
      await expect(attempt).rejects.toMatchObject({ code: "permission_denied" });
    }
    expect(await access.store.isClaimed()).toBe(false);
    // Any of the tokens printed by processes of the installation is valid.
    const { account } = await signUp(access, { ...application("ada"), setupToken: two.token }, HERE);
    expect(account).toMatchObject({ id: DEFAULT_ACCOUNT_ID, role: "owner" });
    expect(await prepareSetup(access)).toEqual({ hasOwner: true, token: undefined });
    const late = await signUp(access, { ...application("bob"), setupToken: one.token }, HERE);
    expect(late.account.role).toBe("developer");
    expect(JSON.stringify([access.stores.entries(), access.logged])).not.toContain(one.token);
  });

  it("is not accepted through a proxy that is not configured", async () => {
    const access = setUpAccess();
    const forwarded = signUp(access, application("eve"), { ...HERE, isForwarded: true });
    await expect(forwarded).rejects.toMatchObject({ code: "permission_denied", message: /http\.public_url/ });
    expect((await signUp(access, application("ada"), HERE)).account.role).toBe("owner");
    await signUp(access, application("bob"), { ...HERE, isForwarded: true });
  });

  it("has to use the setup token within seven days", async () => {
    const access = setUpAccess({ isExposed: true });
    const { token: setupToken } = await prepareSetup(access);
    access.clock.advance(7 * DAY_MS);
    await expect(signUp(access, { ...application("ada"), setupToken }, HERE)).rejects.toThrow("setup token");
    const { token: another } = await prepareSetup(access);
    expect(await access.store.findSetupToken(hashToken(setupToken!))).toBeUndefined();
    await signUp(access, { ...application("ada"), setupToken: another }, HERE);
  });

  it("may use an owner's invitation in place of a setup token, and no other invitation", async () => {
    const access = setUpAccess({ signUp: "invited", isExposed: true });
    const invite = (role: Role, email?: string) => createInvitation(access, { email, role, ...CLI });
    const refused = [invite("developer"), invite("administrator"), invite("owner", "bob@example.com")];
    for (const { token } of await Promise.all(refused))
      await expect(signUp(access, application("ada", token), HERE)).rejects.toThrow("setup token");
    const { token } = await invite("owner", "ada@example.com");
    expect((await signUp(access, application("ada", token), HERE)).account.id).toBe(DEFAULT_ACCOUNT_ID);
  });

  it("removes an invitation that was not needed", async () => {
    const access = setUpAccess({ signUp: "invited" });
    const request = { email: undefined, role: "administrator", ...CLI } as const;
    const { token } = await createInvitation(access, request);
    expect((await signUp(access, application("ada", token), HERE)).account.id).toBe(DEFAULT_ACCOUNT_ID);
    await expect(signUp(access, application("bob", token), HERE)).rejects.toMatchObject({ code: "permission_denied" });
  });
});

describe("signing up after the first person", () => {
  it("makes developers in mode open, with a name from their address", async () => {
    const { access } = await setUp("open");
    const { account } = await signUp(access, application("bob"), HERE);
    expect(account).toMatchObject({ role: "developer", name: "bob", email: "bob@example.com" });
    expect(account.id).toMatch(/^acct_[0-9A-Za-z]{16}$/);
    await signIn(access, application("bob"), HERE);
  });

  it("needs an invitation in mode invited, and is impossible in mode closed", async () => {
    const invited = await setUp("invited");
    await expect(signUp(invited.access, application("bob"), HERE)).rejects.toThrow("requires an invitation");
    const closed = await setUp("closed");
    await expect(signUp(closed.access, application("bob"), HERE)).rejects.toThrow("Sign-up is closed");
    await expect(closed.invite()).rejects.toThrow("Sign-up is closed");
  });

  it("reveals that an address is taken only to those who may sign up", async () => {
    const open = await setUp("open");
    await expect(signUp(open.access, application("ada"), HERE)).rejects.toMatchObject({ param: "email" });
    for (const mode of ["invited", "closed"] as const) {
      const { access } = await setUp(mode);
      const refusals = ["ada", "nobody"].map((name) => signUp(access, application(name), HERE).catch(String));
      expect(new Set(await Promise.all(refusals)).size).toBe(1);
    }
  });

  it("is limited to 20 attempts per minute and network", async () => {
    const { access } = await setUp("open");
    const codes = [];
    for (let each = 0; each < 25; each += 1) {
      codes.push(await signUp(access, application("ada"), { network: "a" }).catch((error) => error.code));
    }
    expect(codes.filter((code) => code === "rate_limited")).toHaveLength(5);
  });

  it.each([
    [{ email: "no address" }, "email"],
    [{ password: "short" }, "password"],
    [{ password: "bob@example.com" }, "password"],
    [{ name: "a\nb" }, "name"],
    [{ name: "Ada \u202Eda\u2066" }, "name"],
    [{ email: "ada\u200F@example.com" }, "email"],
  ])("is refused for %o", async (changes, param) => {
    const { access } = await setUp("open");
    await expect(signUp(access, { ...application("bob"), ...changes }, HERE)).rejects.toMatchObject({ param });
  });
});

describe("an invitation", () => {
  it("has its password hashed before those of callers without one, as a setup token does", async () => {
    const { access, invite } = await setUp("open");
    const hash = vi.spyOn(access.passwords, "hash");
    await signUp(access, application("bob", (await invite()).token), HERE);
    await signUp(access, application("eve"), HERE);
    const fresh = setUpAccess({ isExposed: true, passwords: access.passwords });
    const { token: setupToken } = await prepareSetup(fresh);
    await signUp(fresh, { ...application("ada"), setupToken }, HERE);
    expect(hash.mock.calls.map(([, lane]) => lane)).toEqual([
      { known: "bob@example.com" },
      HERE,
      { known: "ada@example.com" },
    ]);
  });

  it("makes one account, with its role, when used at the same time", async () => {
    const { access, invite } = await setUp("invited");
    const { token, record } = await invite(undefined, "administrator");
    expect(JSON.stringify(record)).not.toContain(token);
    const uses = ["bob", "eve", "mallory"].map((name) => signUp(access, application(name, token), HERE));
    const results = await Promise.allSettled(uses);
    const made = results.flatMap((result) => (result.status === "fulfilled" ? [result.value.account.role] : []));
    expect(made).toEqual(["administrator"]);
    expect(await access.store.list()).toHaveLength(2);
    await expect(signUp(access, application("late", token), HERE)).rejects.toMatchObject({ code: "permission_denied" });
  });

  it("may be bound to an address", async () => {
    const { access, invite } = await setUp("invited");
    const { token } = await invite("Bob@Example.com");
    await expect(signUp(access, application("eve", token), HERE)).rejects.toThrow("not valid");
    expect((await signUp(access, application("bob", token), HERE)).account.email).toBe("bob@example.com");
    await expect(invite("bob@example.com")).rejects.toThrow("already has an account");
  });

  it("ends after seven days, when it is revoked, and when its creator loses the right to invite", async () => {
    const { access, invite } = await setUp("invited");
    const use = (token: string) => signUp(access, application("bob", token), HERE);
    const { token, record } = await invite();
    await revokeInvitation(access, record.id, CLI);
    await expect(use(token)).rejects.toThrow("not valid");
    await expect(revokeInvitation(access, record.id, CLI)).rejects.toThrow("there is no invitation");
    const request = { email: "eve@example.com", name: "", role: "administrator", password: PASSWORD } as const;
    const eve = await createAccount(access, request);
    const given = { email: undefined, role: "administrator", actorId: eve.id, network: undefined } as const;
    const fromEve = await createInvitation(access, given);
    await updateAccount(access, { id: eve.id, update: { disabled: true }, actor: CLI });
    await expect(use(fromEve.token)).rejects.toThrow("not valid");
    // A request of hers that was admitted before.
    await expect(createInvitation(access, given)).rejects.toThrow("can invite a new administrator");
    const late = await invite();
    access.clock.advance(7 * DAY_MS);
    await expect(use(late.token)).rejects.toThrow("not valid");
  });

  it("is refused with an invalid token", async () => {
    const { access } = await setUp("open");
    for (const token of ["x", "a".repeat(43), "' OR 1=1"]) {
      await expect(signUp(access, application("bob", token), HERE)).rejects.toMatchObject({
        code: "permission_denied",
      });
    }
  });
});

describe("accounts", () => {
  const developer = (name: string) =>
    ({ email: `${name}@example.com`, name, role: "developer", password: PASSWORD }) as const;

  it("never lose their last owner", async () => {
    const { access, first } = await setUp("open");
    const { id } = first.account;
    await createAccount(access, developer("bob"));
    for (const update of [{ disabled: true }, { role: "developer", name: "x" }] as const) {
      await expect(updateAccount(access, { id, update, actor: CLI })).rejects.toThrow("last owner");
    }
    expect(await access.store.find(id)).toEqual(first.account);
    expect(await findSession(access, first.id)).toBeDefined();
  });

  it("keep one owner when two remove each other at the same moment", async () => {
    const { access, first } = await setUp("open");
    const other = await createAccount(access, { ...developer("eve"), role: "owner" });
    const remove = (id: string) => updateAccount(access, { id, update: { role: "developer" }, actor: CLI });
    await Promise.allSettled([remove(first.account.id), remove(other.id)]);
    const owners = (await access.store.list()).filter(({ role }) => role === "owner");
    expect(owners.length).toBeGreaterThan(0);
  });

  it("of owners are made, changed and disabled by owners only", async () => {
    const { access, first } = await setUp("open");
    const owner = { actorId: first.account.id, network: undefined };
    const eve = await createAccount(access, { ...developer("eve"), role: "administrator" });
    const bob = await createAccount(access, developer("bob"));
    const byEve = { actorId: eve.id, network: undefined };
    for (const update of [
      { role: "developer" },
      { disabled: true },
      { limits: { ...NO_LIMITS, tokensPerMinute: 1 } },
    ] as const)
      await expect(updateAccount(access, { id: first.account.id, update, actor: byEve })).rejects.toThrow(
        "can be changed by these roles: owner.",
      );
    for (const id of [eve.id, bob.id])
      await expect(updateAccount(access, { id, update: { role: "owner" }, actor: byEve })).rejects.toThrow("owner.");
    await expect(createInvitation(access, { email: undefined, role: "owner", ...byEve })).rejects.toThrow(
      "These roles can invite a new owner: owner.",
    );
    expect(await access.store.listInvitations()).toEqual([]);
    expect((await updateAccount(access, { id: bob.id, update: { role: "viewer" }, actor: byEve })).role).toBe("viewer");
    expect((await updateAccount(access, { id: eve.id, update: { role: "owner" }, actor: owner })).role).toBe("owner");
    expect(
      (await updateAccount(access, { id: first.account.id, update: { role: "developer" }, actor: byEve })).role,
    ).toBe("developer");
    await expect(updateAccount(access, { id: eve.id, update: { disabled: true }, actor: owner })).rejects.toThrow(
      "roles: owner.",
    );
  });

  it("are disabled with all their sessions, and enabled again", async () => {
    const { access } = await setUp("open");
    const bob = await signUp(access, application("bob"), HERE);
    const change = (disabled: boolean) =>
      updateAccount(access, { id: bob.account.id, update: { disabled }, actor: CLI });
    expect((await change(true)).disabledAtMs).toBe(access.clock.now());
    expect(access.stores.entries().at(-1)?.action).toBe("account_disabled");
    await change(true);
    expect(access.stores.entries().filter(({ action }) => action === "account_disabled")).toHaveLength(1);
    expect(await findSession(access, bob.id)).toBeUndefined();
    await change(false);
    expect(await findSession(access, bob.id)).toBeUndefined();
    await signIn(access, application("bob"), HERE);
  });

  it("accept only valid limits", async () => {
    const { access, first } = await setUp("open");
    const set = (limits: object) => {
      const all = { ...first.account.limits, ...limits };
      return updateAccount(access, { id: first.account.id, update: { limits: all }, actor: CLI });
    };
    expect((await set({ requestsPerMinute: 5 })).limits.requestsPerMinute).toBe(5);
    await updateAccount(access, {
      id: first.account.id,
      update: { limits: { ...first.account.limits, requestsPerMinute: 5 } },
      actor: CLI,
    });
    // Setting the same limits again is not recorded.
    expect(access.stores.entries().filter(({ action }) => action === "limits_changed")).toHaveLength(1);
    for (const limits of [{ requestsPerMinute: 0 }, { tokensPerMinute: 1.5 }, { monthlyBudgetMicroUsd: -1 }]) {
      await expect(set(limits)).rejects.toMatchObject({ code: "invalid_request" });
    }
  });

  it("made by the command line start with an owner, who owns the default account", async () => {
    const access = setUpAccess();
    await expect(createAccount(access, developer("bob"))).rejects.toThrow("has to be owner");
    const first = await createAccount(access, { ...developer("ada"), role: "owner" });
    expect(first.id).toBe(DEFAULT_ACCOUNT_ID);
    expect((await createAccount(access, developer("bob"))).role).toBe("developer");
    await expect(createAccount(access, developer("bob"))).rejects.toThrow("already has an account");
  });
});

describe("an entry of the audit log", () => {
  it("holds no password, hash, session, token or address, here or in the log", async () => {
    const { access, first, invite } = await setUp("invited");
    const { token } = await invite("bob@example.com");
    const bob = await signUp(access, application("bob", token), HERE);
    await signIn(access, { email: "bob@example.com", password: "a wrong and secret one" }, HERE).catch(() => undefined);
    const events = JSON.stringify([access.stores.entries(), access.logged]);
    const { passwordHash } = (await access.store.find(bob.account.id))!;
    for (const secret of [PASSWORD, "wrong and secret", passwordHash!, token, bob.id, first.id, "bob@", "ada@"]) {
      expect(events).not.toContain(secret);
    }
    expect(access.logged.map(({ action }) => action)).toEqual([
      "signed_up",
      "invitation_created",
      "invitation_accepted",
      "signed_up",
      "sign_in_failed",
    ]);
    expect(access.logged.at(-1)).toMatchObject({ network: HERE.network, accountId: bob.account.id });
  });

  it("does not prevent the action when it cannot be stored", async () => {
    const { access } = await setUp("open");
    access.stores.audit.append = () => Promise.reject(new Error("the disk is full"));
    await signIn(access, application("ada"), HERE);
    expect(access.logged.at(-1)?.action).toBe("signed_in");
  });

  it("is pruned after its retention, with all other expired rows", async () => {
    const { access, invite } = await setUp("open");
    await invite();
    await signUp(access, application("ada"), { network: networkNumber(1) }).catch(() => undefined);
    access.clock.advance(401 * DAY_MS);
    const due = { ...access, nowMs: access.clock.now() };
    expect(await pruneAccess(due)).toEqual({
      sessions: 1,
      browsers: 0,
      invitations: 1,
      adminKeys: 0,
      // The latest one stays.
      entries: 1,
      throttles: 2,
    });
    expect(await pruneAccess(due)).toEqual({
      sessions: 0,
      browsers: 0,
      invitations: 0,
      adminKeys: 0,
      entries: 0,
      throttles: 0,
    });
  });
});
