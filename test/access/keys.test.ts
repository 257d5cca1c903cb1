import * as fc from "fast-check";
import { describe, expect, it, vi } from "vitest";
import { displayApiKey, generateApiKey, hashApiKey, isApiKey } from "../../src/access/api-key.ts";
import {
  createKey,
  type Grace,
  GRACES,
  keyState,
  MAX_ROTATIONS,
  revokeKey,
  rotateKey,
  updateKey,
} from "../../src/access/keys.ts";
import { CAPABILITIES, type KeyPrincipal, permit } from "../../src/access/principal.ts";
import { mayUse, NO_LIMITS } from "../../src/core/principal.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openMemoryStores } from "../support/memory-database.ts";

const DAY_MS = 24 * 60 * 60 * 1000;

describe("an API key", () => {
  const keys = Array.from({ length: 10_000 }, generateApiKey);

  it("is never the same twice and always well-formed", () => {
    expect(new Set(keys).size).toBe(keys.length);
    for (const key of keys) expect(key).toMatch(/\bsk_[a-z]{2,8}_[0-9A-Za-z]{46}\b/);
    expect(keys.every(isApiKey)).toBe(true);
  });

  it("has every character equally often", () => {
    const counts = new Map<string, number>();
    for (const key of keys) for (const letter of key.slice(10, 50)) counts.set(letter, (counts.get(letter) ?? 0) + 1);
    const expected = (keys.length * 40) / 62;
    const chiSquare = [...counts.values()].reduce((sum, count) => sum + (count - expected) ** 2 / expected, 0);
    // 61 degrees of freedom: a fair source exceeds this once in ten million runs.
    expect(chiSquare).toBeLessThan(140);
    expect(counts.size).toBe(62);
  });

  it("is refused after any change of a single character", () => {
    const position = fc.nat(55);
    const character = fc.integer({ min: 0x20, max: 0x7e }).map((code) => String.fromCharCode(code));
    fc.assert(
      fc.property(fc.constantFrom(...keys.slice(0, 100)), position, character, (key, index, letter) => {
        fc.pre(key[index] !== letter);
        expect(isApiKey(key.slice(0, index) + letter + key.slice(index + 1))).toBe(false);
      }),
      { numRuns: 2_000 },
    );
  });

  it.each(["", "sk_parley_", `sk_live_${"a".repeat(46)}`, `${keys[0]} `, `${keys[0]}\n`, keys[0]!.slice(0, -1)])(
    "is not %j",
    (text) => expect(isApiKey(text)).toBe(false),
  );

  it("is stored as its whole SHA-256 and displayed by its ends", () => {
    const key = "sk_parley_abcdefghijklmnopqrstuvwxyz0123456789ABCD123456";
    expect(hashApiKey(key)).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(keys.map(hashApiKey)).size).toBe(keys.length);
    expect(displayApiKey(key)).toBe("sk_parley_ab…3456");
  });
});

