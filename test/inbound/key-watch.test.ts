import { beforeEach, describe, expect, it, onTestFinished, vi } from "vitest";
import { hashApiKey } from "../../src/access/api-key.ts";
import { authenticateCaller, type Bindings } from "../../src/access/bound-keys.ts";
import { IssuerKeys } from "../../src/access/issuer-keys.ts";
import { createAuthenticator } from "../../src/access/key-cache.ts";
import { type CreatedKey, createKey, revokeKey, rotateKey, updateKey } from "../../src/access/keys.ts";
import { TokenVerifier } from "../../src/access/tokens.ts";
import type { Attribution } from "../../src/core/attribution.ts";
import { Calls, type OpenCall } from "../../src/inbound/calls.ts";
import type { Stop } from "../../src/core/stops.ts";
import { startKeyWatch } from "../../src/inbound/current-key.ts";
import { FakeClock } from "../support/fake-clock.ts";
import { openMemoryStores } from "../support/memory-database.ts";
import { TestIssuer } from "../support/tokens.ts";

const NO_BINDINGS: Bindings = { certificates: new Map(), fronts: new Set(), tokens: undefined };

function setUp() {
  const clock = new FakeClock();
  const { keys: store } = openMemoryStores();
  const keys = { store, clock };
  const authenticator = createAuthenticator(keys);
  const calls = new Calls(clock);
  onTestFinished(startKeyWatch({ calls, keys: authenticator, clock }));
  return {
    clock,
    store,
    keys,
    authenticator,
    calls,
    findByHashes: vi.spyOn(store, "findByHashes"),
    /** A call of this key as an entrance opens it. */
    open: async ({ secret }: Pick<CreatedKey, "secret">, attribution?: Attribution): Promise<OpenCall> => {
      const principal = await authenticator.authenticate(secret);
      const call = calls.open(undefined);
      call.authenticated(principal);
      call.permitted({
        models: ["m", "n"],
        capability: "chat",
        labels: [{ region: "eu" }, { region: "us" }],
        attribution,
      });
      return call;
    },
  };
}

