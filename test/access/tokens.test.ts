import { generateKeyPairSync, type KeyObject } from "node:crypto";
import { exportJWK, SignJWT } from "jose";
import { beforeEach, describe, expect, it, vi } from "vitest";
import { IssuerKeys } from "../../src/access/issuer-keys.ts";
import { type TokenBinding, TokenVerifier } from "../../src/access/tokens.ts";
import { FakeClock } from "../support/fake-clock.ts";

const ISSUER = "https://issuer.example";
const AUDIENCE = "parley";
const MINUTE_MS = 60_000;

/** A key pair of an issuer. */
interface IssuerKey {
  readonly kid: string;
  readonly algorithm: string;
  readonly privateKey: KeyObject;
  readonly publicKey: KeyObject;
}

function makeKey(kid: string, algorithm: "ES256" | "RS256" | "EdDSA" = "ES256"): IssuerKey {
  if (algorithm === "RS256") return { kid, algorithm, ...generateKeyPairSync("rsa", { modulusLength: 2048 }) };
  if (algorithm === "EdDSA") return { kid, algorithm, ...generateKeyPairSync("ed25519") };
  return { kid, algorithm, ...generateKeyPairSync("ec", { namedCurve: "P-256" }) };
}

async function keySetOf(...keys: readonly IssuerKey[]): Promise<string> {
  const jwks = keys.map(async ({ kid, algorithm, publicKey }) => ({
    ...(await exportJWK(publicKey)),
    kid,
    alg: algorithm,
  }));
  return JSON.stringify({ keys: await Promise.all(jwks) });
}

const [first, second, rsa, edwards] = [makeKey("1"), makeKey("2"), makeKey("3", "RS256"), makeKey("4", "EdDSA")];

function setUp({ bindings = [{ claims: { sub: "worker" }, key: "key_a" }] as readonly TokenBinding[] } = {}) {
  const clock = new FakeClock();
  const read = vi.fn<() => Promise<string>>().mockImplementation(() => keySetOf(first, rsa));
  const failed = vi.fn<(problem: string) => void>();
  const keys = new IssuerKeys({ read, clock, failed });
  const issuer = { issuer: ISSUER, audience: AUDIENCE, algorithms: ["ES256", "RS256"], clockSkewMs: 30_000, bindings };
  const verifier = new TokenVerifier([{ ...issuer, keys }], clock);
  const seconds = (): number => Math.floor(clock.now() / 1000);
  const sign = (claims: Record<string, unknown> = {}, key = first): Promise<string> =>
    new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: "worker", exp: seconds() + 600, ...claims })
      .setProtectedHeader({ alg: key.algorithm, kid: key.kid })
      .sign(key.privateKey);
  return {
    clock,
    verifier,
    read,
    failed,
    seconds,
    sign,
    /** The key's ID, or the text of the refusal. */
    ask: (token: string) => verifier.keyOf(token).catch((error: Error) => error.message),
  };
}

