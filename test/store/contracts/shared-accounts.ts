import { describe, expect, it, onTestFinished } from "vitest";
import type { AccountRecord, InvitationRecord } from "../../../src/access/account-store.ts";
import { hashApiKey } from "../../../src/access/api-key.ts";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import { createKey, rotateKey } from "../../../src/access/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";
import type { Store } from "../../../src/store/store.ts";

export function accountNamed(name: string, changes: Partial<AccountRecord> = {}): AccountRecord {
  return {
    id: `acct_${name}`,
    kind: "person",
    email: `${name}@example.org`,
    name,
    role: "developer",
    passwordHash: "$argon2id$x",
    limits: NO_LIMITS,
    createdAtMs: 1,
    disabledAtMs: undefined,
    ...changes,
  };
}

/** Registers further suites for accounts in a database: effects on keys, and simultaneous calls. */
export function describeSharedAccounts(open: () => Promise<Store>): void {
  describe("accounts of many processes", () => {
    it("limit and disable their keys, and announce that", async () => {
      const { accounts, keys, keyChanges } = await open();
      const { secret } = await createKey({ store: keys, clock: systemClock }, { name: "a" });
      const heard: (string | undefined)[] = [];
      const end = keyChanges.subscribe((hash) => void heard.push(hash));
      // Name and role do not affect keys.
      await accounts.update(DEFAULT_ACCOUNT_ID, { name: "renamed", role: "administrator" });
      expect(heard).not.toContain(undefined);
      const limits = { ...NO_LIMITS, concurrentRequests: 4 };
      await accounts.update(DEFAULT_ACCOUNT_ID, { limits, disabledAtMs: 1 });
      expect(await keys.findByHash(hashApiKey(secret))).toMatchObject({ accountLimits: limits, accountDisabled: true });
      expect(heard).toContain(hashApiKey(secret));
      end();
    });

    it("have credentials and aliases, of which no simultaneous change is lost, and announce them to their keys only", async () => {
      const { accounts, keys, keyChanges, kind } = await open();
      const context = { store: keys, clock: systemClock };
      const { secret } = await createKey(context, { name: "a" });
      await accounts.insert(accountNamed("other"));
      const other = await createKey(context, { name: "b", accountId: "acct_other" });
      const routing = (): Promise<unknown> => keys.findByHash(hashApiKey(secret)).then((found) => found?.routing);
      expect(await routing()).toBeUndefined();
      expect(await accounts.routing(DEFAULT_ACCOUNT_ID)).toEqual({ credentials: [], aliases: [] });
      expect(await accounts.routing("acct_none")).toBeUndefined();
      const heard = new Set<string | undefined>();
      const end = keyChanges.subscribe((hash) => void heard.add(hash));
      const credentialOf = (index: number) =>
        ({ provider: `p${index}`, id: `id${index}`, sealed: "c", setAtMs: index, setBy: undefined }) as const;
      await Promise.all(
        Array.from({ length: 20 }, (_, index) =>
          accounts.changeRouting(DEFAULT_ACCOUNT_ID, (before) => ({
            credentials: [...before.credentials, credentialOf(index)],
            aliases: [...before.aliases, [`alias${index}`, "m"]],
          })),
        ),
      );
      const stored = (await accounts.routing(DEFAULT_ACCOUNT_ID))!;
      expect(stored.credentials.toSorted((one, another) => one.setAtMs - another.setAtMs)).toEqual(
        Array.from({ length: 20 }, (_, index) => JSON.parse(JSON.stringify(credentialOf(index))) as unknown),
      );
      expect(stored.aliases).toHaveLength(20);
      expect(await routing()).toEqual({
        credentials: new Map(stored.credentials.map(({ provider, id }) => [provider, { id, sealed: "c" }])),
        aliases: stored.aliases,
      });
      expect((await keys.findByHash(hashApiKey(other.secret)))?.routing).toBeUndefined();
      // PostgreSQL's listener announces all keys when it has connected.
      expect([...heard].filter((hash) => hash !== undefined || kind === "sqlite")).toEqual([hashApiKey(secret)]);
      const refuse = (): never => {
        throw new Error("not this");
      };
      await expect(accounts.changeRouting(DEFAULT_ACCOUNT_ID, refuse)).rejects.toThrow("not this");
      expect(await accounts.changeRouting("acct_none", (before) => before)).toBeUndefined();
      await accounts.changeRouting(DEFAULT_ACCOUNT_ID, () => ({ credentials: [], aliases: [] }));
      expect(await routing()).toBeUndefined();
      end();
    });

    it("transfer a key with its family, only from the account that has them, and announce it", async () => {
      const { accounts, keys, keyChanges } = await open();
      const context = { store: keys, clock: systemClock };
      await accounts.insert(accountNamed("team", { kind: "team", email: undefined }));
      const first = await createKey(context, { name: "a" });
      const second = await rotateKey(context, first.record.id, { grace: "7d" });
      const other = await createKey(context, { name: "b" });
      await keys.update(second.record.id, { limitedByAdministrator: true }, { nowMs: 0 });
      const heard: (string | undefined)[] = [];
      onTestFinished(keyChanges.subscribe((hash) => void heard.push(hash)));
      const to = "acct_team";
      expect(await keys.transfer(second.record.id, { from: to, to: DEFAULT_ACCOUNT_ID })).toBe(false);
      expect(await keys.transfer("key_none", { from: DEFAULT_ACCOUNT_ID, to })).toBe(false);
      const unlimited = { from: DEFAULT_ACCOUNT_ID, to, limitedByAdministrator: false } as const;
      expect(await keys.transfer(second.record.id, unlimited)).toBe(false);
      expect(await keys.transfer(second.record.id, { from: DEFAULT_ACCOUNT_ID, to })).toBe(true);
      expect((await keys.list([to])).map(({ id }) => id).toSorted()).toEqual(
        [first.record.id, second.record.id].toSorted(),
      );
      expect(await keys.list([DEFAULT_ACCOUNT_ID])).toEqual([other.record]);
      expect((await keys.findByHash(hashApiKey(second.secret)))?.record.accountId).toBe(to);
      for (const { secret } of [first, second]) expect(heard).toContain(hashApiKey(secret));
      expect(heard).not.toContain(hashApiKey(other.secret));
    });

    it.each(["transferred", "revoked"] as const)("end with keys that are %s", async (fate) => {
      const { accounts, keys, keyChanges } = await open();
      const context = { store: keys, clock: systemClock };
      await accounts.insert(accountNamed("team", { kind: "team", email: undefined }));
      await accounts.insert(accountNamed("bob"));
      await accounts.insertSession({
        hash: "h1",
        accountId: "acct_bob",
        createdAtMs: 1,
        lastSeenAtMs: 1,
        authenticatedAtMs: 1,
        method: "password",
        network: undefined,
        browser: undefined,
      });
      await accounts.insertInvitation({
        id: "inv_b",
        hash: "i",
        email: undefined,
        role: "developer",
        createdBy: "acct_bob",
        createdAtMs: 1,
        expiresAtMs: 9,
        usedAtMs: undefined,
      });
      const most = { members: 9, teams: 9 };
      await accounts.changeMember({ teamId: "acct_team", accountId: "acct_bob", role: "viewer", atMs: 1 }, { most });
      const made = await createKey(context, { name: "a", accountId: "acct_bob" });
      const ended = await createKey(context, { name: "ended", accountId: "acct_bob", lifetimeMs: -1_000 });
      const heard: (string | undefined)[] = [];
      onTestFinished(keyChanges.subscribe((hash) => void heard.push(hash)));
      const keysTo = fate === "transferred" ? "acct_team" : undefined;
      const offboarding = { keysTo, atMs: Date.now(), mostKeys: 1, expected: { role: "developer" } } as const;
      expect(await accounts.offboard("acct_bob", { ...offboarding, expected: { role: "owner" } })).toBe("denied");
      const beyond = { ...offboarding, keysTo: "acct_team", mostKeys: 0 };
      expect(await accounts.offboard("acct_bob", beyond)).toBe("too many keys");
      expect(await accounts.find("acct_bob")).toMatchObject({ disabledAtMs: undefined });
      expect(await accounts.memberships("acct_bob")).toHaveLength(1);
      expect(await accounts.offboard("acct_bob", offboarding)).toEqual({
        keyIds: [made.record.id],
        teams: [{ teamId: "acct_team", role: "viewer" }],
        invitationIds: ["inv_b"],
        adminKeyIds: [],
        sessions: 1,
      });
      expect(await accounts.find("acct_bob")).toMatchObject({ disabledAtMs: offboarding.atMs });
      expect(await accounts.findSession("h1")).toBeUndefined();
      expect(await accounts.findInvitation("i")).toBeUndefined();
      expect(await accounts.memberships("acct_bob")).toEqual([]);
      const found = await keys.findByHash(hashApiKey(made.secret));
      const isRevoked = fate === "revoked";
      expect(found?.record).toMatchObject({
        accountId: isRevoked ? "acct_bob" : "acct_team",
        revokedAtMs: isRevoked ? offboarding.atMs : undefined,
      });
      expect(found?.accountDisabled).toBe(isRevoked);
      expect((await keys.find(ended.record.id))?.accountId).toBe("acct_bob");
      expect(heard).toContain(hashApiKey(made.secret));
    });

    it("keep one owner when two offboard each other at the same moment", async () => {
      const { accounts } = await open();
      await accounts.insert(accountNamed("ann", { role: "owner" }));
      // Signs in at a provider.
      await accounts.insert(accountNamed("eve", { role: "owner", passwordHash: undefined }));
      const offboardBy = (id: string, actorId: string) =>
        accounts.offboard(id, {
          keysTo: undefined,
          atMs: 1,
          mostKeys: 9,
          expected: { role: "owner", actor: { id: actorId, roles: ["owner"] } },
        });
      const both = await Promise.all([offboardBy("acct_ann", "acct_eve"), offboardBy("acct_eve", "acct_ann")]);
      expect(both.filter((done) => typeof done === "object")).toHaveLength(1);
      const left = (await accounts.list()).filter(({ role, disabledAtMs }) => role === "owner" && !disabledAtMs);
      expect(left).toHaveLength(1);
      const { id } = left[0]!;
      expect(await offboardBy(id, id)).toBe("last owner");
      expect(await accounts.find(id)).toMatchObject({ disabledAtMs: undefined });
    });

    it("give the default account to one of many simultaneous sign-ups", async () => {
      const { accounts } = await open();
      const owners = Array.from({ length: 8 }, (_, index) => ({ email: `${index}@x`, name: "n", passwordHash: "h" }));
      const won = await Promise.all(owners.map((owner) => accounts.claimDefault(owner)));
      expect(won.filter(Boolean)).toHaveLength(1);
      const winner = owners[won.indexOf(true)];
      expect(await accounts.find(DEFAULT_ACCOUNT_ID)).toMatchObject({ ...winner, role: "owner" });
    });
  });

  it("sessions that many ask for at once are looked up together, and no more wait than a limit", async () => {
    const { accounts } = await open();
    const facts = {
      accountId: DEFAULT_ACCOUNT_ID,
      method: "password" as const,
      network: undefined,
      browser: undefined,
    };
    const session = { ...facts, hash: "h7", createdAtMs: 1, lastSeenAtMs: 1, authenticatedAtMs: 1 };
    await accounts.insertSession(session);
    const looks = Array.from({ length: 2_500 }, (_, index) => accounts.findSession(`h${index}`));
    const found = await Promise.allSettled(looks);
    expect(found.filter((each) => each.status === "fulfilled" && each.value !== undefined)).toMatchObject([
      { value: { session, account: { id: DEFAULT_ACCOUNT_ID } } },
    ]);
    expect(found.filter(({ status }) => status === "rejected")).toHaveLength(499);
  });

  it("browsers that many ask for at once are looked up together, and no more wait than a limit", async () => {
    const { accounts } = await open();
    const browser = { hash: "b7", accountId: DEFAULT_ACCOUNT_ID, signedInAtMs: 1 };
    await accounts.keepBrowser(browser, { formerHash: undefined, most: 1 });
    const looks = Array.from({ length: 2_500 }, (_, index) => accounts.accountsOfBrowser(`b${index}`));
    const found = await Promise.allSettled(looks);
    expect(found[7]).toEqual({ status: "fulfilled", value: [DEFAULT_ACCOUNT_ID] });
    expect(found.filter((each) => each.status === "fulfilled" && each.value.length > 0)).toHaveLength(1);
    expect(found.filter(({ status }) => status === "rejected")).toHaveLength(499);
  });

  describe("invitations for many at once", () => {
    const invitation: InvitationRecord = {
      id: "inv_1",
      hash: "h1",
      email: undefined,
      role: "developer",
      createdBy: DEFAULT_ACCOUNT_ID,
      createdAtMs: 1,
      expiresAtMs: 100,
      usedAtMs: undefined,
    };

    it("are accepted once by many simultaneous sign-ups", async () => {
      const { accounts } = await open();
      await accounts.insertInvitation(invitation);
      expect(await accounts.findInvitation("h1")).toEqual(invitation);
      const guests = Array.from({ length: 6 }, (_, index) => accountNamed(`g${index}`));
      const accepted = await Promise.all(guests.map((guest) => accounts.acceptInvitation("h1", guest, { atMs: 50 })));
      expect(accepted.filter(Boolean)).toHaveLength(1);
      expect(await accounts.list()).toHaveLength(2);
      expect(await accounts.findInvitation("h1")).toEqual({ ...invitation, usedAtMs: 50 });
    });
  });

  describe("throttles of many processes", () => {
    it("count every one of many simultaneous failures", async () => {
      const { throttles } = await open();
      const change = (state: { count: number } | undefined) => ({
        count: (state?.count ?? 0) + 1,
        blockedUntilMs: 9,
        changedAtMs: 5,
      });
      await Promise.all(Array.from({ length: 20 }, () => throttles.update("account:x", change)));
      expect(await throttles.find("account:x")).toEqual({ count: 20, blockedUntilMs: 9, changedAtMs: 5 });
    });
  });
}
