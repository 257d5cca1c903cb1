import * as fc from "fast-check";
import { describe, expect, it } from "vitest";
import { displayApiKey, generateApiKey, hashApiKey, isApiKey } from "../../src/access/api-key.ts";
import { createKey, GRACES, keyState, revokeKey, rotateKey, updateKey, type Grace } from "../../src/access/keys.ts";
import { permit } from "../../src/access/permissions.ts";
import { mayUse } from "../../src/core/principal.ts";
import type { KeyPrincipal } from "../../src/access/principal.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { fakeClock, memoryKeyStore } from "./fakes.ts";

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

  it("is kept as its whole SHA-256 and shown by its ends", () => {
    const key = "sk_parley_abcdefghijklmnopqrstuvwxyz0123456789ABCD123456";
    expect(hashApiKey(key)).toMatch(/^[0-9a-f]{64}$/);
    expect(new Set(keys.map(hashApiKey)).size).toBe(keys.length);
    expect(displayApiKey(key)).toBe("sk_parley_ab…3456");
  });
});

describe("keys", () => {
  function setUp() {
    const clock = fakeClock();
    const store = memoryKeyStore();
    return { clock, store, keys: { clock, store } };
  }

  it("are stored without their secret", async () => {
    const { keys, store } = setUp();
    const { secret, record } = await createKey(keys, { name: "ci", models: ["a", "a"], capabilities: ["chat"] });
    expect(record).toMatchObject({ name: "ci", models: ["a"], capabilities: ["chat"], expiresAtMs: undefined });
    expect((await store.findByHash(hashApiKey(secret)))?.record).toEqual(record);
    expect(JSON.stringify([...store.rows])).not.toContain(secret.slice(12, -4));
  });

  it.each([
    [{ name: "" }, "name"],
    [{ name: "a\nb" }, "name"],
    [{ name: "x".repeat(101) }, "name"],
    [{ name: "a", models: [] }, "models"],
    [{ name: "a", capabilities: [] }, "capabilities"],
  ])("cannot be made from %o", async (request, param) => {
    await expect(createKey(setUp().keys, request)).rejects.toMatchObject({ code: "invalid_request", param });
  });

  it.each(Object.keys(GRACES) as Grace[])("rotated with a grace of %s work exactly that long", async (grace) => {
    const { keys, store, clock } = setUp();
    const old = await createKey(keys, { name: "ci", models: ["m"], lifetimeMs: 30 * DAY_MS });
    clock.advance(DAY_MS);
    const next = await rotateKey(keys, old.record.id, grace);
    expect(next.record).toMatchObject({ name: "ci", models: ["m"], expiresAtMs: clock.now() + 30 * DAY_MS });
    const rotated = (await store.find(old.record.id))!;
    expect(rotated.replacedBy).toBe(next.record.id);
    expect(keyState(rotated, clock.now() + GRACES[grace] - 1)).toBe("active");
    expect(keyState(rotated, clock.now() + GRACES[grace])).toBe("expired");
  });

  it("keep their line through rotations, so that limits and budgets do not begin anew", async () => {
    const { keys } = setUp();
    const first = await createKey(keys, { name: "a" });
    const second = await rotateKey(keys, first.record.id, "0");
    const third = await rotateKey(keys, second.record.id, "24h");
    const lines = [first, second, third].map(({ record }) => record.lineId);
    expect(new Set(lines)).toEqual(new Set([first.record.id]));
  });

  it("that expire soon are not prolonged by a rotation", async () => {
    const { keys, store, clock } = setUp();
    const { record } = await createKey(keys, { name: "ci", lifetimeMs: 1000 });
    await rotateKey(keys, record.id, "7d");
    expect((await store.find(record.id))?.expiresAtMs).toBe(clock.now() + 1000);
  });

  it("cannot be rotated twice, nor once they have ended", async () => {
    const { keys, clock } = setUp();
    const rotated = await createKey(keys, { name: "a" });
    await rotateKey(keys, rotated.record.id, "24h");
    await expect(rotateKey(keys, rotated.record.id, "24h")).rejects.toThrow(/its successor is key_/);
    const expired = await createKey(keys, { name: "b", lifetimeMs: 1 });
    clock.advance(1);
    await expect(rotateKey(keys, expired.record.id, "0")).rejects.toThrow("is expired");
    await expect(rotateKey(keys, "key_none", "0")).rejects.toThrow("there is no key key_none");
  });

  it("are revoked once and for all", async () => {
    const { keys, store, clock } = setUp();
    const { record } = await createKey(keys, { name: "a" });
    await revokeKey(keys, record.id);
    expect(keyState((await store.find(record.id))!, clock.now())).toBe("revoked");
    await expect(revokeKey(keys, record.id)).rejects.toThrow("has been revoked already");
    await expect(revokeKey(keys, "key_none")).rejects.toThrow("there is no key key_none");
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
    keyId: "key_1",
    lineId: "key_1",
    keyName: "a",
    accountId: "acct_1",
    models: new Set(["m1", "m2"]),
    capabilities: new Set(["chat"]),
    limits: NO_LIMITS,
    accountLimits: NO_LIMITS,
    expiresAtMs: undefined,
  };

  it("let through what the key has", () => {
    expect(() => permit(principal, { models: ["m1", "m2"], capability: "chat" })).not.toThrow();
    expect(() => permit({ ...principal, models: undefined }, { models: ["any"], capability: "chat" })).not.toThrow();
    expect(mayUse(principal, "M1")).toBe(false);
  });

  it.each([
    [{ models: ["m1", "m3"], capability: "chat" } as const, 'may not use the model "m3"'],
    [{ models: ["m1"], capability: "images" } as const, 'lacks the capability "images"'],
  ])("name what is missing for %o", (permission, text) => {
    expect(() => permit(principal, permission)).toThrow(expect.objectContaining({ code: "permission_denied" }));
    expect(() => permit(principal, permission)).toThrow(text);
  });
});