describe("a token", () => {
  let world: ReturnType<typeof setUp>;
  beforeEach(() => {
    world = setUp();
  });

  it.each([
    ["ES256", first],
    ["RS256", rsa],
  ])("stands for the key of its claims, signed with %s", async (_, key) => {
    expect(await world.ask(await world.sign({}, key))).toBe("key_a");
    expect(await world.ask(await world.sign({ aud: ["other", AUDIENCE] }, key))).toBe("key_a");
  });

  it.each<[string, (seconds: number) => Record<string, unknown>, RegExp]>([
    ["has expired", (now) => ({ exp: now - 31 }), /^This token has expired\.$/],
    ["has no end", () => ({ exp: undefined }), /claim "exp"/],
    ["is not valid yet", (now) => ({ nbf: now + 31 }), /claim "nbf"/],
    ["is for another audience", () => ({ aud: "other" }), /claim "aud"/],
    ["has no audience", () => ({ aud: undefined }), /claim "aud"/],
    [
      "is of another issuer",
      () => ({ iss: "https://other.example" }),
      /issuer "https:\/\/other\.example" are not accepted/,
    ],
    ["has no issuer", () => ({ iss: undefined }), /issuer that is missing/],
    ["has claims of no binding", () => ({ sub: "unbound" }), /No binding .*\(sub "unbound"\)/],
    ["has no claims", () => ({ sub: undefined }), /No binding/],
  ])("is refused when it %s", async (_, claimsAt, message) => {
    const { ask, sign, seconds } = world;
    expect(await ask(await sign(claimsAt(seconds())))).toMatch(message);
  });

  it("may be off by the clock skew", async () => {
    const { ask, sign, seconds } = world;
    expect(await ask(await sign({ exp: seconds() - 29 }))).toBe("key_a");
    expect(await ask(await sign({ nbf: seconds() + 29 }))).toBe("key_a");
  });

  it("is refused with another algorithm, none, or a public key as the secret of one", async () => {
    const { ask, sign, read } = world;
    read.mockImplementation(() => keySetOf(first, edwards));
    expect(await ask(await sign({}, edwards))).toMatch(/algorithm that is not accepted/);
    const [, payload = ""] = (await sign()).split(".");
    const head = (header: object): string => Buffer.from(JSON.stringify(header)).toString("base64url");
    expect(await ask(`${head({ alg: "none" })}.${payload}.`)).toMatch(/algorithm that is not accepted/);
    const secret = Buffer.from(first.publicKey.export({ type: "spki", format: "pem" }));
    const confused = await new SignJWT({ iss: ISSUER, aud: AUDIENCE, sub: "worker", exp: world.seconds() + 600 })
      .setProtectedHeader({ alg: "HS256", kid: first.kid })
      .sign(secret);
    expect(await ask(confused)).toMatch(/algorithm that is not accepted/);
  });

  it("is refused with a wrong signature, also of the same key", async () => {
    const { ask, sign } = world;
    expect(await ask(await sign({}, { ...second, kid: first.kid }))).toMatch(/signature of this token is not valid/);
    const [head, , signature] = (await sign()).split(".");
    const [, payload] = (await sign({ sub: "unbound" })).split(".");
    expect(await ask(`${head}.${payload}.${signature}`)).toMatch(/signature of this token is not valid/);
  });

  it.each([
    ["ey.", /not a JSON Web Token/],
    ["eyJhbGciOiJFUzI1NiJ9.bm8.x", /not a JSON Web Token/],
    [`ey.${"a".repeat(9000)}`, /more than 8192 characters/],
    ["eyJhbGciOiJFUzI1NiJ9.eyJpc3MiOiJfX3Byb3RvX18ifQ.eA", /issuer "__proto__" are not accepted/],
  ])("that is malformed is refused without a look at keys: %.50s", async (token, message) => {
    expect(await world.ask(token)).toMatch(message);
    expect(world.read).not.toHaveBeenCalled();
  });

  it("has one spelling: others would fill the memory of verified ones", async () => {
    const { ask, sign } = world;
    const token = await sign();
    expect(await ask(token)).toBe("key_a");
    // The last character of 64 bytes has four spare bits, which are zero.
    const spare = token.slice(0, -1) + String.fromCharCode(token.charCodeAt(token.length - 1) + 1);
    for (const spelling of [`${token}=`, `${token}==`, `${token} `, spare, token.replace(".", "=.")])
      expect(await ask(spelling)).toMatch(/not a JSON Web Token/);
  });

  it("that was verified is known until its end, unless the keys of its issuer change", async () => {
    const { ask, sign, seconds, clock, read } = world;
    const [short, long] = [await sign({ exp: seconds() + 60 }), await sign({ exp: seconds() + 3600 })];
    expect([await ask(short), await ask(long)]).toEqual(["key_a", "key_a"]);
    read.mockImplementation(() => keySetOf(second));
    clock.advance(91_000);
    expect(await ask(short)).toMatch(/expired/);
    expect(await ask(long)).toBe("key_a");
    clock.advance(5 * MINUTE_MS);
    expect(await ask(long)).toBe("key_a");
    await expect.poll(() => ask(long)).toMatch(/key that its issuer did not publish/);
  });
});

