import { beforeEach, describe, expect, it, vi } from "vitest";
import { generateApiKey, hashApiKey } from "../../src/access/api-key.ts";
import { createAuthenticator, type KeyLookup } from "../../src/access/key-cache.ts";
import type { FoundKey } from "../../src/access/key-store.ts";
import { createKey, revokeKey, rotateKey } from "../../src/access/keys.ts";
import { Failure } from "../../src/core/failure.ts";
import { NO_LIMITS } from "../../src/core/principal.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openMemoryStores } from "../support/memory-database.ts";

function setUp() {
  const clock = new FakeClock();
  const { keys: store } = openMemoryStores();
  const [findByHash, findByHashes] = [vi.spyOn(store, "findByHash"), vi.spyOn(store, "findByHashes")];
  return {
    clock,
    store,
    findByHash,
    findByHashes,
    /** Number of hashes that were looked up. */
    lookUps: () => [...findByHash.mock.calls, ...findByHashes.mock.calls.flat(2)].length,
    keys: { clock, store },
    authenticator: createAuthenticator({ clock, store }),
  };
}

const invalid: unknown = expect.objectContaining({ code: "unauthenticated" });
const unavailable: unknown = expect.objectContaining({ code: "overloaded", retryAfterMs: 1000 });

describe("authentication", () => {
  let world: ReturnType<typeof setUp>;
  beforeEach(() => {
    world = setUp();
  });

  it("finds the principal of a key", async () => {
    const { authenticator, keys } = world;
    const { secret, record } = await createKey(keys, { name: "a", models: ["m"], capabilities: ["images"] });
    expect(await authenticator.authenticate(secret)).toEqual({
      keyId: record.id,
      keyFamilyId: record.id,
      keyName: "a",
      accountId: "acct_default",
      models: new Set(["m"]),
      capabilities: new Set(["images"]),
      limits: NO_LIMITS,
      accountLimits: NO_LIMITS,
      expiresAtMs: undefined,
      hash: hashApiKey(secret),
      storesContent: false,
      confirmedAtMs: world.clock.monotonic(),
    });
  });

  it("refuses a missing or malformed key without asking the store", async () => {
    const { authenticator, findByHash } = world;
    await expect(authenticator.authenticate(undefined)).rejects.toThrow("An API key is required");
    await expect(authenticator.authenticate("")).rejects.toThrow("An API key is required");
    await expect(authenticator.authenticate("sk-other")).rejects.toThrow("not an API key of this service");
    expect(findByHash).not.toHaveBeenCalled();
  });

  it("refuses unknown, revoked and expired keys with the same text", async () => {
    const { authenticator, keys, clock } = world;
    const revoked = await createKey(keys, { name: "a" });
    await revokeKey(keys, revoked.record.id);
    const expired = await createKey(keys, { name: "b", lifetimeMs: 10 });
    clock.advance(10);
    const rejections = await Promise.all(
      [generateApiKey(), revoked.secret, expired.secret].map((key) => authenticator.authenticate(key).catch(String)),
    );
    expect(rejections[0]).toContain("This API key is not valid.");
    expect(new Set(rejections).size).toBe(1);
    await expect(authenticator.authenticate(revoked.secret)).rejects.toThrow(invalid);
  });

  it("does the same work to refuse a revoked or expired key as an unknown one", async () => {
    const { store, keys, clock } = world;
    const revoked = await createKey(keys, { name: "a" });
    await revokeKey(keys, revoked.record.id);
    const expired = await createKey(keys, { name: "b", lifetimeMs: 10 });
    clock.advance(10);
    let asked: string[] = [];
    const observed = new Proxy(store, {
      get(target, name, receiver) {
        asked.push(String(name));
        return Reflect.get(target, name, receiver) as unknown;
      },
    });
    const authenticator = createAuthenticator({ clock, store: observed });
    const workOf = async (key: string): Promise<string[]> => {
      asked = [];
      for (let time = 0; time < 2; time++) {
        await expect(authenticator.authenticate(key)).rejects.toThrow(invalid);
        asked.push("refused");
      }
      return asked;
    };
    const unknown = await workOf(generateApiKey());
    expect(unknown).toEqual(["findByHashes", "refused", "refused"]);
    expect(await workOf(revoked.secret)).toEqual(unknown);
    expect(await workOf(expired.secret)).toEqual(unknown);
  });

  it("asks the store once for simultaneous requests, and again after five seconds", async () => {
    const { authenticator, keys, clock, lookUps } = world;
    const { secret } = await createKey(keys, { name: "a" });
    await Promise.all(Array.from({ length: 100 }, () => authenticator.authenticate(secret)));
    clock.advance(4_499);
    await authenticator.authenticate(secret);
    expect(lookUps()).toBe(1);
    clock.advance(1);
    await authenticator.authenticate(secret);
    expect(lookUps()).toBe(2);
  });

  it("refreshes all keys in use with one query before they are five seconds old", async () => {
    const { authenticator, keys, clock, findByHash, findByHashes } = world;
    const made = await Promise.all(["a", "b", "c"].map((name) => createKey(keys, { name })));
    const [first, second, unused] = made.map(({ secret }) => secret);
    for (const key of [first, second, unused]) await authenticator.authenticate(key);
    findByHashes.mockClear();
    clock.advance(3_000);
    for (const key of [first, second, first]) await authenticator.authenticate(key);
    expect(findByHashes).not.toHaveBeenCalled();
    clock.advance(250);
    expect(findByHashes.mock.calls).toEqual([[[hashApiKey(first!), hashApiKey(second!)]]]);
    await new Promise(setImmediate);
    clock.advance(2_999);
    for (const key of [first, second]) await authenticator.authenticate(key);
    expect(findByHash).not.toHaveBeenCalled();
    await authenticator.authenticate(unused);
    expect(findByHash).toHaveBeenCalledTimes(1);
  });

  it("refuses a key that a refresh finds revoked", async () => {
    const { authenticator, keys, clock } = world;
    const { secret, record } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    await revokeKey(keys, record.id);
    clock.advance(3_000);
    await authenticator.authenticate(secret);
    clock.advance(250);
    await vi.waitFor(() => expect(authenticator.authenticate(secret)).rejects.toThrow(invalid), 10_000);
  });

  it.each(["this key", "any key"])("ignores a refresh that began before a notified change of %s", async (changed) => {
    const { authenticator, keys, clock, store } = world;
    const { secret, record } = await createKey(keys, { name: "a" });
    const hash = hashApiKey(secret);
    await authenticator.authenticate(secret);
    const before = await store.findByHashes([hash]);
    const answer = Promise.withResolvers<typeof before>();
    vi.spyOn(store, "findByHashes").mockReturnValueOnce(answer.promise);
    clock.advance(3_000);
    await authenticator.authenticate(secret);
    clock.advance(250);
    await revokeKey(keys, record.id);
    authenticator.invalidate(changed === "this key" ? hash : undefined);
    answer.resolve(before);
    await new Promise(setImmediate);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(invalid);
  });

  it("keeps cached keys when a refresh fails", async () => {
    const { authenticator, keys, clock, store } = world;
    const { secret, record } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    const findByHashes = vi.spyOn(store, "findByHashes").mockClear().mockRejectedValueOnce(new Error("disk"));
    for (let step = 0; step < 3; step++) {
      clock.advance(step === 0 ? 3_000 : 250);
      await authenticator.authenticate(secret);
      await new Promise(setImmediate);
    }
    expect(findByHashes).toHaveBeenCalledTimes(1);
    clock.advance(250);
    expect(findByHashes).toHaveBeenCalledTimes(2);
    expect(await authenticator.authenticate(secret)).toMatchObject({ keyId: record.id });
  });

  it("refuses a key that another process revoked after five seconds at most", async () => {
    const { authenticator, keys, clock } = world;
    const { secret, record } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    await revokeKey(keys, record.id);
    clock.advance(4_500);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(invalid);
  });

  it("refuses a cached key at once after this process has revoked it", async () => {
    const { authenticator, keys } = world;
    const { secret, record } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    await revokeKey(keys, record.id);
    authenticator.invalidate(hashApiKey(secret));
    await expect(authenticator.authenticate(secret)).rejects.toThrow(invalid);
  });

  it("refuses a key that this process has revoked at once, even with an older answer in flight", async () => {
    const { authenticator, keys, findByHash } = world;
    const { secret, record } = await createKey(keys, { name: "a" });
    const answer = Promise.withResolvers<FoundKey>();
    findByHash.mockReturnValueOnce(answer.promise);
    const waiting = authenticator.authenticate(secret);
    await revokeKey(keys, record.id);
    authenticator.invalidate(hashApiKey(secret));
    answer.resolve({ record, accountLimits: NO_LIMITS, accountDisabled: false });
    await waiting;
    await expect(authenticator.authenticate(secret)).rejects.toThrow(invalid);
  });

  it("refuses a cached key at its expiry, and a rotated one after its grace period", async () => {
    const { authenticator, keys, clock } = world;
    const { secret } = await createKey(keys, { name: "a", lifetimeMs: 1_000 });
    await authenticator.authenticate(secret);
    clock.advance(1_000);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(invalid);
    const old = await createKey(keys, { name: "b" });
    const next = await rotateKey(keys, old.record.id, { grace: "1h" });
    await expect(authenticator.authenticate(old.secret)).resolves.toMatchObject({ keyId: old.record.id });
    clock.advance(60 * 60 * 1000);
    await expect(authenticator.authenticate(old.secret)).rejects.toThrow(invalid);
    await expect(authenticator.authenticate(next.secret)).resolves.toMatchObject({ keyId: next.record.id });
  });

  it("accepts a new key at once", async () => {
    const { authenticator, keys } = world;
    await authenticator.authenticate(generateApiKey()).catch(String);
    const { secret } = await createKey(keys, { name: "a" });
    await expect(authenticator.authenticate(secret)).resolves.toMatchObject({ keyName: "a" });
  });

  it("caches unknown keys for a second, at most ten thousand of them", async () => {
    const { authenticator, clock, lookUps } = world;
    const guesses = Array.from({ length: 10_001 }, generateApiKey);
    for (const guess of guesses) await authenticator.authenticate(guess).catch(String);
    expect(lookUps()).toBe(10_001);
    await authenticator.authenticate(guesses.at(-1)).catch(String);
    expect(lookUps()).toBe(10_001);
    await authenticator.authenticate(guesses[0]).catch(String);
    expect(lookUps()).toBe(10_002);
    clock.advance(1_000);
    await authenticator.authenticate(guesses.at(-1)).catch(String);
    expect(lookUps()).toBe(10_003);
  });

  it("never confuses keys", async () => {
    const { authenticator, keys } = world;
    const made = await Promise.all(Array.from({ length: 500 }, (_, index) => createKey(keys, { name: `n${index}` })));
    const names = await Promise.all(made.map(async ({ secret }) => (await authenticator.authenticate(secret)).keyName));
    expect(names).toEqual(made.map(({ record }) => record.name));
  });
});

