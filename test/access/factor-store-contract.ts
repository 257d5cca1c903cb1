import { describe, expect, it } from "vitest";
import type { AccountStore, SessionRecord } from "../../src/access/account-store.ts";
import type { PasskeyRecord } from "../../src/access/factors/factor-store.ts";

const PASSKEY: PasskeyRecord = {
  id: "credential",
  accountId: "ada",
  name: "Laptop",
  publicKey: "key",
  counter: 0,
  transports: ["internal", "hybrid"],
  createdAtMs: 1_000,
  usedAtMs: undefined,
};
const TOTP = { sealed: "sealed", lastStep: 10, createdAtMs: 1_000 };

const session = (hash: string, accountId = "ada", secondFactor?: true): SessionRecord => ({
  hash,
  accountId,
  createdAtMs: 1,
  lastSeenAtMs: 1,
  authenticatedAtMs: 1,
  method: "password",
  secondFactor,
  network: undefined,
  browser: undefined,
});

/** Registers the suite of factors, part of that of AccountStore. `open` returns an empty store with the accounts `ada` and `bob`. */
export function describeFactorStore(open: () => Promise<AccountStore>): void {
  describe("passkeys of an account", () => {
    it("are listed oldest first, found by their ID, and removed by their owner", async () => {
      const store = await open();
      const second = { ...PASSKEY, id: "second", name: "Key ring", createdAtMs: 2_000, counter: 7 };
      expect(await store.insertPasskey(second, 20)).toBe("done");
      expect(await store.insertPasskey(PASSKEY, 20)).toBe("done");
      expect(await store.listPasskeys("ada")).toEqual([PASSKEY, second]);
      expect(await store.findPasskey("second")).toEqual(second);
      const remove = (accountId: string) => store.removePasskey(accountId, "second", { keepsLast: false });
      expect([await remove("bob"), await remove("ada"), await remove("ada")]).toEqual(["unknown", "done", "unknown"]);
      expect(await store.findPasskey("second")).toBeUndefined();
      expect([await store.removePasskeys("ada"), await store.removePasskeys("ada")]).toEqual([1, 0]);
    });

    it("have a unique ID, and are no more than the limit", async () => {
      const store = await open();
      const insertions = ["one", "two", "three"].map((id) => store.insertPasskey({ ...PASSKEY, id }, 2));
      expect((await Promise.all(insertions)).filter((added) => added === "done")).toHaveLength(2);
      const [{ id }] = (await store.listPasskeys("ada")) as [PasskeyRecord];
      expect(await store.insertPasskey({ ...PASSKEY, id, accountId: "bob" }, 2)).toBe("taken");
    });

    it("note a use, unless they were used since they were read", async () => {
      const store = await open();
      await store.insertPasskey(PASSKEY, 20);
      expect(await store.usePasskey(PASSKEY, { counter: 5, atMs: 3_000 })).toBe(true);
      expect(await store.findPasskey(PASSKEY.id)).toEqual({ ...PASSKEY, counter: 5, usedAtMs: 3_000 });
      expect(await store.usePasskey(PASSKEY, { counter: 6, atMs: 4_000 })).toBe(false);
    });
  });

  describe("a challenge", () => {
    it("is spent once", async () => {
      const store = await open();
      const spend = (): Promise<boolean> => store.spendChallenge({ hash: "challenge", expiresAtMs: 5_000 }, 1_000);
      expect((await Promise.all([spend(), spend(), spend()])).filter(Boolean)).toHaveLength(1);
      // Its row is removed when it has expired.
      expect(await store.spendChallenge({ hash: "challenge", expiresAtMs: 9_000 }, 5_000)).toBe(true);
    });
  });

  describe("an authenticator app", () => {
    it("is one for each account, with its recovery codes", async () => {
      const store = await open();
      expect(await store.insertTotp("ada", { ...TOTP, codeHashes: ["first", "second"] })).toBe("done");
      expect(await store.insertTotp("ada", { ...TOTP, sealed: "another", codeHashes: [] })).toBe("taken");
      expect([await store.findTotp("ada"), await store.findTotp("bob")]).toEqual([TOTP, undefined]);
      expect([await store.countRecoveryCodes("ada"), await store.countRecoveryCodes("bob")]).toEqual([2, 0]);
      const remove = () => store.removeTotp("ada", { keepsLast: false });
      expect([await remove(), await remove()]).toEqual(["done", "unknown"]);
      expect(await store.countRecoveryCodes("ada")).toBe(0);
    });

    it("takes each time step once, and none before it", async () => {
      const store = await open();
      await store.insertTotp("ada", { ...TOTP, codeHashes: [] });
      const uses = await Promise.all([store.useTotpStep("ada", 11), store.useTotpStep("ada", 11)]);
      expect(uses.toSorted()).toEqual([false, true]);
      expect([await store.useTotpStep("ada", 10), await store.useTotpStep("ada", 12)]).toEqual([false, true]);
      expect(await store.useTotpStep("bob", 12)).toBe(false);
    });

    it("is encrypted anew, unless it cannot be read", async () => {
      const store = await open();
      await store.insertTotp("ada", { ...TOTP, codeHashes: [] });
      await store.insertTotp("bob", { ...TOTP, codeHashes: [] });
      const seal = (sealed: string, id: string) => (id === "ada" ? `${sealed} of ${id}` : undefined);
      expect(await store.resealTotp(seal)).toEqual({ resealed: 1, unreadable: 1 });
      expect([await store.findTotp("ada"), await store.findTotp("bob")]).toEqual([
        { ...TOTP, sealed: "sealed of ada" },
        TOTP,
      ]);
    });
  });

  describe("recovery codes", () => {
    it("are used once each by their account, and replaced together", async () => {
      const store = await open();
      await store.insertTotp("ada", { ...TOTP, codeHashes: ["first", "second"] });
      await store.insertTotp("bob", { ...TOTP, codeHashes: ["first"] });
      const uses = await Promise.all([store.useRecoveryCode("ada", "first"), store.useRecoveryCode("ada", "first")]);
      expect(uses.toSorted()).toEqual([false, true]);
      expect(await store.countRecoveryCodes("bob")).toBe(1);
      await store.setRecoveryCodes("ada", ["third"]);
      expect([await store.useRecoveryCode("ada", "second"), await store.useRecoveryCode("ada", "third")]).toEqual([
        false,
        true,
      ]);
    });
  });

  describe("the factors of an account", () => {
    it("keep the last one, also when all are removed at once", async () => {
      const store = await open();
      await store.insertPasskey(PASSKEY, 20);
      await store.insertTotp("ada", { ...TOTP, codeHashes: [] });
      const removals = await Promise.all([
        store.removePasskey("ada", PASSKEY.id, { keepsLast: true }),
        store.removeTotp("ada", { keepsLast: true }),
      ]);
      expect(removals.toSorted()).toEqual(["done", "last"]);
      expect((await store.listPasskeys("ada")).length + Number((await store.findTotp("ada")) !== undefined)).toBe(1);
    });

    it("mark the session that adds one, and end others of the account: all for an app, those without a factor for a passkey", async () => {
      const store = await open();
      for (const each of [session("own"), session("password"), session("factor", "ada", true), session("b", "bob")])
        await store.insertSession(each);
      expect(await store.insertPasskey(PASSKEY, 20, { hash: "own", setsUpFirst: true })).toBe("done");
      const left = async () => (await store.listSessions("ada", 10)).map(({ hash }) => hash).toSorted();
      expect([await left(), (await store.findSession("own"))?.session.secondFactor]).toEqual([["factor", "own"], true]);
      expect(await store.insertTotp("ada", { ...TOTP, codeHashes: [] }, { hash: "own", setsUpFirst: false })).toBe(
        "done",
      );
      expect([await left(), (await store.listSessions("bob", 10)).length]).toEqual([["own"], 1]);
    });

    it("are not added in a session that has ended, or still needs the existing factor", async () => {
      const store = await open();
      await store.insertSession(session("one"));
      await store.insertSession(session("other"));
      const added = await Promise.all([
        store.insertPasskey(PASSKEY, 20, { hash: "one", setsUpFirst: true }),
        store.insertTotp("ada", { ...TOTP, codeHashes: ["code"] }, { hash: "other", setsUpFirst: true }),
      ]);
      expect(added.toSorted()).toEqual(["done", "session ended"]);
      const gone = { hash: "gone", setsUpFirst: false };
      expect([
        await store.insertPasskey({ ...PASSKEY, id: "next", accountId: "bob" }, 20, gone),
        await store.insertTotp("bob", { ...TOTP, codeHashes: [] }, gone),
      ]).toEqual(["session ended", "session ended"]);
      expect([await store.listPasskeys("bob"), await store.findTotp("bob")]).toEqual([[], undefined]);
    });

    it("are removed together, with the sessions", async () => {
      const store = await open();
      for (const each of [session("one"), session("b", "bob")]) await store.insertSession(each);
      await store.insertPasskey(PASSKEY, 20, { hash: "one", setsUpFirst: true });
      await store.insertTotp("ada", { ...TOTP, codeHashes: ["first"] });
      await store.insertTotp("bob", { ...TOTP, codeHashes: [] });
      expect(await store.removeFactors("ada")).toEqual({ passkeys: 1, totp: true });
      expect(await store.removeFactors("ada")).toEqual({ passkeys: 0, totp: false });
      expect([await store.countRecoveryCodes("ada"), await store.findTotp("bob")]).toEqual([0, TOTP]);
      expect([await store.findSession("one"), await store.removePasskeys("bob"), await store.findSession("b")]).toEqual(
        [undefined, 0, undefined],
      );
    });
  });

  describe("a link for a new password", () => {
    it("is the account's latest, and taken once until it expires", async () => {
      const store = await open();
      const link = { hash: "link", accountId: "ada", expiresAtMs: 5_000 };
      await store.insertResetLink({ ...link, hash: "earlier" }, 1_000);
      await store.insertResetLink({ ...link, hash: "of bob", accountId: "bob" }, 1_000);
      await store.insertResetLink(link, 1_000);
      expect(await store.findResetLink("earlier", 1_000)).toBeUndefined();
      expect([await store.findResetLink("link", 4_999), await store.findResetLink("link", 5_000)]).toEqual([
        link,
        undefined,
      ]);
      const takes = await Promise.all([store.takeResetLink("link"), store.takeResetLink("link")]);
      expect(takes.toSorted()).toEqual([false, true]);
      await store.removeResetLinks("bob");
      expect(await store.findResetLink("of bob", 1_000)).toBeUndefined();
    });
  });
}
