import { describe, expect, it } from "vitest";
import { hashApiKey } from "../../../src/access/api-key.ts";
import { DEFAULT_ACCOUNT_ID, type KeyRecord, type KeyStore, mayContinue } from "../../../src/access/key-store.ts";
import { createFirstKey, createKey, revokeKey, rotateKey, updateKey } from "../../../src/access/keys.ts";
import { systemClock } from "../../../src/core/clock.ts";
import { NO_LIMITS } from "../../../src/core/principal.ts";

/** Registers the suite that every KeyStore has to pass. */
export function describeKeyStore(open: () => Promise<{ readonly keys: KeyStore }>): void {
  const openContext = async () => ({ store: (await open()).keys, clock: systemClock });

  describe("keys", () => {
    it("are read as they were stored", async () => {
      const context = await openContext();
      const { store } = context;
      const plain = await createKey(context, { name: "é'; drop table api_keys; --" });
      const narrow = await createKey(context, {
        name: "b",
        models: ["m"],
        capabilities: ["chat"],
        lifetimeMs: 1000,
        limits: { ...NO_LIMITS, requestsPerMinute: 5, monthlyBudgetMicroUsd: 9_000_000_000_000 },
        attributionLimits: { endUserBudgetMicroUsd: 1, endUserBudgetPeriod: "month", requiresEndUser: true },
        requiredLabels: { region: ["eu", "ch"] },
        tags: ["batch", "premium"],
        storesContent: true,
      });
      expect([plain.record.storesContent, narrow.record.storesContent]).toEqual([false, true]);
      expect(await store.find(plain.record.id)).toEqual(plain.record);
      expect(await store.findByHash(hashApiKey(narrow.secret))).toEqual({
        record: narrow.record,
        accountLimits: NO_LIMITS,
        accountDisabled: false,
      });
      expect(await store.findByHash(hashApiKey("x"))).toBeUndefined();
      expect(await store.findWithHash(narrow.record.id)).toEqual({
        ...(await store.findByHash(hashApiKey(narrow.secret))),
        hash: hashApiKey(narrow.secret),
      });
      expect(await store.findWithHash("key_none")).toBeUndefined();
      const hashes = [plain.secret, "x", narrow.secret].map(hashApiKey);
      const many = [...hashes, ...Array.from({ length: 1_000 }, (_, index) => `${index}`), ...hashes];
      expect(await store.findByHashes(many)).toEqual(
        new Map(
          [plain, narrow].map(({ secret, record }) => [
            hashApiKey(secret),
            { record, accountLimits: NO_LIMITS, accountDisabled: false },
          ]),
        ),
      );
      const ids = (await store.list()).map(({ id }) => id);
      expect(ids.toSorted()).toEqual([plain.record.id, narrow.record.id].toSorted());
      expect(await store.list(["acct_none"])).toEqual([]);
      expect(await store.names([narrow.record.id, "key_none"])).toEqual(
        new Map([[narrow.record.id, { name: "b", accountId: narrow.record.accountId }]]),
      );
      expect(await store.names([])).toEqual(new Map());
    });

    it("store content or not, with their successors", async () => {
      const context = await openContext();
      const { record } = await createKey(context, { name: "a" });
      const stores = async (id: string) => (await context.store.find(id))?.storesContent;
      await updateKey(context, record.id, { storesContent: true });
      const next = await rotateKey(context, record.id, { grace: "1h" });
      expect(await stores(next.record.id)).toBe(true);
      await updateKey(context, next.record.id, { storesContent: false });
      expect([await stores(record.id), await stores(next.record.id)]).toEqual([false, false]);
    });

    it("are listed in pages of bounded size, of one key at least", async () => {
      const { keys: store } = await open();
      let nowMs = 0;
      const context = { store, clock: { ...systemClock, now: () => ++nowMs } };
      for (const count of [1, 20_000, 20_000, 20_000, 60_000, 1]) {
        const models = Array.from({ length: count }, (_, index) => `models/${String(index).padStart(5, "0")}`);
        await createKey(context, { name: String(count), models });
      }
      const pages: string[][] = [];
      for (let after: KeyRecord | undefined; ;) {
        const page = await store.list([DEFAULT_ACCOUNT_ID], { limit: 5, after });
        pages.push(page.map(({ name }) => name));
        if (!mayContinue(page, 5)) break;
        after = page.at(-1);
      }
      expect(pages).toEqual([["1", "20000", "20000"], ["20000", "60000"], ["1"]]);
    });

    it("are listed in pages, and counted while valid", async () => {
      const context = await openContext();
      const { store, clock } = context;
      for (const name of ["a", "b", "c"]) await createKey(context, { name });
      const short = await createKey(context, { name: "short", lifetimeMs: 1000 });
      await revokeKey(context, (await createKey(context, { name: "revoked" })).record.id);
      const first = await store.list([DEFAULT_ACCOUNT_ID, "acct_none"], { limit: 3 });
      const second = await store.list([DEFAULT_ACCOUNT_ID, "acct_none"], { limit: 3, after: first.at(-1)! });
      expect([first.length, second.length]).toEqual([3, 2]);
      expect([...first, ...second]).toEqual(await store.list());
      const count = (nowMs: number) => store.countWorking([DEFAULT_ACCOUNT_ID, "acct_none"], nowMs);
      expect(await count(clock.now())).toEqual(new Map([[DEFAULT_ACCOUNT_ID, 4]]));
      expect(await count(short.record.expiresAtMs!)).toEqual(new Map([[DEFAULT_ACCOUNT_ID, 3]]));
      expect(await store.countWorking([], 0)).toEqual(new Map());
    });

    it("have exactly one first key, with any number of simultaneous starts", async () => {
      const context = await openContext();
      const made = await Promise.all(Array.from({ length: 10 }, () => createFirstKey(context)));
      expect(made.filter((key) => key !== undefined)).toHaveLength(1);
      expect(await context.store.list()).toHaveLength(1);
      expect(await createFirstKey(context)).toBeUndefined();
    });

    it("are replaced once, and never after a revocation", async () => {
      const context = await openContext();
      const { store } = context;
      const { record } = await createKey(context, { name: "a" });
      const next = await rotateKey(context, record.id, { grace: "1h" });
      expect(await store.find(record.id)).toMatchObject({ replacedBy: next.record.id });
      const again = () => ({ expiresAtMs: 1, successor: { record: { ...record, id: "key_2" }, hash: "h" } });
      expect(await store.replace(record.id, again)).toBe(false);
      expect(await store.find("key_2")).toBeUndefined();
      await revokeKey(context, next.record.id);
      expect(await store.revoke([next.record.id], 1)).toEqual([]);
      expect(await store.replace(next.record.id, again)).toBe(false);
      expect(await store.replace("key_none", again)).toBe(false);
    });

    it("are restricted with their predecessors and successors, also while they are rotated", async () => {
      const context = await openContext();
      const { store } = context;
      const models = ["m"];
      const restricted = { models, limitedByAdministrator: true };
      const rotate = (id: string) => rotateKey(context, id, { grace: "7d" });
      const restrict = (id: string) => updateKey(context, id, { models, by: "administrator" });
      const first = await createKey(context, { name: "a" });
      const second = await rotate(first.record.id);
      const third = await rotate(second.record.id);
      const other = await createKey(context, { name: "b" });
      await restrict(second.record.id);
      for (const { record } of [first, second, third]) expect(await store.find(record.id)).toMatchObject(restricted);
      expect(await store.find(other.record.id)).toEqual(other.record);
      await expect(updateKey(context, first.record.id, { models: "all" })).rejects.toThrow(
        "locked by an administrator",
      );

      const pairs = await Promise.all(Array.from({ length: 20 }, () => createKey(context, { name: "c" })));
      const successors = await Promise.all(
        pairs.map(async ({ record: { id } }, index) => {
          const both = index % 2 === 0 ? [restrict(id), rotate(id)] : [rotate(id), restrict(id)];
          await Promise.all(both);
          return (await store.find(id))!.replacedBy!;
        }),
      );
      for (const id of successors) expect(await store.find(id)).toMatchObject(restricted);
    });

    it("are revoked with the predecessors that still work, of which others may be over, and not with successors", async () => {
      const context = await openContext();
      const keys = [await createKey(context, { name: "a" })];
      for (const grace of ["7d", "0", "7d", "7d"] as const)
        keys.push(await rotateKey(context, keys.at(-1)!.record.id, { grace }));
      const [one, , three, four, five] = keys.map(({ record }) => record.id);
      const revoked = await revokeKey(context, four!);
      expect([revoked[0], new Set(revoked)]).toEqual([four, new Set([one, three, four])]);
      const states = keys.map(async ({ record: { id } }) => (await context.store.find(id))!.revokedAtMs !== undefined);
      expect(await Promise.all(states)).toEqual([true, false, true, true, false]);
      await expect(revokeKey(context, four!)).rejects.toThrow("has been revoked already");
      expect(await revokeKey(context, five!)).toEqual([five]);
    });

    it("are not changed once they have expired after their rotation", async () => {
      const context = await openContext();
      const first = await createKey(context, { name: "a" });
      const second = await rotateKey(context, first.record.id, { grace: "0" });
      await updateKey(context, second.record.id, { models: ["m"], by: "administrator" });
      const models = [first, second].map(async ({ record: { id } }) => (await context.store.find(id))!.models);
      expect(await Promise.all(models)).toEqual(["all", ["m"]]);
      await expect(updateKey(context, first.record.id, { models: "all", by: "administrator" })).rejects.toThrow(
        "has expired after its rotation; change its successor",
      );
    });

    it("are changed in the given fields only, and never after a revocation", async () => {
      const context = await openContext();
      const { store } = context;
      const { record } = await createKey(context, { name: "a", models: ["m"] });
      const limits = { ...NO_LIMITS, tokensPerMinute: 7, concurrentRequests: 2 };
      await updateKey(context, record.id, { name: "b", limits });
      expect(await store.find(record.id)).toEqual({ ...record, name: "b", limits });
      await updateKey(context, record.id, { models: "all", capabilities: ["chat"], limits: NO_LIMITS });
      expect(await store.find(record.id)).toEqual({ ...record, name: "b", models: "all", capabilities: ["chat"] });
      await updateKey(context, record.id, { attributionLimits: { sessionBudgetMicroUsd: 5, requiresEndUser: false } });
      expect((await store.find(record.id))?.attributionLimits).toEqual({ sessionBudgetMicroUsd: 5 });
      const at = { nowMs: context.clock.now() };
      expect(await store.update(record.id, {}, at)).toBe(true);
      expect(await store.update("key_none", { name: "b" }, at)).toBe(false);
      await revokeKey(context, record.id);
      expect(await store.update(record.id, { name: "c" }, at)).toBe(false);
    });
  });
}