describe("keys", () => {
  function setUp() {
    const clock = new FakeClock();
    const { keys: store, rows } = openMemoryStores();
    return { clock, store, rows, keys: { clock, store } };
  }

  it("are stored without their secret", async () => {
    const { keys, store, rows } = setUp();
    const { secret, record } = await createKey(keys, { name: "ci", models: ["a", "a"], capabilities: ["chat"] });
    expect(record).toMatchObject({ name: "ci", models: ["a"], capabilities: ["chat"], expiresAtMs: undefined });
    expect((await store.findByHash(hashApiKey(secret)))?.record).toEqual(record);
    expect(JSON.stringify(rows("api_keys"))).not.toContain(secret.slice(12, -4));
  });

  it.each([
    [{ name: "" }, "name"],
    [{ name: "a\nb" }, "name"],
    [{ name: "x".repeat(101) }, "name"],
    [{ name: "a", models: [] }, "models"],
    [{ name: "a", models: Array.from({ length: 1_001 }, (_, index) => `m${index}`) }, "models"],
    [{ name: "a", models: Array.from({ length: 65 }, (_, index) => `${index}`.padEnd(256, "m")) }, "models"],
    [{ name: "a", capabilities: [] }, "capabilities"],
    [{ name: "a", requiredLabels: { region: ["EU"] } }, "required_labels.regions"],
    [{ name: "a", tags: [""] }, "tags"],
    [{ name: "a", tags: Array.from({ length: 17 }, (_, index) => `t${index}`) }, "tags"],
  ])("cannot be made from %o", async (request, param) => {
    await expect(createKey(setUp().keys, request)).rejects.toMatchObject({ code: "invalid_request", param });
  });

  it.each(Object.keys(GRACES) as Grace[])("rotated with a grace period of %s work exactly that long", async (grace) => {
    const { keys, store, clock } = setUp();
    const labels = { requiredLabels: { region: ["eu"] }, tags: ["batch"] };
    const old = await createKey(keys, { name: "ci", models: ["m"], lifetimeMs: 30 * DAY_MS, ...labels });
    clock.advance(DAY_MS);
    const next = await rotateKey(keys, old.record.id, { grace });
    expect(next.record).toMatchObject({ name: "ci", models: ["m"], expiresAtMs: clock.now() + 30 * DAY_MS, ...labels });
    const rotated = (await store.find(old.record.id))!;
    expect(rotated.replacedBy).toBe(next.record.id);
    expect(keyState(rotated, clock.now() + GRACES[grace] - 1)).toBe("active");
    expect(keyState(rotated, clock.now() + GRACES[grace])).toBe("expired");
  });

  it("are rotated at most 1,000 times in 30 days, with those that they replaced", async () => {
    const { clock, store, keys } = setUp();
    const first = await createKey(keys, { name: "a" });
    const second = await rotateKey(keys, first.record.id, { grace: "0" });
    for (let index = 2; index < MAX_ROTATIONS.count; index += 1)
      await store.insert({ record: { ...second.record, id: `key_${index}`, expiresAtMs: 1 }, hash: `hash ${index}` });
    const third = await rotateKey(keys, second.record.id, { grace: "0" });
    await expect(rotateKey(keys, third.record.id, { grace: "0" })).rejects.toMatchObject({
      code: "rate_limited",
      message: expect.stringContaining("rotated 1,000 times in 30 days") as string,
    });
    expect(keyState((await store.find(third.record.id))!, clock.now())).toBe("active");
    const other = await createKey(keys, { name: "b" });
    await rotateKey(keys, other.record.id, { grace: "0" });
    clock.advance(MAX_ROTATIONS.days * DAY_MS);
    await rotateKey(keys, third.record.id, { grace: "0" });
  });

  it("keep their family through rotations, so that limits and budgets continue", async () => {
    const { keys } = setUp();
    const first = await createKey(keys, { name: "a" });
    const second = await rotateKey(keys, first.record.id, { grace: "0" });
    const third = await rotateKey(keys, second.record.id, { grace: "24h" });
    const families = [first, second, third].map(({ record }) => record.keyFamilyId);
    expect(new Set(families)).toEqual(new Set([first.record.id]));
  });

  it("that expire soon keep their expiry in a rotation", async () => {
    const { keys, store, clock } = setUp();
    const { record } = await createKey(keys, { name: "ci", lifetimeMs: 1000 });
    await rotateKey(keys, record.id, { grace: "7d" });
    expect((await store.find(record.id))?.expiresAtMs).toBe(clock.now() + 1000);
  });

  it("that an administrator has limited keep their end when a member rotates them", async () => {
    const { keys, clock } = setUp();
    const { record } = await createKey(keys, { name: "ci", lifetimeMs: DAY_MS, by: "administrator" });
    expect(record.limitedByAdministrator).toBe(true);
    clock.advance(1_000);
    const second = await rotateKey(keys, record.id, { grace: "0", by: "developer" });
    expect(second.record).toMatchObject({ expiresAtMs: record.expiresAtMs, limitedByAdministrator: true });
    const third = await rotateKey(keys, second.record.id, { grace: "0", by: "administrator" });
    expect(third.record.expiresAtMs).toBe(clock.now() + DAY_MS - 1_000);
  });

  it("cannot be rotated twice, or after their expiry", async () => {
    const { keys, clock } = setUp();
    const rotated = await createKey(keys, { name: "a" });
    await rotateKey(keys, rotated.record.id, { grace: "24h" });
    await expect(rotateKey(keys, rotated.record.id, { grace: "24h" })).rejects.toThrow(/its successor is key_/);
    const expired = await createKey(keys, { name: "b", lifetimeMs: 1 });
    clock.advance(1);
    await expect(rotateKey(keys, expired.record.id, { grace: "0" })).rejects.toThrow("is expired");
    await expect(rotateKey(keys, "key_none", { grace: "0" })).rejects.toThrow("there is no key key_none");
  });

  it("are revoked once, permanently", async () => {
    const { keys, store, clock } = setUp();
    const { record } = await createKey(keys, { name: "a" });
    await revokeKey(keys, record.id);
    expect(keyState((await store.find(record.id))!, clock.now())).toBe("revoked");
    await expect(revokeKey(keys, record.id)).rejects.toThrow("has been revoked already");
    await expect(revokeKey(keys, "key_none")).rejects.toThrow("there is no key key_none");
  });

  it("are revoked with the keys that they have replaced and that still work", async () => {
    const { keys, store, clock } = setUp();
    const first = await createKey(keys, { name: "a" });
    const second = await rotateKey(keys, first.record.id, { grace: "0" });
    const third = await rotateKey(keys, second.record.id, { grace: "7d" });
    const fourth = await rotateKey(keys, third.record.id, { grace: "24h" });
    clock.advance(1);
    const revoked = await revokeKey(keys, third.record.id);
    expect(revoked).toEqual([third, second].map(({ record }) => record.id));
    const states = async () =>
      Promise.all(
        [first, second, third, fourth].map(async ({ record: { id } }) =>
          keyState((await store.find(id))!, clock.now()),
        ),
      );
    // The first had expired before; the successor stays active.
    expect(await states()).toEqual(["expired", "revoked", "revoked", "active"]);
  });

  it("can be revoked alone", async () => {
    const { keys, store, clock } = setUp();
    const first = await createKey(keys, { name: "a" });
    const second = await rotateKey(keys, first.record.id, { grace: "24h" });
    expect(await revokeKey(keys, second.record.id, "key only")).toEqual([second.record.id]);
    expect(keyState((await store.find(first.record.id))!, clock.now())).toBe("active");
  });

  it.each([
    { by: "models", choices: { models: ["m"] }, lifting: { models: "all" } },
    { by: "capabilities", choices: { capabilities: ["chat"] }, lifting: { capabilities: CAPABILITIES } },
    { by: "a label", choices: { requiredLabels: { region: ["eu"] } }, lifting: { requiredLabels: {} } },
    { by: "a budget", choices: { limits: { ...NO_LIMITS, monthlyBudgetMicroUsd: 1 } }, lifting: { limits: NO_LIMITS } },
  ] as const)("that an administrator has limited by $by are not changed by a member", async ({ choices, lifting }) => {
    const { keys, store } = setUp();
    const made = await createKey(keys, { name: "a", ...choices, by: "administrator" });
    const changed = await createKey(keys, { name: "b" });
    await updateKey(keys, changed.record.id, { ...choices, by: "administrator" });
    const rotated = await rotateKey(keys, made.record.id, { grace: "0" });
    for (const { record } of [rotated, changed]) {
      await expect(updateKey(keys, record.id, lifting)).rejects.toMatchObject({ code: "permission_denied" });
      await expect(updateKey(keys, record.id, choices)).rejects.toMatchObject({ code: "permission_denied" });
      await updateKey(keys, record.id, { name: "c" });
      expect(await store.find(record.id)).toMatchObject({ name: "c", ...choices, limitedByAdministrator: true });
      await updateKey(keys, record.id, { ...lifting, by: "administrator" });
      await updateKey(keys, record.id, choices);
      expect(await store.find(record.id)).toMatchObject({ ...choices, limitedByAdministrator: false });
    }
  });

  it("are not changed by a member whose request arrives while an administrator limits them", async () => {
    const { keys, store } = setUp();
    const { record } = await createKey(keys, { name: "a" });
    const find = store.find.bind(store);
    vi.spyOn(store, "find").mockImplementationOnce(async (id) => {
      const before = await find(id);
      await updateKey(keys, id, { models: ["m"], by: "administrator" });
      return before;
    });
    await expect(updateKey(keys, record.id, { models: "all" })).rejects.toMatchObject({ code: "permission_denied" });
    expect(await store.find(record.id)).toMatchObject({ models: ["m"] });
  });

  it("that an administrator has made without restrictions belong to their members", async () => {
    const { keys, store } = setUp();
    const { record } = await createKey(keys, { name: "a", by: "administrator" });
    await updateKey(keys, record.id, { models: ["m"] });
    await updateKey(keys, record.id, { models: "all" });
    expect(await store.find(record.id)).toMatchObject({ models: "all", limitedByAdministrator: false });
  });

  it("name up to 1,000 models and 16 KiB, each once; those that name more are renamed and rotated as before", async () => {
    const { keys, store } = setUp();
    const short = Array.from({ length: 1_000 }, (_, index) => `m${index}`);
    const long = Array.from({ length: 64 }, (_, index) => `${index}`.padEnd(256, "m"));
    const { record } = await createKey(keys, { name: "a", models: [...short, ...short] });
    await updateKey(keys, record.id, { models: long });
    expect(await store.find(record.id)).toMatchObject({ models: long });
    const models = [...long, "m"];
    await expect(updateKey(keys, record.id, { models })).rejects.toThrow("at most 1,000 models, together 16 KiB");
    await store.insert({
      record: { ...record, id: "key_old", display: "sk_parley_ab…wxyz", models },
      hash: "0".repeat(64),
    });
    await updateKey(keys, "key_old", { name: "b" });
    expect((await rotateKey(keys, "key_old", { grace: "0" })).record).toMatchObject({ name: "b", models });
  });

  it("can be renamed", async () => {
    const { keys, store } = setUp();
    const { record } = await createKey(keys, { name: "a" });
    await updateKey(keys, record.id, { name: "b" });
    expect((await store.find(record.id))?.name).toBe("b");
    await expect(updateKey(keys, "key_none", { name: "b" })).rejects.toMatchObject({ param: "id" });
  });
});

