import { beforeEach, describe, expect, it, vi } from "vitest";
import { authenticateCaller, type Bindings, type ShownCredentials } from "../../src/access/bound-keys.ts";
import { createAuthenticator } from "../../src/access/key-cache.ts";
import { createKey, revokeKey, rotateKey } from "../../src/access/keys.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openMemoryStores } from "../support/memory-database.ts";

const NAME = "URI:spiffe://example.org/billing";
const DAY_MS = 24 * 60 * 60 * 1000;

async function setUp() {
  const clock = new FakeClock();
  const { keys: store } = openMemoryStores();
  const context = { store, clock };
  const { secret, record } = await createKey(context, { name: "billing" });
  const authenticator = createAuthenticator(context);
  let bindings: Bindings = { certificates: new Map([[NAME, record.id]]), fronts: new Set(), tokens: undefined };
  const ports = { keys: authenticator, clock, bindings: () => bindings };
  return {
    clock,
    store,
    context,
    secret,
    id: record.id,
    /** Announces changes. */
    announce: () => authenticator.invalidate(undefined),
    bind: (next: Bindings) => void (bindings = next),
    /** The ID of the key, or the text of the refusal. */
    call: (shown: Partial<ShownCredentials>) =>
      authenticateCaller(ports, { token: undefined, certificate: undefined, ...shown }).then(
        ({ keyId }) => keyId,
        (error: Error) => error.message,
      ),
    certificate: (names = [NAME], expiresAtMs = clock.now() + 365 * DAY_MS) => ({
      certificate: { names, expiresAtMs, isRevoked: () => false },
    }),
  };
}

