import { afterEach, beforeEach, describe, expect, it } from "vitest";
import type {
  AccountRecord,
  AccountStore,
  InvitationRecord,
  Role,
  SessionRecord,
  ThrottleStore,
} from "../../src/access/account-store.ts";
import type { AdminKeyRecord } from "../../src/access/admin-key-store.ts";
import type { CustomRole } from "../../src/access/role-store.ts";
import { DEFAULT_ACCOUNT_ID } from "../../src/access/key-store.ts";
import type { ExpectedMembers, TeamRole } from "../../src/access/team-store.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { describeFactorStore } from "./factor-store-contract.ts";

/** The fresh stores under test, with only the rows that every installation begins with. */
export interface StoreUnderTest {
  readonly accounts: AccountStore;
  readonly throttles: ThrottleStore;
  readonly close?: () => Promise<void>;
}

const NOW_MS = 1_700_000_000_000;

function account(id: string, changes: Partial<AccountRecord> = {}): AccountRecord {
  return {
    id,
    kind: "person",
    email: `${id}@example.com`,
    name: id,
    role: "developer",
    passwordHash: "$argon2id$1",
    limits: NO_LIMITS,
    createdAtMs: NOW_MS,
    disabledAtMs: undefined,
    ...changes,
  };
}

function session(hash: string, accountId: string, changes: Partial<SessionRecord> = {}): SessionRecord {
  const at = { createdAtMs: NOW_MS, lastSeenAtMs: NOW_MS, authenticatedAtMs: NOW_MS, method: "password" as const };
  return { hash, accountId, ...at, network: "192.0.2.0/24", browser: "Firefox on Linux", ...changes };
}

function invitation(id: string, changes: Partial<InvitationRecord> = {}): InvitationRecord {
  return {
    id,
    hash: `hash of ${id}`,
    email: undefined,
    role: "developer",
    createdBy: DEFAULT_ACCOUNT_ID,
    createdAtMs: NOW_MS,
    expiresAtMs: NOW_MS + 1000,
    usedAtMs: undefined,
    ...changes,
  };
}