describe("bindings of claims", () => {
  it("need each claim, compare by type, and look into lists; the first that matches counts", async () => {
    const { ask, sign } = setUp({
      bindings: [
        { claims: { sub: "worker", team: "billing" }, key: "key_both" },
        { claims: { groups: "admins" }, key: "key_group" },
        { claims: { verified: true }, key: "key_verified" },
        { claims: { toString: "x", __proto__: "y" }, key: "key_proto" },
      ],
    });
    expect(await ask(await sign({ team: "billing", groups: ["admins"] }))).toBe("key_both");
    expect(await ask(await sign({ team: "other", groups: ["users", "admins"] }))).toBe("key_group");
    expect(await ask(await sign({ groups: "admins,users", verified: "true" }))).toMatch(/No binding/);
    expect(await ask(await sign({ verified: true }))).toBe("key_verified");
  });
});

describe("the keys of an issuer", () => {
  let world: ReturnType<typeof setUp>;
  beforeEach(() => {
    world = setUp();
  });

  it("are read again for a token with a new key", async () => {
    const { ask, sign, clock, read } = world;
    expect(await ask(await sign())).toBe("key_a");
    read.mockImplementation(() => keySetOf(second));
    clock.advance(10_000);
    expect(await ask(await sign({}, second))).toBe("key_a");
    clock.advance(10_000);
    expect(await ask(await sign({ jti: "2" }))).toMatch(/key that its issuer does not publish/);
  });

  it("that are new are distinguished from unknown ones once they may be read again: until then callers are asked to retry", async () => {
    const { clock, sign, verifier, read } = world;
    await verifier.keyOf(await sign());
    clock.advance(10_000);
    const unknown = await sign({}, { ...second, kid: "unknown" });
    await expect(verifier.keyOf(unknown)).rejects.toMatchObject({ code: "unauthenticated" });
    read.mockImplementation(() => keySetOf(first, second));
    clock.advance(4_000);
    const early = { code: "overloaded", retryAfterMs: 6_000, unavailable: "token_issuer" };
    await expect(verifier.keyOf(await sign({}, second))).rejects.toMatchObject(early);
    clock.advance(6_000);
    expect(await verifier.keyOf(await sign({}, second))).toBe("key_a");
    read.mockRejectedValue(new Error("ECONNREFUSED"));
    clock.advance(10_000);
    await expect(verifier.keyOf(unknown)).rejects.toMatchObject({ code: "overloaded", retryAfterMs: 10_000 });
  });

  it("are read once in ten seconds at most, however many tokens have unknown keys", async () => {
    const { ask, sign, clock, read } = world;
    const unknown = await Promise.all(
      Array.from({ length: 50 }, (_, index) => sign({}, { ...second, kid: `unknown-${index}` })),
    );
    const all = () => Promise.all(unknown.map(ask));
    expect(new Set(await all())).toEqual(
      new Set([
        "This token is signed with a key that its issuer did not publish when its keys were read last. Try again shortly.",
      ]),
    );
    await all();
    expect(read).toHaveBeenCalledTimes(1);
    clock.advance(10_000);
    await all();
    await all();
    expect(read).toHaveBeenCalledTimes(2);
  });

  it("are read again in the background when they are old, and stay for an hour when they cannot be", async () => {
    const { ask, sign, clock, read, failed, seconds } = world;
    const token = (): Promise<string> => sign({ exp: seconds() + 60, jti: String(clock.now()) });
    expect(await ask(await token())).toBe("key_a");
    read.mockRejectedValue(new Error("https://issuer.example/jwks: ECONNREFUSED"));
    for (let minutes = 0; minutes < 55; minutes += 5) {
      clock.advance(5 * MINUTE_MS + 1);
      expect(await ask(await token())).toBe("key_a");
    }
    expect(failed.mock.calls).toEqual([["https://issuer.example/jwks: ECONNREFUSED"]]);
    clock.advance(10 * MINUTE_MS);
    expect(await ask(await token())).toMatch(/keys of this token's issuer cannot be read/);
    read.mockImplementation(() => keySetOf(first));
    clock.advance(10_000);
    expect(await ask(await token())).toBe("key_a");
  });

  it.each(["", "null", "[]", '{"keys": 1}', '{"keys": [1]}', "<html>"])("are reported as invalid: %s", async (text) => {
    const { ask, sign, read, failed } = world;
    read.mockResolvedValue(text);
    expect(await ask(await sign())).toMatch(/cannot be read at the moment/);
    expect(failed).toHaveBeenCalledWith("this is no JSON Web Key Set");
  });
});