describe("permissions", () => {
  const principal: KeyPrincipal = {
    hash: "0".repeat(64),
    confirmedAtMs: 0,
    keyId: "key_1",
    keyFamilyId: "key_1",
    keyName: "a",
    accountId: "acct_1",
    models: new Set(["m1", "m2"]),
    capabilities: new Set(["chat"]),
    limits: NO_LIMITS,
    accountLimits: NO_LIMITS,
    expiresAtMs: undefined,
  };

  it("permit the key's models and capabilities", () => {
    expect(() => permit(principal, { models: ["m1", "m2"], capability: "chat" })).not.toThrow();
    expect(() => permit({ ...principal, models: undefined }, { models: ["any"], capability: "chat" })).not.toThrow();
    expect(mayUse(principal, "M1")).toBe(false);
  });

  it("permit only models with the labels that the key requires", () => {
    const european = { ...principal, requiredLabels: { region: ["eu", "ch"] } };
    const needs = (...regions: readonly string[]) =>
      ({ models: ["m1"], capability: "chat", labels: regions.map((region) => ({ region })) }) as const;
    expect(() => permit(european, needs("eu", "ch"))).not.toThrow();
    expect(() => permit(european, { models: ["m1"], capability: "chat" })).not.toThrow();
    expect(() => permit(principal, needs("us"))).not.toThrow();
    for (const wrong of [needs("eu", "us"), { ...needs(), labels: [{}] }])
      expect(() => permit(european, wrong)).toThrow("region eu or ch, as this API key requires");
  });

  it.each([
    [{ models: ["m1", "m3"], capability: "chat" } as const, 'may not use the model "m3"'],
    [{ models: ["m1"], capability: "images" } as const, 'lacks the capability "images"'],
  ])("name the missing permission for %o", (permission, text) => {
    expect(() => permit(principal, permission)).toThrow(expect.objectContaining({ code: "permission_denied" }));
    expect(() => permit(principal, permission)).toThrow(text);
  });
});
