import { describe, expect, it } from "vitest";
import { hashApiKey } from "../../../src/access/api-key.ts";
import {
  DEFAULT_ACCOUNT_ID,
  type KeyOrder,
  type KeyRecord,
  type KeyStore,
  mayContinue,
  type SortedKeysQuery,
} from "../../../src/access/key-store.ts";
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
        const { record } = await createKey(context, { name: String(count) });
        // Keys of earlier versions may name as many.
        await store.update(record.id, { models }, { nowMs });
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

    describe("are sorted", () => {
      const MONTH = "2026-11";
      const NOW = Date.UTC(2026, 10, 20);

      /** Keys with many equal values, of which some have none. */
      async function fill(store: KeyStore): Promise<KeyRecord[]> {
        const first = await createKey({ store, clock: systemClock }, { name: "first" });
        const records = Array.from({ length: 23 }, (_, index): KeyRecord => {
          const id = `key_${String((index * 7) % 23).padStart(2, "0")}`;
          return {
            ...first.record,
            id,
            keyFamilyId: id,
            name: ["b", "A", "É", "a", "Z"][index % 5]!,
            createdAtMs: NOW - (index % 3) * 1_000,
            limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: index % 4 === 0 ? undefined : index % 4 },
            lastUsedAtMs: index % 3 === 0 ? undefined : NOW - (index % 2),
            expiresAtMs: index % 5 === 0 ? NOW - 1 : index % 5 === 1 ? undefined : NOW + 1,
          };
        });
        for (const record of records) await store.insert({ record, hash: `hash of ${record.id}` });
        await store.revoke([first.record.id], NOW);
        return records;
      }

      async function listed(
        store: KeyStore,
        query: Partial<SortedKeysQuery> & Pick<SortedKeysQuery, "order">,
      ): Promise<KeyRecord[]> {
        const keys: KeyRecord[] = [];
        let after: SortedKeysQuery["after"];
        do {
          const wanted = { isDescending: false, limit: 4, nowMs: NOW, month: MONTH, ...query, after };
          const page = await store.listSorted(wanted);
          expect(page.keys.length).toBeLessThanOrEqual(4);
          expect(page.omittedUntilMs).toBeUndefined();
          keys.push(...page.keys);
          after = page.next;
        } while (after !== undefined);
        return keys;
      }

      it.each([
        ["created", ({ createdAtMs }) => createdAtMs],
        ["name", ({ name }) => name.replace(/[A-Z]/, (letter) => letter.toLowerCase())],
        ["lastUse", ({ lastUsedAtMs }) => lastUsedAtMs],
        ["budget", ({ limits }) => limits.monthlyBudgetMicroUsd],
        ["expiry", ({ expiresAtMs }) => expiresAtMs],
        ["spent", () => 0],
      ] satisfies readonly (readonly [KeyOrder, (key: KeyRecord) => string | number | undefined])[])(
        "by %s, page by page, in both directions: none is missing or comes twice, keys without a value come last",
        async (order, valueOf) => {
          const { keys: store } = await open();
          const records = await fill(store);
          for (const isDescending of [false, true]) {
            const sign = isDescending ? -1 : 1;
            const compare = (one: string | number, other: string | number): number =>
              one < other ? -sign : one > other ? sign : 0;
            const sorted = records.toSorted((one, other) => {
              const [a, b] = [valueOf(one), valueOf(other)];
              return (
                Number(a === undefined) - Number(b === undefined) ||
                compare(a ?? 0, b ?? 0) ||
                compare(one.createdAtMs, other.createdAtMs) ||
                compare(one.id, other.id)
              );
            });
            const ids = (keys: readonly KeyRecord[]) => keys.map(({ id }) => id);
            const named = ids(records);
            const found = await listed(store, { order, isDescending });
            expect(ids(found).filter((id) => named.includes(id))).toEqual(ids(sorted));
            expect(found).toHaveLength(24);
          }
        },
      );

      it("with those that work, those that match words, and those that may use a model", async () => {
        const { keys: store } = await open();
        const context = { store, clock: systemClock };
        const nowMs = systemClock.now();
        const ids = async (query: Partial<SortedKeysQuery>) =>
          (await listed(store, { order: "name", nowMs, ...query })).map(({ name }) => name);
        const { record: ended } = await createKey(context, { name: "Ended", models: ["a"] });
        await revokeKey(context, ended.id);
        const long = Array.from({ length: 999 }, (_, index) => `a/${index}`);
        await createKey(context, { name: "CI of Ärzte", models: [...long, "b"] });
        await createKey(context, { name: "batch 100%", models: ["b'", "ab"] });
        await createKey(context, { name: "all" });
        expect(await ids({ isWorking: true })).toEqual(["all", "batch 100%", "CI of Ärzte"]);
        expect(await ids({ isWorking: false })).toEqual(["Ended"]);
        expect(await ids({ words: ["CI", "Ärz"] })).toEqual(["CI of Ärzte"]);
        expect(await ids({ words: ["0%"] })).toEqual(["batch 100%"]);
        expect(await ids({ words: [ended.display] })).toEqual(["Ended"]);
        expect(await ids({ modelId: "a" })).toEqual(["all", "Ended"]);
        expect(await ids({ modelId: "b" })).toEqual(["all", "CI of Ärzte"]);
        expect(await ids({ accountIds: ["acct_none"] })).toEqual([]);
        expect(await ids({ accountIds: ["acct_none", DEFAULT_ACCOUNT_ID], words: ["all"] })).toEqual(["all"]);
      });
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
