import { describe, expect, it } from "vitest";
import type { AccountRecord, InvitationRecord } from "../../../src/access/account-store.ts";
import { hashApiKey } from "../../../src/access/api-key.ts";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import { createKey } from "../../../src/access/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import type { Store } from "../../../src/store/store.ts";

export function accountNamed(name: string, changes: Partial<AccountRecord> = {}): AccountRecord {
  return {
    id: `acct_${name}`,
    email: `${name}@example.org`,
    name,
    role: "member",
    passwordHash: "$argon2id$x",
    limits: NO_LIMITS,
    createdAtMs: 1,
    disabledAtMs: undefined,
    ...changes,
  };
}

/** What every AccountStore promises. */
export function describeAccountStore(open: () => Promise<Store>): void {
  describe("accounts", () => {
    it("come back as they were stored, and no two have one address", async () => {
      const { accounts } = await open();
      const ada = accountNamed("ada", { limits: { ...NO_LIMITS, requestsPerMinute: 3 }, createdAtMs: 1 });
      expect(await accounts.insert(ada)).toBe(true);
      expect(await accounts.insert(accountNamed("ada", { id: "acct_2" }))).toBe(false);
      expect(await accounts.insert(accountNamed("b", { email: undefined, passwordHash: undefined }))).toBe(true);
      expect(await accounts.insert(accountNamed("c", { email: undefined }))).toBe(true);
      expect(await accounts.find(ada.id)).toEqual(ada);
      expect(await accounts.findByEmail("ada@example.org")).toEqual(ada);
      expect(await accounts.findByEmail("nobody@example.org")).toBeUndefined();
      expect((await accounts.list()).map(({ id }) => id)).toEqual(["acct_ada", "acct_b", "acct_c", DEFAULT_ACCOUNT_ID]);
    });

    it("are changed in what is named and in nothing else", async () => {
      const { accounts } = await open();
      const ada = accountNamed("ada");
      await accounts.insert(ada);
      expect(await accounts.update(ada.id, { role: "administrator", disabledAtMs: 5 })).toBe(true);
      expect(await accounts.find(ada.id)).toEqual({ ...ada, role: "administrator", disabledAtMs: 5 });
      await accounts.update(ada.id, { disabledAtMs: undefined, passwordHash: "y" });
      expect(await accounts.find(ada.id)).toEqual({ ...ada, role: "administrator", passwordHash: "y" });
      expect(await accounts.update("acct_none", { name: "x" })).toBe(false);
    });

    it("limit and disable their keys, and say so", async () => {
      const { accounts, keys, keyChanges } = await open();
      const { secret } = await createKey({ store: keys, clock: systemClock }, { name: "a" });
      const heard: (string | undefined)[] = [];
      const end = keyChanges.subscribe((hash) => void heard.push(hash));
      const limits = { ...NO_LIMITS, concurrentRequests: 4 };
      await accounts.update(DEFAULT_ACCOUNT_ID, { limits, disabledAtMs: 1 });
      expect(await keys.findByHash(hashApiKey(secret))).toMatchObject({ accountLimits: limits, accountDisabled: true });
      expect(heard).toContain(undefined);
      end();
    });

    it("give the default account to the first of many who sign up at once", async () => {
      const { accounts } = await open();
      const owners = Array.from({ length: 8 }, (_, index) => ({ email: `${index}@x`, name: "n", passwordHash: "h" }));
      const won = await Promise.all(owners.map((owner) => accounts.claimDefault(owner)));
      expect(won.filter(Boolean)).toHaveLength(1);
      const winner = owners[won.indexOf(true)];
      expect(await accounts.find(DEFAULT_ACCOUNT_ID)).toMatchObject({ ...winner, role: "administrator" });
    });

    it("do not give the default account away when somebody can sign in, or has the address", async () => {
      const { accounts } = await open();
      await accounts.insert(accountNamed("ada", { passwordHash: undefined }));
      expect(await accounts.claimDefault({ email: "ada@example.org", name: "n", passwordHash: "h" })).toBe(false);
      await accounts.update("acct_ada", { passwordHash: "h" });
      expect(await accounts.claimDefault({ email: "b@x", name: "n", passwordHash: "h" })).toBe(false);
    });
  });

  describe("sessions", () => {
    const session = (hash: string, atMs = 10) => ({
      hash,
      accountId: DEFAULT_ACCOUNT_ID,
      createdAtMs: atMs,
      lastSeenAtMs: atMs,
      authenticatedAtMs: atMs,
    });

    it("are found with their account, touched and removed", async () => {
      const { accounts } = await open();
      await accounts.insertSession(session("s1"));
      await accounts.touchSession("s1", { lastSeenAtMs: 20 });
      await accounts.touchSession("s1", { authenticatedAtMs: 30 });
      const found = await accounts.findSession("s1");
      expect(found?.session).toEqual({ ...session("s1"), lastSeenAtMs: 20, authenticatedAtMs: 30 });
      expect(found?.account).toEqual(await accounts.find(DEFAULT_ACCOUNT_ID));
      await accounts.removeSession("s1");
      expect(await accounts.findSession("s1")).toBeUndefined();
    });

    it("of an account end together, except one; old ones are pruned", async () => {
      const { accounts } = await open();
      for (const hash of ["s1", "s2", "s3"]) await accounts.insertSession(session(hash));
      await accounts.removeSessions(DEFAULT_ACCOUNT_ID, "s2");
      expect(await accounts.findSession("s1")).toBeUndefined();
      expect(await accounts.findSession("s2")).toBeDefined();
      await accounts.insertSession(session("s4", 100));
      expect(await accounts.pruneSessions({ createdBeforeMs: 0, seenBeforeMs: 11 })).toBe(1);
      expect(await accounts.pruneSessions({ createdBeforeMs: 101, seenBeforeMs: 0 })).toBe(1);
      expect(await accounts.findSession("s4")).toBeUndefined();
    });
  });

  describe("invitations", () => {
    const invitation: InvitationRecord = {
      id: "inv_1",
      hash: "h1",
      email: undefined,
      role: "member",
      createdBy: DEFAULT_ACCOUNT_ID,
      createdAtMs: 1,
      expiresAtMs: 100,
      usedAtMs: undefined,
    };

    it("are accepted once, by the first of many", async () => {
      const { accounts } = await open();
      await accounts.insertInvitation(invitation);
      expect(await accounts.findInvitation("h1")).toEqual(invitation);
      const guests = Array.from({ length: 6 }, (_, index) => accountNamed(`g${index}`));
      const accepted = await Promise.all(guests.map((guest) => accounts.acceptInvitation("h1", guest, 50)));
      expect(accepted.filter(Boolean)).toHaveLength(1);
      expect(await accounts.list()).toHaveLength(2);
      expect(await accounts.findInvitation("h1")).toEqual({ ...invitation, usedAtMs: 50 });
    });

    it("stay unused when the address is taken, and end in time", async () => {
      const { accounts } = await open();
      await accounts.insertInvitation(invitation);
      await accounts.insert(accountNamed("ada"));
      expect(await accounts.acceptInvitation("h1", accountNamed("ada", { id: "acct_2" }), 50)).toBe(false);
      expect(await accounts.findInvitation("h1")).toEqual(invitation);
      expect(await accounts.acceptInvitation("h1", accountNamed("bob"), 100)).toBe(false);
      expect(await accounts.find("acct_bob")).toBeUndefined();
      expect(await accounts.listInvitations()).toEqual([invitation]);
      expect(await accounts.removeInvitation("inv_1")).toBe(true);
      expect(await accounts.removeInvitation("inv_1")).toBe(false);
    });
  });

  describe("security events", () => {
    it("come newest first, of all or of one account", async () => {
      const { accounts } = await open();
      const event = { type: "sign_in", actorId: undefined, network: "192.0.2.0/24", details: { key: "k" } };
      for (const atMs of [1, 3, 2]) await accounts.record({ ...event, atMs, accountId: atMs === 2 ? "a" : undefined });
      expect((await accounts.events({ limit: 2 })).map(({ atMs }) => atMs)).toEqual([3, 2]);
      expect(await accounts.events({ limit: 9, accountId: "a" })).toEqual([{ ...event, atMs: 2, accountId: "a" }]);
      expect(await accounts.pruneEvents(3)).toBe(2);
      expect(await accounts.events({ limit: 9 })).toHaveLength(1);
    });
  });

  describe("throttles", () => {
    it("count every failure, however many come at once", async () => {
      const { throttles } = await open();
      const change = (state: { count: number } | undefined) => ({
        count: (state?.count ?? 0) + 1,
        blockedUntilMs: 9,
        changedAtMs: 5,
      });
      await Promise.all(Array.from({ length: 20 }, () => throttles.update("account:x", change)));
      expect(await throttles.find("account:x")).toEqual({ count: 20, blockedUntilMs: 9, changedAtMs: 5 });
      await throttles.update("account:y", change);
      await throttles.remove("account:y");
      expect(await throttles.find("account:y")).toBeUndefined();
      expect(await throttles.prune(5)).toBe(0);
      expect(await throttles.prune(6)).toBe(1);
    });
  });
}