describe("keys that are not cached", () => {
  const guesses = (count: number): string[] => Array.from({ length: count }, generateApiKey);

  it("wait while the store is asked about others, and are then looked up in queries of 500", async () => {
    const { authenticator, store } = setUp();
    const answer = Promise.withResolvers<ReadonlyMap<string, FoundKey>>();
    const findByHashes = vi.spyOn(store, "findByHashes").mockReturnValueOnce(answer.promise);
    const asked = guesses(1_201).map((key) => authenticator.authenticate(key).catch(String));
    await new Promise(setImmediate);
    expect(findByHashes).toHaveBeenCalledTimes(1);
    answer.resolve(new Map());
    expect(new Set(await Promise.all(asked)).size).toBe(1);
    expect(findByHashes.mock.calls.map(([hashes]) => hashes.length)).toEqual([1, 500, 500, 200]);
  });

  it("do not delay a key that is", async () => {
    const { authenticator, keys, clock, store } = setUp();
    const { secret } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    vi.spyOn(store, "findByHashes").mockReturnValue(new Promise(() => undefined));
    for (const key of guesses(1_000)) authenticator.authenticate(key).catch(String);
    clock.advance(4_500);
    await expect(authenticator.authenticate(secret)).resolves.toMatchObject({ keyName: "a" });
    clock.advance(60_001);
    await expect(authenticator.authenticate(secret)).resolves.toMatchObject({ keyName: "a" });
  });

  it("are refused at once when 2,000 wait, and known keys are confirmed meanwhile", async () => {
    const { authenticator, keys, clock, store } = setUp();
    const [valid, revoked] = [await createKey(keys, { name: "a" }), await createKey(keys, { name: "b" })];
    for (const { secret } of [valid, revoked]) await authenticator.authenticate(secret);
    await revokeKey(keys, revoked.record.id);
    const answer = Promise.withResolvers<ReadonlyMap<string, FoundKey>>();
    const findByHashes = vi.spyOn(store, "findByHashes").mockReturnValueOnce(answer.promise);
    const waiting = guesses(2_001).map((key) => authenticator.authenticate(key).catch(String));
    const late = generateApiKey();
    await expect(authenticator.authenticate(late)).rejects.toThrow(unavailable);
    clock.advance(4_500);
    await expect(authenticator.authenticate(revoked.secret)).rejects.toThrow(invalid);
    await expect(authenticator.authenticate(valid.secret)).resolves.toMatchObject({ keyName: "a" });
    answer.resolve(new Map());
    await Promise.all(waiting);
    findByHashes.mockClear();
    await expect(authenticator.authenticate(late)).rejects.toThrow(invalid);
    expect(findByHashes).toHaveBeenCalledTimes(1);
  });

  it("are all refused as overloaded when a query fails, and asked about again later", async () => {
    const { authenticator, keys, store } = setUp();
    const { secret } = await createKey(keys, { name: "a" });
    const answer = Promise.withResolvers<ReadonlyMap<string, FoundKey>>();
    const findByHashes = vi.spyOn(store, "findByHashes").mockReturnValueOnce(answer.promise);
    const waiting = [...guesses(600), secret].map((key) => authenticator.authenticate(key).catch((reason) => reason));
    answer.reject(new Error("disk"));
    for (const reason of await Promise.all(waiting)) expect(reason).toEqual(unavailable);
    expect(findByHashes).toHaveBeenCalledTimes(1);
    await expect(authenticator.authenticate(secret)).resolves.toMatchObject({ keyName: "a" });
  });

  it("are looked up one by one where only that is possible, sixteen at a time", async () => {
    const { clock, keys, findByHash } = setUp();
    const authenticator = createAuthenticator({ clock, store: { findByHash } });
    const { secret } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    const answer = Promise.withResolvers<undefined>();
    findByHash.mockClear();
    for (let look = 0; look < 16; look++) findByHash.mockReturnValueOnce(answer.promise);
    const waiting = guesses(100).map((key) => authenticator.authenticate(key).catch(String));
    await new Promise(setImmediate);
    expect(findByHash).toHaveBeenCalledTimes(16);
    clock.advance(4_500);
    await expect(authenticator.authenticate(secret)).resolves.toMatchObject({ keyName: "a" });
    answer.resolve(undefined);
    expect(new Set(await Promise.all(waiting)).size).toBe(1);
    expect(findByHash).toHaveBeenCalledTimes(101);
  });
});