describe("a call in flight", () => {
  let world: ReturnType<typeof setUp>;
  beforeEach(() => {
    world = setUp();
  });

  it("ends at once when a notification reports its key as revoked", async () => {
    const { clock, keys, authenticator, open } = world;
    const key = await createKey(keys, { name: "a" });
    const call = await open(key);
    const other = await open(await createKey(keys, { name: "b" }));
    await revokeKey(keys, key.record.id);
    authenticator.invalidate(hashApiKey(key.secret));
    await clock.pass(250);
    expect(call.signal.reason).toMatchObject({ code: "unauthenticated" });
    expect(other.signal.aborted).toBe(false);
  });

  it.each([0, 1_000, 2_999, 4_499])(
    "ends within five seconds without a notification, when it began %s ms after its key was confirmed",
    async (ageMs) => {
      const { clock, keys, authenticator, open } = world;
      const key = await createKey(keys, { name: "a" });
      await authenticator.authenticate(key.secret);
      await revokeKey(keys, key.record.id);
      await clock.pass(ageMs);
      const call = await open(key);
      await clock.pass(4_750 - ageMs);
      expect(call.signal.reason).toMatchObject({ code: "unauthenticated" });
    },
  );

  it("ends once its caller's certificate no longer stands for its key", async () => {
    const { clock, keys, calls, authenticator } = world;
    const { record } = await createKey(keys, { name: "a" });
    const name = "URI:spiffe://example.org/billing";
    const bindings = (...bound: [string, string][]): Bindings => ({ ...NO_BINDINGS, certificates: new Map(bound) });
    let inForce = bindings([name, record.id]);
    const certificate = { names: [name], expiresAtMs: Infinity, isRevoked: () => false };
    const ports = { keys: authenticator, clock, bindings: () => inForce };
    const call = calls.open(undefined);
    call.authenticated(await authenticateCaller(ports, { token: undefined, certificate }));
    inForce = bindings([name, record.id], ["DNS:other.example", "key_other"]);
    await clock.pass(10_000);
    expect(call.signal.aborted).toBe(false);
    inForce = bindings();
    await clock.pass(250);
    expect(call.signal.reason).toMatchObject({
      code: "unauthenticated",
      message: expect.stringContaining("no longer stands") as string,
    });
  });

  it("ends once its caller's certificate is revoked", async () => {
    const { clock, keys, calls, authenticator } = world;
    const { record } = await createKey(keys, { name: "a" });
    const inForce = { ...NO_BINDINGS, certificates: new Map([["DNS:a.example", record.id]]) };
    let isRevoked = false;
    const certificate = { names: ["DNS:a.example"], expiresAtMs: Infinity, isRevoked: () => isRevoked };
    const ports = { keys: authenticator, clock, bindings: () => inForce };
    const call = calls.open(undefined);
    call.authenticated(await authenticateCaller(ports, { token: undefined, certificate }));
    await clock.pass(10_000);
    expect(call.signal.aborted).toBe(false);
    isRevoked = true;
    await clock.pass(250);
    expect(call.signal.reason).toMatchObject({ code: "unauthenticated" });
  });

  it("ends once its caller's token no longer stands for its key, and not at the token's end", async () => {
    const { clock, keys, calls, authenticator } = world;
    const { record } = await createKey(keys, { name: "a" });
    const issuer = new TestIssuer("https://issuer.example");
    const keySet = await issuer.keySet();
    const issuerKeys = new IssuerKeys({ read: async () => keySet, clock, failed: () => undefined });
    const verifierOf = (sub: string): TokenVerifier => {
      const bindings = [{ claims: { sub }, key: record.id }];
      const facts = { issuer: issuer.issuer, audience: "parley", algorithms: ["ES256"], clockSkewMs: 0 };
      return new TokenVerifier([{ ...facts, bindings, keys: issuerKeys }], clock);
    };
    let tokens: TokenVerifier | undefined = verifierOf("worker");
    const ports = { keys: authenticator, clock, bindings: (): Bindings => ({ ...NO_BINDINGS, tokens }) };
    const open = async (): Promise<OpenCall> => {
      const token = await issuer.sign({ sub: "worker", exp: Math.floor(clock.now() / 1000) + 60 });
      const call = calls.open(undefined);
      call.authenticated(await authenticateCaller(ports, { token, certificate: undefined }));
      return call;
    };
    const [call, other] = [await open(), await open()];
    await clock.pass(120_000);
    tokens = verifierOf("worker");
    await clock.pass(10_000);
    expect(call.signal.aborted).toBe(false);
    tokens = verifierOf("another");
    await clock.pass(250);
    expect(call.signal.reason).toMatchObject({ code: "unauthenticated" });
    expect(other.signal.aborted).toBe(true);
    tokens = verifierOf("worker");
    const later = await open();
    tokens = undefined;
    await clock.pass(250);
    expect(later.signal.aborted).toBe(true);
  });

  it("ends when its key made no other request for a long time before it was revoked", async () => {
    const { clock, keys, open } = world;
    const key = await createKey(keys, { name: "a" });
    const call = await open(key);
    await clock.pass(10 * 60_000);
    expect(call.signal.aborted).toBe(false);
    await revokeKey(keys, key.record.id);
    await clock.pass(3_500);
    expect(call.signal.reason).toMatchObject({ code: "unauthenticated" });
  });

  it.each([
    { changes: { models: ["m", "other"] }, message: 'may not use the model "n"' },
    { changes: { capabilities: ["images"] as const }, message: 'lacks the capability "chat"' },
    { changes: { requiredLabels: { region: ["eu"] } }, message: "region eu, as this API key requires" },
  ])("ends with permission_denied when its key becomes $changes", async ({ changes, message }) => {
    const { clock, keys, open } = world;
    const key = await createKey(keys, { name: "a" });
    const call = await open(key);
    await updateKey(keys, key.record.id, changes);
    await clock.pass(3_500);
    expect(call.signal.reason).toMatchObject({ code: "permission_denied" });
    expect(String(call.signal.reason)).toContain(message);
  });

  it("ends when its session or end user is stopped, and another goes on", async () => {
    const { clock, keys, store, open, findByHashes } = world;
    const key = await createKey(keys, { name: "a" });
    const attributions = [{ session: "s1" }, { endUser: "ann" }, { session: "ann", endUser: "s1" }, undefined];
    const calls = await Promise.all(attributions.map((attribution) => open(key, attribution)));
    const untilMs = clock.now() + 10_000;
    const stops: Stop[] = [
      { kind: "session", value: "s1", untilMs },
      { kind: "end_user", value: "ann", untilMs },
    ];
    const stopped = { ...(await store.findByHash(hashApiKey(key.secret)))!, stops };
    findByHashes.mockImplementation(async (hashes) => new Map(hashes.map((hash) => [hash, stopped])));
    await clock.pass(3_500);
    const ended = calls.map(({ signal }) => (signal.aborted ? String(signal.reason) : undefined));
    expect(ended).toEqual([
      expect.stringContaining(`This session is stopped until ${new Date(untilMs).toISOString()}`),
      expect.stringContaining("This end user is stopped until"),
      undefined,
      undefined,
    ]);
    expect(calls[0]!.signal.reason).toMatchObject({ code: "stopped" });
    await clock.pass(7_000);
    const later = await open(key, { session: "s1" });
    await clock.pass(1_000);
    expect(later.signal.aborted).toBe(false);
  });

  it("goes on when its key loses what it does not need, or is given another name and limits", async () => {
    const { clock, keys, open } = world;
    const key = await createKey(keys, { name: "a" });
    const call = await open(key);
    const limits = { ...key.record.limits, requestsPerMinute: 1 };
    await updateKey(keys, key.record.id, { name: "b", models: ["m", "n"], capabilities: ["chat"], limits });
    await clock.pass(10_000);
    expect(call.signal.aborted).toBe(false);
  });

  it("ends when its key expires, and when the grace of a rotation is over", async () => {
    const { clock, keys, open } = world;
    const short = await createKey(keys, { name: "a", lifetimeMs: 60_000 });
    const rotated = await createKey(keys, { name: "b" });
    const calls = [await open(short), await open(rotated)];
    const next = await open(await rotateKey(keys, rotated.record.id, { grace: "1h" }));
    await clock.pass(59_750);
    expect(calls.map(({ signal }) => signal.aborted)).toEqual([false, false]);
    await clock.pass(500);
    expect(calls[0]!.signal.reason).toMatchObject({ code: "unauthenticated" });
    await clock.pass(60 * 60_000);
    expect(calls[1]!.signal.reason).toMatchObject({ code: "unauthenticated" });
    expect(next.signal.aborted).toBe(false);
  });

  it("goes on for a minute while the store cannot be asked, and then ends with overloaded", async () => {
    const { clock, keys, open, findByHashes } = world;
    const call = await open(await createKey(keys, { name: "a" }));
    findByHashes.mockRejectedValue(new Error("away"));
    await clock.pass(60_000);
    expect(call.signal.aborted).toBe(false);
    await clock.pass(500);
    expect(call.signal.reason).toMatchObject({ code: "overloaded" });
  });

  it("goes on when the store can be asked again before the minute is over", async () => {
    const { clock, keys, open, findByHashes } = world;
    const call = await open(await createKey(keys, { name: "a" }));
    findByHashes.mockRejectedValue(new Error("away"));
    await clock.pass(50_000);
    findByHashes.mockRestore();
    await clock.pass(60_000);
    expect(call.signal.aborted).toBe(false);
  });

  it("that began while an older answer about its key was on its way goes on", async () => {
    const { clock, keys, open, findByHashes } = world;
    const key = await createKey(keys, { name: "a" });
    const before = await open(key);
    const answer = Promise.withResolvers<Awaited<ReturnType<typeof findByHashes>>>();
    findByHashes.mockClear();
    findByHashes.mockReturnValueOnce(answer.promise);
    await clock.pass(3_250);
    expect(findByHashes).toHaveBeenCalledTimes(1);
    const call = await open(key);
    // What was true when it was asked: the account was disabled.
    answer.resolve(new Map());
    await clock.pass(0);
    expect([before.signal.aborted, call.signal.aborted]).toEqual([true, false]);
    await clock.pass(10_000);
    expect(call.signal.aborted).toBe(false);
  });

  it("costs one question for all keys every three seconds, and none for keys without calls", async () => {
    const { clock, keys, open, findByHashes, authenticator } = world;
    const made = await Promise.all(["a", "b", "c"].map((name) => createKey(keys, { name })));
    const [first, second, idle] = made.map(({ secret }) => hashApiKey(secret));
    await authenticator.authenticate(made[2]!.secret);
    const open1 = await open(made[0]!);
    const others = [await open(made[1]!), await open(made[1]!)];
    findByHashes.mockClear();
    await clock.pass(30_000);
    expect(findByHashes.mock.calls.length).toBeGreaterThanOrEqual(9);
    expect(findByHashes.mock.calls.length).toBeLessThanOrEqual(10);
    for (const [hashes] of findByHashes.mock.calls) expect(hashes).toEqual([first, second]);
    expect(idle).toBeDefined();
    for (const call of [open1, ...others]) call.close();
    findByHashes.mockClear();
    await clock.pass(30_000);
    expect(findByHashes).not.toHaveBeenCalled();
  });
});