/** Registers the suite that every implementation of AccountStore and ThrottleStore has to pass. */
export function describeAccountStore(name: string, open: () => Promise<StoreUnderTest> | StoreUnderTest): void {
  let under: StoreUnderTest;
  let store: AccountStore;
  beforeEach(async () => {
    under = await open();
    store = under.accounts;
  });
  afterEach(() => under.close?.());

  describe(`factors in ${name}`, () => {
    describeFactorStore(async () => {
      for (const id of ["ada", "bob"]) await store.insert(account(id));
      return store;
    });
  });

  describe(`accounts in ${name}`, () => {
    it("contain only the default account at first, without sign-in", async () => {
      const [first, ...others] = await store.list();
      expect(others).toEqual([]);
      expect(first).toMatchObject({
        id: DEFAULT_ACCOUNT_ID,
        email: undefined,
        passwordHash: undefined,
        limits: NO_LIMITS,
      });
      expect(first?.disabledAtMs).toBeUndefined();
    });

    it("are read as they were inserted, oldest first", async () => {
      const limits = { ...NO_LIMITS, requestsPerMinute: 5, monthlyBudgetMicroUsd: 9_000_000_000_000 };
      const younger = account("acct_b", { createdAtMs: NOW_MS + 5, name: "Ünïcode 🦜", limits });
      const older = account("acct_a", { role: "administrator", disabledAtMs: NOW_MS });
      expect(await store.insert(younger)).toBe(true);
      expect(await store.insert(older)).toBe(true);
      expect(await store.find("acct_b")).toEqual(younger);
      expect(await store.findByEmail("acct_a@example.com")).toEqual(older);
      expect((await store.list()).filter(({ id }) => id !== DEFAULT_ACCOUNT_ID)).toEqual([older, younger]);
      expect(await store.find("acct_none")).toBeUndefined();
      expect(await store.findByEmail("none@example.com")).toBeUndefined();
    });

    it("are listed in pages, also with equal times", async () => {
      const ids = ["acct_a", "acct_b", "acct_c", "acct_d"];
      for (const id of ids.toReversed()) await store.insert(account(id));
      const first = await store.list({ limit: 3 });
      const { createdAtMs, id } = first.at(-1)!;
      const second = await store.list({ limit: 3, after: { createdAtMs, id } });
      expect([first.length, second.length]).toEqual([3, 2]);
      expect([...first, ...second]).toEqual(await store.list());
    });

    it("have no owner until one has a password", async () => {
      expect(await store.isClaimed()).toBe(false);
      await store.insert(account("acct_a", { passwordHash: undefined }));
      expect(await store.isClaimed()).toBe(false);
      await store.insert(account("acct_b", { disabledAtMs: NOW_MS }));
      expect(await store.isClaimed()).toBe(true);
    });

    it("have unique addresses, also when two are inserted at once", async () => {
      const both = ["acct_a", "acct_b"].map((id) => store.insert(account(id, { email: "one@example.com" })));
      expect((await Promise.all(both)).filter(Boolean)).toHaveLength(1);
      expect(await store.list()).toHaveLength(2);
    });

    it("keep fields that a change omits", async () => {
      await store.insert(account("acct_a"));
      expect(await store.update("acct_a", { disabledAtMs: NOW_MS })).toBe(true);
      expect(await store.update("acct_a", { role: "administrator", name: "new" })).toBe(true);
      const changed = account("acct_a", { role: "administrator", name: "new", disabledAtMs: NOW_MS });
      expect(await store.find("acct_a")).toEqual(changed);
      await store.update("acct_a", { disabledAtMs: undefined, limits: { ...NO_LIMITS, tokensPerMinute: 7 } });
      expect(await store.find("acct_a")).toMatchObject({ disabledAtMs: undefined, limits: { tokensPerMinute: 7 } });
      expect(await store.update("acct_none", { name: "x" })).toBe(false);
    });

    it.each(["owner", "administrator", "developer", "viewer"] as const)("have the role %s", async (role) => {
      await store.insert(account("acct_a", { role }));
      await store.insert(account("acct_b", { role: "viewer" }));
      await store.insertInvitation(invitation("inv_a", { hash: "h", role, createdBy: "acct_a" }));
      expect([await store.find("acct_a"), await store.findInvitation("h")]).toMatchObject([{ role }, { role }]);
      expect(await store.update("acct_a", { name: "x" }, { role })).toBe(true);
      expect(await store.update("acct_b", { role }, { role: "viewer", actor: { id: "acct_a", roles: [role] } })).toBe(
        true,
      );
      expect(await store.find("acct_b")).toMatchObject({ role });
      for (const other of ["owner", "administrator", "developer", "viewer"] as const) {
        if (other === role) continue;
        expect(await store.update("acct_a", { name: "y" }, { role: other })).toBe(false);
        const actor = { id: "acct_b", roles: [other] };
        expect(await store.update("acct_a", { name: "y" }, { actor })).toBe(false);
      }
    });

    it("are changed only while the expected account is enabled and has the role", async () => {
      await store.insert(account("acct_a", { role: "administrator" }));
      await store.insert(account("acct_b"));
      const by = (id: string) => ({ actor: { id, roles: ["owner", "administrator"] as const } });
      const byAda = by("acct_a");
      expect(await store.update("acct_b", { role: "administrator" }, by("acct_b"))).toBe(false);
      expect(await store.update("acct_b", { role: "administrator" }, by("acct_none"))).toBe(false);
      expect(await store.update("acct_b", { name: "Bob" }, byAda)).toBe(true);
      expect(await store.update("acct_a", { role: "developer" }, byAda)).toBe(true);
      expect(await store.update("acct_a", { role: "administrator" }, byAda)).toBe(false);
      expect(await store.update("acct_b", { name: "Eve" }, byAda)).toBe(false);
      await store.update("acct_a", { role: "administrator", disabledAtMs: 1 });
      expect(await store.update("acct_a", { disabledAtMs: undefined }, byAda)).toBe(false);
      expect(await store.find("acct_b")).toMatchObject({ name: "Bob", role: "developer" });
    });

    describe("of teams", () => {
      const most = { members: 2, teams: 2 };
      const openTeams = async () => {
        await store.insert(account("acct_t", { kind: "team", email: undefined, name: "Search" }));
        await store.insert(account("acct_u", { kind: "service", email: undefined, name: "CI" }));
        await store.insert(account("acct_a", { name: "Ada" }));
        await store.insert(account("acct_b", { name: "Bob" }));
        const set = (teamId: string, accountId: string, role: TeamRole | undefined, actor?: ExpectedMembers["actor"]) =>
          store.changeMember({ teamId, accountId, role, atMs: 7 }, { most, ...(actor && { actor }) });
        return { set };
      };

      it("have members, of which sessions know", async () => {
        const { set } = await openTeams();
        expect(await set("acct_t", "acct_a", "viewer")).toEqual({ before: undefined });
        expect(await set("acct_t", "acct_a", "maintainer")).toEqual({ before: "viewer" });
        expect(await set("acct_t", "acct_b", "developer")).toEqual({ before: undefined });
        expect(await set("acct_u", "acct_a", "developer")).toEqual({ before: undefined });
        const ada = [
          { teamId: "acct_u", teamName: "CI", role: "developer" },
          { teamId: "acct_t", teamName: "Search", role: "maintainer" },
        ];
        expect(await store.memberships("acct_a")).toEqual(ada);
        expect(await store.memberships("acct_t")).toEqual([]);
        await store.insertSession(session("h1", "acct_a"));
        expect((await store.findSession("h1"))?.memberships).toEqual(ada);
        expect(await store.members("acct_t")).toMatchObject([
          { id: "acct_a", name: "Ada", role: "maintainer", addedAtMs: 7 },
          { id: "acct_b", name: "Bob", role: "developer" },
        ]);
        const teams = async (memberId?: string) =>
          (await store.listTeams({ limit: 9 }, memberId)).map(({ account: { id }, members }) => [id, members]);
        expect(await teams()).toEqual([
          ["acct_t", 2],
          ["acct_u", 1],
        ]);
        expect(await teams("acct_b")).toEqual([["acct_t", 2]]);
        expect(await store.listTeams({ limit: 1, after: { createdAtMs: NOW_MS, id: "acct_t" } })).toHaveLength(1);
        expect(await set("acct_t", "acct_a", undefined)).toEqual({ before: "maintainer" });
        expect(await set("acct_t", "acct_a", undefined)).toEqual({ before: undefined });
        expect(await teams("acct_a")).toEqual([["acct_u", 1]]);
      });

      it("refuse what is no team or person, too many, and actors without the permission at that moment", async () => {
        const { set } = await openTeams();
        await store.insert(account("acct_c"));
        await store.insert(account("acct_x", { disabledAtMs: 1 }));
        await store.insert(account("acct_v", { kind: "team", email: undefined }));
        expect(await set("acct_none", "acct_a", "viewer")).toBe("unknown team");
        expect(await set("acct_b", "acct_a", "viewer")).toBe("unknown team");
        for (const id of ["acct_none", "acct_u", "acct_x"])
          expect(await set("acct_t", id, "viewer")).toBe("unknown person");
        const isMaintainer: ExpectedMembers["actor"] = {
          id: "acct_a",
          mayChange: ({ memberships }) => memberships.some(({ role }) => role === "maintainer"),
        };
        expect(await set("acct_t", "acct_a", "maintainer", isMaintainer)).toBe("denied");
        await set("acct_t", "acct_a", "maintainer");
        expect(await set("acct_t", "acct_b", "viewer", isMaintainer)).toEqual({ before: undefined });
        expect(await set("acct_t", "acct_c", "viewer", isMaintainer)).toBe("too many members");
        await set("acct_u", "acct_a", "viewer");
        expect(await set("acct_v", "acct_a", "viewer")).toBe("too many teams");
        await store.update("acct_a", { disabledAtMs: 1 });
        expect(await set("acct_t", "acct_b", undefined, isMaintainer)).toBe("denied");
      });
    });

    it("are changed only while they have the expected password hash, if one is given", async () => {
      await store.insert(account("acct_a"));
      expect(await store.update("acct_a", { passwordHash: "2" }, { passwordHash: "other" })).toBe(false);
      expect((await store.find("acct_a"))?.passwordHash).toBe("$argon2id$1");
      expect(await store.update("acct_a", { passwordHash: "2" }, { passwordHash: "$argon2id$1" })).toBe(true);
      expect((await store.find("acct_a"))?.passwordHash).toBe("2");
    });

    it("give the default account to the first person only", async () => {
      const names = ["ann", "bob", "eve"];
      const claims = names.map((each) =>
        store.claimDefault({ email: `${each}@example.com`, name: each, passwordHash: `hash of ${each}` }),
      );
      const won = await Promise.all(claims);
      expect(won.filter(Boolean)).toHaveLength(1);
      const winner = names[won.indexOf(true)];
      expect(await store.list()).toHaveLength(1);
      expect(await store.find(DEFAULT_ACCOUNT_ID)).toMatchObject({
        email: `${winner}@example.com`,
        name: winner,
        passwordHash: `hash of ${winner}`,
        role: "owner",
      });
    });

    it("refuse claims of the default account once any account, also a disabled one, has a password", async () => {
      await store.insert(account("acct_a", { disabledAtMs: NOW_MS }));
      expect(await store.claimDefault({ email: "b@example.com", name: "b", passwordHash: "x" })).toBe(false);
    });
  });

  describe(`identities in ${name}`, () => {
    const ada = { issuer: "https://id.example.com", subject: "ada", linkedAtMs: NOW_MS };
    const other = { ...ada, issuer: "https://other.example.com" };

    it("find their account, by issuer and subject", async () => {
      await store.insert(account("acct_a"));
      expect(await store.link("acct_a", ada)).toBe(true);
      expect(await store.findByIdentity(ada)).toMatchObject({ id: "acct_a" });
      expect(await store.findByIdentity(other)).toBeUndefined();
      expect(await store.findByIdentity({ ...ada, subject: "Ada" })).toBeUndefined();
      expect(await store.link("acct_a", other)).toBe(true);
      expect(await store.unlink("acct_a", ada.issuer)).toBe(true);
      expect(await store.unlink("acct_a", ada.issuer)).toBe(false);
      expect(await store.findByIdentity(ada)).toBeUndefined();
      expect(await store.findByIdentity(other)).toMatchObject({ id: "acct_a" });
    });

    it("belong to one account each, which has one of an issuer", async () => {
      await store.insert(account("acct_a"));
      await store.insert(account("acct_b"));
      const links = await Promise.all([store.link("acct_a", ada), store.link("acct_b", ada)]);
      expect(links.filter(Boolean)).toHaveLength(1);
      const [owner, another] = links[0] ? ["acct_a", "acct_b"] : ["acct_b", "acct_a"];
      expect(await store.link(owner, { ...ada, subject: "eve" })).toBe(false);
      expect(await store.link(another, { ...ada, subject: "eve" })).toBe(true);
    });

    it("take the place of the account's other ways to sign in, unless they are refused", async () => {
      await store.insert(account("acct_a", { passwordHash: "x" }));
      await store.insert(account("acct_b"), other);
      await store.insertSession(session("one", "acct_a"));
      await store.insertSession(session("two", "acct_b"));
      const browser = { hash: "browser", accountId: "acct_a", signedInAtMs: NOW_MS };
      await store.keepBrowser(browser, { formerHash: undefined, most: 20 });
      await store.insertResetLink({ hash: "reset", accountId: "acct_a", expiresAtMs: NOW_MS + 1000 }, NOW_MS);
      await store.insertTotp("acct_a", { sealed: "s", lastStep: 0, createdAtMs: NOW_MS, codeHashes: ["code"] });
      expect(await store.link("acct_a", other)).toBe(false);
      expect(await store.find("acct_a")).toMatchObject({ passwordHash: "x" });
      expect([(await store.findSession("one"))?.account.id, await store.countRecoveryCodes("acct_a")]).toEqual([
        "acct_a",
        1,
      ]);
      expect(await store.link("acct_a", ada)).toBe(true);
      expect(await store.find("acct_a")).toMatchObject({ passwordHash: undefined });
      expect([
        await store.findSession("one"),
        await store.accountsOfBrowser("browser"),
        await store.findResetLink("reset", NOW_MS),
        await store.findTotp("acct_a"),
        await store.countRecoveryCodes("acct_a"),
      ]).toEqual([undefined, [], undefined, undefined, 0]);
      expect((await store.findSession("two"))?.account.id).toBe("acct_b");
    });

    it("are inserted with their account, or neither is", async () => {
      expect(await store.insert(account("acct_a", { passwordHash: undefined }), ada)).toBe(true);
      expect(await store.findByIdentity(ada)).toMatchObject({ id: "acct_a", passwordHash: undefined });
      expect(await store.insert(account("acct_b"), ada)).toBe(false);
      expect(await store.find("acct_b")).toBeUndefined();
      expect(await store.insert(account("acct_c", { email: "acct_a@example.com" }), other)).toBe(false);
      expect(await store.findByIdentity(other)).toBeUndefined();
    });

    it("claim the default account once, and make an owner", async () => {
      const owner = { email: "ada@example.com", name: "Ada", passwordHash: undefined };
      const [one, two] = await Promise.all([store.claimDefault(owner, ada), store.claimDefault(owner, other)]);
      expect([one, two].filter(Boolean)).toHaveLength(1);
      expect(await store.isClaimed()).toBe(true);
      expect(await store.findByIdentity(one ? ada : other)).toMatchObject({ id: DEFAULT_ACCOUNT_ID, name: "Ada" });
      expect(await store.findByIdentity(one ? other : ada)).toBeUndefined();
      expect(await store.claimDefault({ ...owner, passwordHash: "$argon2id$2" })).toBe(false);
    });
  });

  describe(`sign-in links in ${name}`, () => {
    it("are taken once, before they expire", async () => {
      await store.insert(account("acct_a"));
      const link = { hash: "hash of a link", accountId: "acct_a", expiresAtMs: NOW_MS + 1 };
      await store.insertSignInLink(link, NOW_MS);
      const taken = await Promise.all([
        store.takeSignInLink(link.hash, NOW_MS),
        store.takeSignInLink(link.hash, NOW_MS),
      ]);
      expect(taken.filter((each) => each !== undefined)).toEqual([link]);
      await store.insertSignInLink(link, NOW_MS);
      expect(await store.takeSignInLink(link.hash, NOW_MS + 1)).toBeUndefined();
    });
  });

  describe(`sessions in ${name}`, () => {
    beforeEach(async () => {
      await store.insert(account("acct_a"));
      await store.insert(account("acct_b"));
    });

    it("are found with the current state of their account", async () => {
      await store.insertSession(session("h1", "acct_a"));
      await store.update("acct_a", { role: "administrator" });
      const expected = {
        session: session("h1", "acct_a"),
        account: account("acct_a", { role: "administrator" }),
        memberships: [],
      };
      expect(await store.findSession("h1")).toEqual(expected);
      expect(await store.findSession("h2")).toBeUndefined();
    });

    it("keep what they began with, and the provider's ID token", async () => {
      await store.insertSession(session("one", DEFAULT_ACCOUNT_ID, { method: "oidc" }), "an.id.token");
      expect((await store.findSession("one"))?.session.method).toBe("oidc");
      expect(await store.idTokenOf("one")).toBe("an.id.token");
      expect(await store.idTokenOf("two")).toBeUndefined();
    });

    it("are touched field by field", async () => {
      await store.insertSession(session("h1", "acct_a"));
      await store.touchSession("h1", { lastSeenAtMs: NOW_MS + 5 });
      await store.touchSession("h1", { authenticatedAtMs: NOW_MS + 7 });
      await store.touchSession("none", { lastSeenAtMs: 1 });
      const expected = session("h1", "acct_a", { lastSeenAtMs: NOW_MS + 5, authenticatedAtMs: NOW_MS + 7 });
      expect((await store.findSession("h1"))?.session).toEqual(expected);
    });

    it("are listed for one account by their last use, up to a limit", async () => {
      await store.insertSession(session("h1", "acct_a"));
      await store.insertSession(session("h2", "acct_a", { lastSeenAtMs: NOW_MS + 5, network: undefined }));
      await store.insertSession(session("h3", "acct_b"));
      const both = [session("h2", "acct_a", { lastSeenAtMs: NOW_MS + 5, network: undefined }), session("h1", "acct_a")];
      expect(await store.listSessions("acct_a", 10)).toEqual(both);
      expect(await store.listSessions("acct_a", 1)).toEqual(both.slice(0, 1));
    });

    it("are removed one by one, or all of an account but one", async () => {
      for (const hash of ["h1", "h2", "h3"]) await store.insertSession(session(hash, "acct_a"));
      await store.insertSession(session("h4", "acct_b"));
      await store.removeSession("h1");
      await store.removeSession("h1");
      expect(await store.findSession("h1")).toBeUndefined();
      expect(await store.removeSessions("acct_a", "h2")).toBe(1);
      expect(await store.findSession("h2")).toBeDefined();
      expect(await store.findSession("h3")).toBeUndefined();
      await store.removeSessions("acct_a");
      expect(await store.findSession("h2")).toBeUndefined();
      expect(await store.findSession("h4")).toBeDefined();
    });

    it("are pruned by age and by last use", async () => {
      await store.insertSession(session("old", "acct_a", { createdAtMs: NOW_MS - 10 }));
      await store.insertSession(session("idle", "acct_a", { lastSeenAtMs: NOW_MS - 10 }));
      await store.insertSession(session("used", "acct_a"));
      const limits = { createdBeforeMs: NOW_MS - 5, seenBeforeMs: NOW_MS - 5 };
      expect(await store.pruneSessions(limits)).toBe(2);
      expect(await store.findSession("used")).toBeDefined();
      expect(await store.pruneSessions(limits)).toBe(0);
    });
  });

  describe(`known browsers in ${name}`, () => {
    const keep = (hash: string, accountId: string, more: { at?: number; formerHash?: string; most?: number } = {}) =>
      store.keepBrowser(
        { hash, accountId, signedInAtMs: NOW_MS + (more.at ?? 0) },
        { formerHash: more.formerHash, most: more.most ?? 10 },
      );
    beforeEach(async () => {
      await store.insert(account("acct_a"));
      await store.insert(account("acct_b"));
    });

    it("belong to all accounts that signed in with them, also under a new hash", async () => {
      await keep("b1", "acct_a");
      await keep("b2", "acct_b", { formerHash: "b1" });
      expect(await store.accountsOfBrowser("b1")).toEqual([]);
      expect([...(await store.accountsOfBrowser("b2"))].toSorted()).toEqual(["acct_a", "acct_b"]);
      await keep("b2", "acct_a", { at: 5 });
      expect(await store.accountsOfBrowser("b2")).toHaveLength(2);
      expect(await store.accountsOfBrowser("none")).toEqual([]);
    });

    it("are limited to the latest ones of an account", async () => {
      await keep("other", "acct_b");
      for (const at of [1, 2, 3, 4]) await keep(`b${at}`, "acct_a", { at, most: 2 });
      const known = await Promise.all(["b1", "b2", "b3", "b4", "other"].map((hash) => store.accountsOfBrowser(hash)));
      expect(known.map(({ length }) => length)).toEqual([0, 0, 1, 1, 1]);
    });

    it("are removed with all of an account, and by their age", async () => {
      await keep("b1", "acct_a");
      await keep("b1", "acct_b");
      await keep("b2", "acct_b", { at: 9 });
      await store.removeBrowsers("acct_a");
      expect(await store.accountsOfBrowser("b1")).toEqual(["acct_b"]);
      expect(await store.pruneBrowsers(NOW_MS + 5)).toBe(1);
      expect(await store.accountsOfBrowser("b1")).toEqual([]);
      expect(await store.accountsOfBrowser("b2")).toEqual(["acct_b"]);
    });
  });

  describe(`setup tokens in ${name}`, () => {
    it("are found until they expire and are replaced, or all are removed", async () => {
      const token = (hash: string, expiresAtMs: number) => ({ hash, expiresAtMs });
      await store.insertSetupToken(token("t1", NOW_MS + 5), NOW_MS);
      await store.insertSetupToken(token("t2", NOW_MS + 9), NOW_MS + 4);
      expect(await store.findSetupToken("t1")).toEqual(token("t1", NOW_MS + 5));
      await store.insertSetupToken(token("t3", NOW_MS + 9), NOW_MS + 5);
      expect(await store.findSetupToken("t1")).toBeUndefined();
      expect(await store.findSetupToken("t2")).toEqual(token("t2", NOW_MS + 9));
      await store.removeSetupTokens();
      expect(await store.findSetupToken("t2")).toBeUndefined();
      expect(await store.findSetupToken("t3")).toBeUndefined();
    });
  });

  describe(`invitations in ${name}`, () => {
    it("are read as they were inserted, newest first", async () => {
      const [older, newer] = [
        invitation("inv_a", { email: "x@example.com" }),
        invitation("inv_b", { createdAtMs: NOW_MS + 1 }),
      ];
      await store.insertInvitation(older);
      await store.insertInvitation(newer);
      expect(await store.listInvitations()).toEqual([newer, older]);
      expect(await store.findInvitation(older.hash)).toEqual(older);
      expect(await store.findInvitation("none")).toBeUndefined();
    });

    it("make one account each when used at the same time", async () => {
      await store.insertInvitation(invitation("inv_a"));
      const uses = ["acct_a", "acct_b"].map((id) =>
        store.acceptInvitation("hash of inv_a", account(id), { atMs: NOW_MS + 3 }),
      );
      expect((await Promise.all(uses)).filter(Boolean)).toHaveLength(1);
      expect(await store.list()).toHaveLength(2);
      expect((await store.findInvitation("hash of inv_a"))?.usedAtMs).toBe(NOW_MS + 3);
    });

    it("are not used up when the address is taken", async () => {
      await store.insert(account("acct_a"));
      await store.insertInvitation(invitation("inv_a"));
      const twin = account("acct_b", { email: "acct_a@example.com" });
      expect(await store.acceptInvitation("hash of inv_a", twin, { atMs: NOW_MS })).toBe(false);
      expect((await store.findInvitation("hash of inv_a"))?.usedAtMs).toBeUndefined();
      expect(await store.acceptInvitation("none", account("acct_c"), { atMs: NOW_MS })).toBe(false);
      expect(await store.find("acct_c")).toBeUndefined();
    });

    it("make an account with an identity, or nothing where that is taken", async () => {
      const identity = { issuer: "https://id.example.com", subject: "1", linkedAtMs: NOW_MS };
      for (const id of ["inv_a", "inv_b"]) await store.insertInvitation(invitation(id));
      expect(await store.acceptInvitation("hash of inv_a", account("acct_a"), { atMs: NOW_MS, identity })).toBe(true);
      expect(await store.acceptInvitation("hash of inv_b", account("acct_b"), { atMs: NOW_MS, identity })).toBe(false);
      expect((await store.findByIdentity(identity))?.id).toBe("acct_a");
      expect((await store.findInvitation("hash of inv_b"))?.usedAtMs).toBeUndefined();
      expect(await store.find("acct_b")).toBeUndefined();
    });

    it("make no account once they have expired", async () => {
      await store.insertInvitation(invitation("inv_a"));
      expect(await store.acceptInvitation("hash of inv_a", account("acct_a"), { atMs: NOW_MS + 1000 })).toBe(false);
      expect(await store.find("acct_a")).toBeUndefined();
      expect(await store.acceptInvitation("hash of inv_a", account("acct_a"), { atMs: NOW_MS + 999 })).toBe(true);
    });

    it("are removed once", async () => {
      await store.insertInvitation(invitation("inv_a"));
      expect(await store.removeInvitation("inv_a")).toBe(true);
      expect(await store.removeInvitation("inv_a")).toBe(false);
      expect(await store.listInvitations()).toEqual([]);
    });
  });

  describe(`custom roles in ${name}`, () => {
    const support: CustomRole = {
      id: "role_support",
      name: "Support",
      permissions: ["requests.read", "usage.read"],
      base: "viewer",
      createdAtMs: NOW_MS,
    };

    it("are made with a name of their own, changed, and read with sessions and members", async () => {
      expect(await store.insertRole(support, 2)).toBe("done");
      expect(await store.insertRole({ ...support, id: "role_other", name: "SUPPORT" }, 2)).toBe("name taken");
      expect(await store.insertRole({ ...support, id: "role_auditor", name: "Auditor" }, 2)).toBe("done");
      expect(await store.insertRole({ ...support, id: "role_third", name: "Third" }, 2)).toBe("too many");
      expect((await store.roles()).map((role) => role.name)).toEqual(["Auditor", "Support"]);
      await store.insert(account("ada", { role: support.id }));
      await store.insertSession(session("s", "ada"));
      expect((await store.findSession("s"))?.customRole).toEqual(support);
      const changed: CustomRole = { ...support, name: "support", permissions: ["audit.read"], base: "developer" };
      expect(await store.changeRole(changed)).toBe("done");
      expect(await store.changeRole({ ...changed, name: "auditor" })).toBe("name taken");
      expect(await store.changeRole({ ...changed, id: "role_none", name: "none" })).toBe("unknown role");
      expect((await store.findSession("s"))?.customRole).toEqual(changed);
      await store.insert(account("team", { kind: "team", email: undefined }));
      const asked: unknown[] = [];
      const mayChange: NonNullable<ExpectedMembers["actor"]>["mayChange"] = ({ customRole }) =>
        asked.push(customRole) === 0;
      const change = { teamId: "team", accountId: "ada", role: "viewer", atMs: NOW_MS } as const;
      const most = { members: 9, teams: 9 };
      expect(await store.changeMember(change, { actor: { id: "ada", mayChange }, most })).toBe("denied");
      expect(asked).toEqual([changed]);
    });

    it("count as the role of an account, and are removed when no account has them", async () => {
      await store.insertRole(support, 9);
      await store.insert(account("ada"));
      const by = (roles: readonly Role[]) => ({ actor: { id: "ada", roles } });
      expect(await store.update("ada", { role: support.id }, { role: "developer" })).toBe(true);
      expect(await store.find("ada")).toMatchObject({ role: support.id });
      expect(await store.update("ada", { name: "Ada" }, { role: "developer" })).toBe(false);
      expect(await store.update("ada", { name: "Ada" }, by(["developer", "viewer"]))).toBe(false);
      expect(await store.update("ada", { name: "Ada" }, by(["owner", support.id]))).toBe(true);
      await store.insertInvitation(invitation("unused", { role: support.id }));
      expect((await store.listInvitations())[0]).toMatchObject({ role: support.id });
      expect(await store.removeRole(support.id)).toBe(2);
      await store.removeInvitation("unused");
      expect(await store.removeRole(support.id)).toBe(1);
      await store.update("ada", { role: "viewer" });
      expect(await store.removeRole(support.id)).toBe(0);
      expect(await store.roles()).toEqual([]);
    });
  });

  describe(`administration keys in ${name}`, () => {
    const key = (id: string, changes: Partial<AdminKeyRecord> = {}): AdminKeyRecord => ({
      id,
      hash: `hash of ${id}`,
      display: "sk_parley_admin_ab…wxyz",
      name: id,
      accountId: "ada",
      permissions: ["keys.read", "keys.write"],
      createdAtMs: NOW_MS,
      expiresAtMs: undefined,
      revokedAtMs: undefined,
      lastUsedAtMs: undefined,
      ...changes,
    });
    beforeEach(async () => void (await store.insert(account("ada", { role: "administrator" }))));

    it("are found with their account, listed, touched and revoked once", async () => {
      expect(await store.insertAdminKey(key("one", { expiresAtMs: NOW_MS + 5 }), 9)).toBe("added");
      expect(await store.insertAdminKey(key("two", { createdAtMs: NOW_MS + 1 }), 9)).toBe("added");
      expect(await store.findAdminKey("hash of one")).toEqual({
        adminKey: key("one", { expiresAtMs: NOW_MS + 5 }),
        account: await store.find("ada"),
        memberships: [],
      });
      expect(await store.findAdminKey("hash of none")).toBeUndefined();
      await store.touchAdminKey("one", NOW_MS + 7);
      const revoked = key("one", { expiresAtMs: NOW_MS + 5, lastUsedAtMs: NOW_MS + 7, revokedAtMs: NOW_MS + 8 });
      expect(await store.revokeAdminKey("one", NOW_MS + 8)).toEqual(revoked);
      expect(await store.revokeAdminKey("one", NOW_MS + 9)).toBeUndefined();
      expect(await store.listAdminKeys(9)).toEqual([key("two", { createdAtMs: NOW_MS + 1 }), revoked]);
      expect(await store.listAdminKeys(1)).toHaveLength(1);
    });

    it("are bounded for an account, without those that have ended, and are removed some time after their end", async () => {
      await store.insertAdminKey(key("expired", { expiresAtMs: NOW_MS - 1 }), 1);
      await store.insertAdminKey(key("revoked", { revokedAtMs: NOW_MS - 5 }), 1);
      expect(await store.insertAdminKey(key("one"), 1)).toBe("added");
      expect(await store.insertAdminKey(key("two"), 1)).toBe("full");
      expect(await store.pruneAdminKeys(NOW_MS - 1)).toBe(1);
      expect((await store.listAdminKeys(9)).map(({ id }) => id).toSorted()).toEqual(["expired", "one"]);
    });

    it("end with the offboarding of their account", async () => {
      await store.insertAdminKey(key("one"), 9);
      const expected = { role: "administrator" } as const;
      const done = await store.offboard("ada", { keysTo: undefined, atMs: NOW_MS, mostKeys: 9, expected });
      expect(done).toMatchObject({ adminKeyIds: ["one"] });
      expect((await store.listAdminKeys(9))[0]).toMatchObject({ revokedAtMs: NOW_MS });
    });

    it("are not made for an account that was disabled meanwhile", async () => {
      await store.update("ada", { disabledAtMs: NOW_MS });
      expect(await store.insertAdminKey(key("one"), 9)).toBe("disabled");
      expect(await store.listAdminKeys(9)).toEqual([]);
    });
  });

  describe(`throttles in ${name}`, () => {
    it("are updated atomically", async () => {
      const add = () =>
        under.throttles.update("account:a", (state) => ({
          count: (state?.count ?? 0) + 1,
          blockedUntilMs: 5,
          changedAtMs: NOW_MS,
        }));
      const counts = await Promise.all(Array.from({ length: 20 }, add));
      expect(counts.map(({ count }) => count).toSorted((one, other) => one - other)).toEqual(
        Array.from({ length: 20 }, (_, index) => index + 1),
      );
      expect(await under.throttles.find("account:a")).toEqual({ count: 20, blockedUntilMs: 5, changedAtMs: NOW_MS });
    });

    it("are removed by name and by age", async () => {
      const states = { new: NOW_MS, old: NOW_MS - 5, older: NOW_MS - 9 };
      for (const [subject, changedAtMs] of Object.entries(states)) {
        await under.throttles.update(subject, () => ({ count: 1, blockedUntilMs: 0, changedAtMs }));
      }
      await under.throttles.remove("older");
      await under.throttles.remove("none");
      expect(await under.throttles.find("older")).toBeUndefined();
      expect(await under.throttles.prune({ beforeMs: NOW_MS, most: 10 })).toBe(1);
      expect(await under.throttles.find("old")).toBeUndefined();
      expect(await under.throttles.find("new")).toBeDefined();
    });

    it("are removed with the subjects below them, and no others", async () => {
      const subjects = ["account:a", "account:a/x", "account:a/y", "account:ab", "account:b/x"];
      for (const subject of subjects)
        await under.throttles.update(subject, () => ({ count: 1, blockedUntilMs: 0, changedAtMs: NOW_MS }));
      await under.throttles.remove("account:a");
      const left = await Promise.all(subjects.map((subject) => under.throttles.find(subject)));
      expect(left.map((state) => state !== undefined)).toEqual([false, false, false, true, true]);
    });

    it("are bounded in number: the lowest counts are removed first, then the oldest", async () => {
      const states = {
        high: [9, NOW_MS],
        older: [1, NOW_MS + 1],
        newer: [1, NOW_MS + 2],
        middle: [3, NOW_MS],
      } as const;
      for (const [subject, [count, changedAtMs]] of Object.entries(states))
        await under.throttles.update(subject, () => ({ count, blockedUntilMs: 0, changedAtMs }));
      expect(await under.throttles.prune({ beforeMs: NOW_MS, most: 2 })).toBe(2);
      const left = await Promise.all(Object.keys(states).map((subject) => under.throttles.find(subject)));
      expect(left.map((state) => state !== undefined)).toEqual([true, false, false, true]);
      expect(await under.throttles.prune({ beforeMs: NOW_MS, most: 2 })).toBe(0);
    });
  });
}