describe("at a core, which looks keys up one by one", () => {
  const overloaded = new Failure("overloaded", "The core has no answer.");
  const token = (name: string): string => `ey${name}.e30.`;
  /** An authenticator of a front. */
  function setUpFront() {
    const { clock, keys, findByHash } = setUp();
    const store = { findByHash: findByHash as KeyLookup["findByHash"] };
    const find = vi.spyOn(store, "findByHash");
    return {
      clock,
      keys,
      find,
      front: createAuthenticator({ clock, store, isOther: (text) => text.startsWith("ey") }),
    };
  }

  it("keys do not wait for tokens, whatever the outcome of these", async () => {
    const { front, keys, find, clock } = setUpFront();
    const known = await createKey(keys, { name: "known" });
    await front.authenticate(known.secret);
    const answer = Promise.withResolvers<undefined>();
    for (let look = 0; look < 16; look++) find.mockReturnValueOnce(answer.promise);
    const waiting = Array.from({ length: 20 }, (_, at) =>
      front.authenticate(token(`t${at}`)).catch((reason) => reason),
    );
    const made = await createKey(keys, { name: "a" });
    await expect(front.authenticate(made.secret)).resolves.toMatchObject({ keyName: "a" });
    answer.reject(new Error("late"));
    for (const reason of await Promise.all(waiting)) expect(reason).toEqual(unavailable);
    // The core does not count as unavailable.
    await revokeKey(keys, known.record.id);
    clock.advance(4_500);
    await expect(front.authenticate(known.secret)).rejects.toThrow(invalid);
  });

  it("a failure in the core's answer affects its own look-up only", async () => {
    const { front, keys, find, clock } = setUpFront();
    const [one, other] = [await createKey(keys, { name: "one" }), await createKey(keys, { name: "other" })];
    await front.authenticate(other.secret);
    const answer = Promise.withResolvers<Failure>();
    for (let look = 0; look < 16; look++) find.mockReturnValueOnce(answer.promise);
    const refused = Array.from({ length: 16 }, () => front.authenticate(generateApiKey()).catch((reason) => reason));
    const waiting = front.authenticate(one.secret);
    answer.resolve(overloaded);
    for (const reason of await Promise.all(refused)) expect(reason).toEqual(unavailable);
    await expect(waiting).resolves.toMatchObject({ keyName: "one" });
    await revokeKey(keys, other.record.id);
    clock.advance(4_500);
    await expect(front.authenticate(other.secret)).rejects.toThrow(invalid);
  });

  it("a known key keeps working when the core has no answer for it, and is asked about once a second", async () => {
    const { front, keys, find, clock } = setUpFront();
    const { secret } = await createKey(keys, { name: "a" });
    await front.authenticate(secret);
    find.mockClear();
    find.mockResolvedValue(overloaded);
    clock.advance(4_500);
    for (let call = 0; call < 3; call++)
      await expect(front.authenticate(secret)).resolves.toMatchObject({ keyName: "a" });
    expect(find).toHaveBeenCalledTimes(1);
    clock.advance(56_000);
    await expect(front.authenticate(secret)).rejects.toThrow(unavailable);
  });
});

