import { describe, expect, it } from "vitest";
import type { FactorStore, PasskeyRecord } from "../../src/access/factors/factor-store.ts";

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

/** Registers the suite of factors, part of that of AccountStore. `open` returns an empty store with the accounts `ada` and `bob`. */
export function describeFactorStore(open: () => Promise<FactorStore>): void {
  describe("passkeys of an account", () => {
    it("are listed oldest first, found by their ID, and removed by their owner", async () => {
      const store = await open();
      const second = { ...PASSKEY, id: "second", name: "Key ring", createdAtMs: 2_000, counter: 7 };
      expect(await store.insertPasskey(second, 20)).toBe(true);
      expect(await store.insertPasskey(PASSKEY, 20)).toBe(true);
      expect(await store.listPasskeys("ada")).toEqual([PASSKEY, second]);
      expect(await store.findPasskey("second")).toEqual(second);
      expect([await store.removePasskey("bob", "second"), await store.removePasskey("ada", "second")]).toEqual([
        false,
        true,
      ]);
      expect(await store.findPasskey("second")).toBeUndefined();
    });

    it("have an ID that nobody else has, and are no more than the limit", async () => {
      const store = await open();
      const insertions = ["one", "two", "three"].map((id) => store.insertPasskey({ ...PASSKEY, id }, 2));
      expect((await Promise.all(insertions)).filter(Boolean)).toHaveLength(2);
      const [{ id }] = (await store.listPasskeys("ada")) as [PasskeyRecord];
      expect(await store.insertPasskey({ ...PASSKEY, id, accountId: "bob" }, 2)).toBe(false);
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
      expect(await store.insertTotp("ada", TOTP, ["first", "second"])).toBe(true);
      expect(await store.insertTotp("ada", { ...TOTP, sealed: "another" }, [])).toBe(false);
      expect([await store.findTotp("ada"), await store.findTotp("bob")]).toEqual([TOTP, undefined]);
      expect([await store.countRecoveryCodes("ada"), await store.countRecoveryCodes("bob")]).toEqual([2, 0]);
      expect([await store.removeTotp("ada"), await store.removeTotp("ada")]).toEqual([true, false]);
      expect(await store.countRecoveryCodes("ada")).toBe(0);
    });

    it("takes each time step once, and none before it", async () => {
      const store = await open();
      await store.insertTotp("ada", TOTP, []);
      const uses = await Promise.all([store.useTotpStep("ada", 11), store.useTotpStep("ada", 11)]);
      expect(uses.toSorted()).toEqual([false, true]);
      expect([await store.useTotpStep("ada", 10), await store.useTotpStep("ada", 12)]).toEqual([false, true]);
      expect(await store.useTotpStep("bob", 12)).toBe(false);
    });

    it("is encrypted anew, unless it cannot be read", async () => {
      const store = await open();
      await store.insertTotp("ada", TOTP, []);
      await store.insertTotp("bob", TOTP, []);
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
      await store.insertTotp("ada", TOTP, ["first", "second"]);
      await store.insertTotp("bob", TOTP, ["first"]);
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
    it("are removed together", async () => {
      const store = await open();
      await store.insertPasskey(PASSKEY, 20);
      await store.insertTotp("ada", TOTP, ["first"]);
      await store.insertTotp("bob", TOTP, []);
      expect(await store.removeFactors("ada")).toEqual({ passkeys: 1, totp: true });
      expect(await store.removeFactors("ada")).toEqual({ passkeys: 0, totp: false });
      expect([await store.countRecoveryCodes("ada"), await store.findTotp("bob")]).toEqual([0, TOTP]);
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
