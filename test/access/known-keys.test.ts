import { describe, expect, it, vi } from "vitest";
import { hashApiKey } from "../../src/access/api-key.ts";
import { createAuthenticator } from "../../src/access/key-cache.ts";
import type { KeyStore } from "../../src/access/key-store.ts";
import { createKey, revokeKey, rotateKey } from "../../src/access/keys.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openMemoryStores } from "../support/memory-database.ts";

const STALE_MS = 3_600_000;
const unavailable: unknown = expect.objectContaining({ code: "overloaded" });
const invalid: unknown = expect.objectContaining({ code: "unauthenticated" });

function setUp() {
  const clock = new FakeClock();
  const { keys: store, exec } = openMemoryStores();
  const away = new Error("connection refused");
  const state = { isAway: false };
  const unless = async <T>(answer: Promise<T>): Promise<T> => {
    if (state.isAway) throw away;
    return answer;
  };
  const findByHashes = vi.fn<KeyStore["findByHashes"]>((hashes) => unless(store.findByHashes(hashes)));
  const lookup = {
    findByHash: (hash: string) => unless(store.findByHash(hash)),
    findByHashes,
    findWithHash: (id: string) => unless(store.findWithHash(id)),
  };
  const start = () => createAuthenticator({ store: lookup, clock, staleLimitMs: STALE_MS });
  return { clock, state, findByHashes, start, keys: { clock, store }, exec };
}

describe("keys known to an earlier process", () => {
  it("work without the store until they are too old, by their secret and by their ID", async () => {
    const { clock, state, start, keys } = setUp();
    const { secret, record } = await createKey(keys, { name: "a" });
    const before = start();
    await before.authenticate(secret);
    const handed = await before.confirmedKeys(10);
    clock.advance(10_000);
    state.isAway = true;
    const after = start();
    await expect(after.authenticate(secret)).rejects.toThrow(unavailable);
    after.restore(handed);
    expect(await after.authenticate(secret)).toMatchObject({ keyId: record.id });
    expect(await after.authenticateId(record.id)).toMatchObject({ keyId: record.id });
    clock.advance(STALE_MS - 10_000);
    expect(await after.authenticate(secret)).toMatchObject({ keyId: record.id });
    clock.advance(1);
    await expect(after.authenticate(secret)).rejects.toThrow(unavailable);
    expect(await after.confirmedKeys(10)).toEqual([]);
  });

  it("are of all accounts where there are too many of one", async () => {
    const { clock, start, keys, exec } = setUp();
    for (const id of ["acct_few", "acct_many"])
      exec(`insert into accounts (id, name, created_at_ms) values ('${id}', 'a team', 1)`);
    const before = start();
    const use = async (accountId: string, name: string): Promise<string> => {
      const { secret, record } = await createKey(keys, { name, accountId });
      clock.advance(1);
      await before.authenticate(secret);
      return record.id;
    };
    const first = await use("acct_few", "few");
    const many: string[] = [];
    for (let index = 0; index < 5; index++) many.push(await use("acct_many", `many ${index}`));
    const handed = (await before.confirmedKeys(3)).map(({ grant }) => grant.record.id);
    expect(handed.toSorted()).toEqual([first, ...many.slice(-2)].toSorted());
  });

  it("are confirmed by the store with their first use", async () => {
    const { start, keys } = setUp();
    const { secret, record } = await createKey(keys, { name: "a" });
    const before = start();
    await before.authenticate(secret);
    const handed = await before.confirmedKeys(10);
    const after = start();
    after.restore(handed);
    await revokeKey(keys, record.id);
    await expect(after.authenticate(secret)).rejects.toThrow(invalid);
    await expect(after.authenticateId(record.id)).rejects.toThrow(invalid);
  });

  it("lead to their successors by ID when they were rotated in the meantime", async () => {
    const { clock, start, keys } = setUp();
    const { secret, record } = await createKey(keys, { name: "a" });
    const before = start();
    await before.authenticate(secret);
    const after = start();
    after.restore(await before.confirmedKeys(10));
    const next = await rotateKey(keys, record.id, { grace: "1h" });
    clock.advance(3_600_000);
    expect(await after.authenticateId(record.id)).toMatchObject({ keyId: next.record.id });
  });

  it("are not used when the clock was set back since then", async () => {
    const { clock, state, start, keys } = setUp();
    const { secret } = await createKey(keys, { name: "a" });
    const before = start();
    await before.authenticate(secret);
    const [handed] = await before.confirmedKeys(10);
    state.isAway = true;
    const after = start();
    after.restore([{ ...handed!, confirmedAtMs: clock.now() + 61_000 }]);
    await expect(after.authenticate(secret)).rejects.toThrow(unavailable);
  });

  it("are refused when another process says that they have changed since they were confirmed", async () => {
    const { clock, state, start, keys } = setUp();
    const { secret } = await createKey(keys, { name: "a" });
    const hash = hashApiKey(secret);
    const authenticator = start();
    await authenticator.authenticate(secret);
    state.isAway = true;
    authenticator.invalidateSince(hash, clock.now() - 61_000);
    expect(await authenticator.authenticate(secret)).toMatchObject({ hash });
    const changes = authenticator.changes();
    authenticator.invalidateSince(hash, clock.now() - 59_000);
    await expect(authenticator.authenticate(secret)).rejects.toThrow(unavailable);
    expect(authenticator.changes()).toBe(changes + 1);
  });
});

describe("keys for another process", () => {
  it("are confirmed together when that was a while ago, and those that the store refuses are left out", async () => {
    const { clock, findByHashes, start, keys } = setUp();
    const [kept, revoked] = [await createKey(keys, { name: "a" }), await createKey(keys, { name: "b" })];
    const authenticator = start();
    for (const { secret } of [kept, revoked]) await authenticator.authenticate(secret);
    findByHashes.mockClear();
    expect(await authenticator.confirmedKeys(10)).toHaveLength(2);
    expect(findByHashes).not.toHaveBeenCalled();
    await revokeKey(keys, revoked.record.id);
    clock.advance(50_000);
    const handed = await authenticator.confirmedKeys(10);
    expect(handed.map(({ hash, confirmedAtMs }) => [hash, confirmedAtMs])).toEqual([
      [hashApiKey(kept.secret), clock.now()],
    ]);
    expect(findByHashes).toHaveBeenCalledTimes(1);
  });

  it("are those that were confirmed last, and keep their times while the store is unavailable", async () => {
    const { clock, state, start, keys } = setUp();
    const authenticator = start();
    const secrets: string[] = [];
    for (const name of ["a", "b", "c"]) {
      const { secret } = await createKey(keys, { name });
      await authenticator.authenticate(secret);
      secrets.push(secret);
      clock.advance(10);
    }
    const confirmedAtMs = clock.now();
    state.isAway = true;
    clock.advance(100_000);
    const handed = await authenticator.confirmedKeys(2);
    expect(handed.map(({ hash, confirmedAtMs: atMs }) => [hash, atMs])).toEqual([
      [hashApiKey(secrets[2]!), confirmedAtMs - 10],
      [hashApiKey(secrets[1]!), confirmedAtMs - 20],
    ]);
  });
});