describe("while the store is unavailable", () => {
  it("known keys work for sixty seconds, and the store is asked once a second", async () => {
    const { authenticator, keys, clock, findByHash } = setUp();
    const { secret } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    findByHash.mockClear().mockRejectedValue(new Error("disk"));
    clock.advance(4_500);
    for (let request = 0; request < 100; request++) await authenticator.authenticate(secret);
    expect(findByHash).toHaveBeenCalledTimes(1);
    clock.advance(55_500);
    await expect(authenticator.authenticate(secret)).resolves.toMatchObject({ keyName: "a" });
    clock.advance(1_001);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(unavailable);
  });

  it("known keys wait for it once, for half a second, and then not until it answers again", async () => {
    const { authenticator, keys, clock, findByHash } = setUp();
    const { secret } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    const answer = Promise.withResolvers<FoundKey | undefined>();
    findByHash.mockClear().mockReturnValue(answer.promise);
    clock.advance(4_500);
    let answered = false;
    const waiting = authenticator.authenticate(secret).finally(() => (answered = true));
    await clock.pass(499);
    expect(answered).toBe(false);
    await clock.pass(1);
    expect(await waiting).toMatchObject({ keyName: "a" });
    for (let second = 0; second < 5; second++) {
      await clock.pass(1_000);
      expect(await authenticator.authenticate(secret)).toMatchObject({ keyName: "a" });
    }
    expect(findByHash.mock.calls.length).toBeLessThanOrEqual(6);
    answer.resolve(undefined);
    await clock.pass(0);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(invalid);
  });

  it("known keys ask it again after a second, however often look-ups of unknown keys fail", async () => {
    const { authenticator, keys, store, clock, findByHash } = setUp();
    const { secret } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    clock.advance(4_500);
    findByHash.mockRejectedValue(new Error("disk"));
    vi.spyOn(store, "findByHashes").mockRejectedValue(new Error("disk"));
    await authenticator.authenticate(secret);
    for (let fifth = 0; fifth < 5; fifth++) {
      await expect(authenticator.authenticate(generateApiKey())).rejects.toThrow(unavailable);
      clock.advance(200);
    }
    findByHash.mockClear();
    await authenticator.authenticate(secret);
    expect(findByHash).toHaveBeenCalledTimes(1);
  });

  it("keys that are not cached are refused as overloaded, not as invalid", async () => {
    const { authenticator, keys, findByHashes } = setUp();
    const { secret } = await createKey(keys, { name: "a" });
    findByHashes.mockRejectedValueOnce(new Error("disk"));
    await expect(authenticator.authenticate(secret)).rejects.toThrow(unavailable);
    await expect(authenticator.authenticate(secret)).resolves.toMatchObject({ keyName: "a" });
  });

  it("a revoked key stays refused", async () => {
    const { authenticator, keys, clock, findByHash, findByHashes } = setUp();
    const { secret, record } = await createKey(keys, { name: "a" });
    await authenticator.authenticate(secret);
    await revokeKey(keys, record.id);
    clock.advance(4_500);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(invalid);
    for (const find of [findByHash, findByHashes]) find.mockRejectedValue(new Error("disk"));
    await expect(authenticator.authenticate(secret)).rejects.toThrow(invalid);
    clock.advance(1_000);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(unavailable);
  });
});