describe("a certificate", () => {
  let world: Awaited<ReturnType<typeof setUp>>;
  beforeEach(async () => {
    world = await setUp();
  });

  it("stands for the key of one of its names", async () => {
    const { call, certificate, id } = world;
    expect(await call(certificate(["DNS:other.example", NAME]))).toBe(id);
  });

  it("is refused when none of its names is bound, with the names", async () => {
    const { call, certificate } = world;
    expect(await call(certificate(["DNS:other.example", "URI:spiffe://example.org/billing/more"]))).toMatch(
      /No alternative name .*DNS:other\.example, URI:spiffe:\/\/example\.org\/billing\/more/,
    );
    expect(await call(certificate([]))).toMatch(/it has none of the kinds DNS and URI/);
    const long = Array.from({ length: 100 }, () => `DNS:${"a".repeat(1000)}`);
    expect((await call(certificate(long))).length).toBeLessThan(600);
    expect(await call(certificate(["constructor", "__proto__"]))).toMatch(/No alternative name/);
  });

  it("is ignored when the caller sends a key, also a wrong one", async () => {
    const { call, certificate, context } = world;
    const other = await createKey(context, { name: "other" });
    expect(await call({ ...certificate(), token: other.secret })).toBe(other.record.id);
    for (const token of ["", "sk_parley_wrong"]) expect(await call({ ...certificate(), token })).toMatch(/API key/);
  });

  it("is refused after its end, on a connection that began before", async () => {
    const { call, certificate, clock, id } = world;
    const shown = certificate([NAME], clock.now() + 1000);
    expect(await call(shown)).toBe(id);
    clock.advance(1000);
    expect(await call(shown)).toMatch(/has expired/);
  });

  it("is refused when its key is revoked, and when it is bound to another one", async () => {
    const { call, certificate, context, id, bind, announce } = world;
    expect(await call(certificate())).toBe(id);
    await revokeKey(context, id);
    announce();
    expect(await call(certificate())).toBe(`The client certificate stands for the key ${id}, which is not in use.`);
    const next = await createKey(context, { name: "next" });
    bind({ certificates: new Map([[NAME, next.record.id]]), fronts: new Set(), tokens: undefined });
    expect(await call(certificate())).toBe(next.record.id);
    bind({ certificates: new Map([[NAME, "key_missing"]]), fronts: new Set(), tokens: undefined });
    expect(await call(certificate())).toMatch(/key_missing, which is not in use/);
    bind({ certificates: new Map(), fronts: new Set(), tokens: undefined });
    expect(await call(certificate())).toMatch(/No alternative name/);
  });

  it("stands for the successors of a rotated key", async () => {
    const { call, certificate, context, clock, id } = world;
    const second = await rotateKey(context, id, { grace: "24h" });
    expect(await call(certificate())).toBe(second.record.id);
    const third = await rotateKey(context, second.record.id, { grace: "24h" });
    const fourth = await rotateKey(context, third.record.id, { grace: "0" });
    clock.advance(DAY_MS);
    expect(await call(certificate())).toBe(fourth.record.id);
  });

  it("is refused when its key is revoked after a rotation, before and after that was looked up", async () => {
    const { call, certificate, context, id, announce, clock, secret } = world;
    const second = await rotateKey(context, id, { grace: "24h" });
    const third = await rotateKey(context, second.record.id, { grace: "24h" });
    expect(await call(certificate())).toBe(third.record.id);
    clock.advance(DAY_MS);
    expect(await call(certificate())).toBe(third.record.id);
    await revokeKey(context, id);
    // Without a notification: as fast as a key itself.
    clock.advance(4_500);
    expect(await call(certificate())).toMatch(/which is not in use/);
    announce();
    expect(await call(certificate())).toMatch(/which is not in use/);
    expect(await call({ token: secret })).toMatch(/not valid/);
    expect(await call({ token: third.secret })).toBe(third.record.id);
  });

  it("is refused at once when a change of its rotated key is announced", async () => {
    const { call, certificate, context, id, announce } = world;
    const second = await rotateKey(context, id, { grace: "24h" });
    expect(await call(certificate())).toBe(second.record.id);
    await revokeKey(context, id);
    announce();
    expect(await call(certificate())).toMatch(/which is not in use/);
  });

  it("is looked up once for all calls, and after a failure once a second", async () => {
    const { call, certificate, store, clock, id } = world;
    const find = vi.spyOn(store, "findWithHash").mockRejectedValueOnce(new Error("away"));
    const burst = (): Promise<string[]> => Promise.all(Array.from({ length: 100 }, () => call(certificate())));
    for (const answer of [...(await burst()), ...(await burst())]) expect(answer).toMatch(/cannot be checked/);
    expect(find).toHaveBeenCalledTimes(1);
    clock.advance(1_000);
    expect(new Set(await burst())).toEqual(new Set([id]));
    expect(find).toHaveBeenCalledTimes(2);
  });

  it("asks the store whether rotated keys are revoked in one query, and works while the store is unavailable", async () => {
    const { call, certificate, context, store, clock, id } = world;
    const second = await rotateKey(context, id, { grace: "24h" });
    const third = await rotateKey(context, second.record.id, { grace: "24h" });
    expect(await call(certificate())).toBe(third.record.id);
    const [find, together] = [vi.spyOn(store, "findWithHash"), vi.spyOn(store, "findByHashes")];
    clock.advance(4_500);
    await Promise.all(Array.from({ length: 100 }, () => call(certificate())));
    expect([find.mock.calls.length, together.mock.calls.length]).toEqual([0, 1]);
    for (const method of ["findByHash", "findByHashes"] as const)
      vi.spyOn(store, method).mockRejectedValue(new Error("away"));
    clock.advance(30_000);
    expect(await call(certificate())).toBe(third.record.id);
  });

  it("asks for its key once a second at most while that is missing", async () => {
    const { call, certificate, store, clock, bind } = world;
    bind({ certificates: new Map([[NAME, "key_missing"]]), fronts: new Set(), tokens: undefined });
    const find = vi.spyOn(store, "findWithHash");
    for (let calls = 0; calls < 10; calls += 1) await call(certificate());
    expect(find).toHaveBeenCalledTimes(1);
    clock.advance(1000);
    await call(certificate());
    expect(find).toHaveBeenCalledTimes(2);
  });

  it("works while the store is unavailable, for as long as known keys", async () => {
    const { call, certificate, store, clock, id } = world;
    expect(await call(certificate())).toBe(id);
    const away = async (): Promise<never> => {
      throw new Error("away");
    };
    for (const method of ["findWithHash", "findByHash", "findByHashes"] as const)
      vi.spyOn(store, method).mockImplementation(away);
    clock.advance(30_000);
    expect(await call(certificate())).toBe(id);
    clock.advance(40_000);
    expect(await call(certificate())).toMatch(/cannot be checked at the moment/);
  });
});
