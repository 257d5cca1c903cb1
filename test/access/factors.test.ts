import { Secret, TOTP } from "otpauth";
import { describe, expect, it, vi } from "vitest";
import { createAccount } from "../../src/access/accounts.ts";
import { issueChallenge } from "../../src/access/factors/challenges.ts";
import type { PasskeyRecord } from "../../src/access/factors/factor-store.ts";
import { addPasskey, removePasskey, verifyPasskey } from "../../src/access/factors/passkeys.ts";
import { resetFactors } from "../../src/access/factors/reset-factors.ts";
import { beginTotp, confirmTotp, removeTotp, renewRecoveryCodes } from "../../src/access/factors/totp.ts";
import { rememberBrowser } from "../../src/access/known-browsers.ts";
import { changePassword } from "../../src/access/password-change.ts";
import { generateToken } from "../../src/access/secret-token.ts";
import {
  findSession,
  isSecondFactorDue,
  listSessions,
  type StartedSession,
  startSession,
} from "../../src/access/sessions.ts";
import { signIn, signInByPasskey } from "../../src/access/sign-in.ts";
import { type AccessUnderTest, PASSWORD, RULES, setUpAccess } from "./set-up.ts";

const ADA = { email: "ada@example.com", password: PASSWORD };
const HERE = { network: "192.0.2.0/24" };
const REQUIRED = { ...RULES, secondFactor: "required" } as const;
const SITE = { rpId: "localhost", origin: "http://localhost:8080" };
const STEP_MS = 30_000;

const passkeyOf = (accountId: string, id = "credential"): PasskeyRecord => ({
  id,
  accountId,
  name: "Laptop",
  publicKey: "key",
  counter: 0,
  transports: [],
  createdAtMs: 1,
  usedAtMs: undefined,
});

async function setUp(changes: Parameters<typeof setUpAccess>[0] = {}) {
  const access = setUpAccess(changes);
  // The beginning of a time step.
  access.clock.advance(STEP_MS - (access.clock.now() % STEP_MS));
  const account = await createAccount(access, { ...ADA, name: "Ada", role: "owner" });
  return { access, account };
}

/** What an app shows, these steps from now. */
const codeOf = ({ clock }: AccessUnderTest, secret: string, steps = 0): string =>
  TOTP.generate({ secret: Secret.fromBase32(secret), timestamp: clock.now() + steps * STEP_MS });

async function withApp(changes: Parameters<typeof setUpAccess>[0] = {}) {
  const { access, account } = await setUp(changes);
  const signedIn = await signIn(access, ADA, HERE);
  const { secret, enrolment } = await beginTotp(access, signedIn);
  const codes = await confirmTotp(access, { signedIn, enrolment, code: codeOf(access, secret) }, HERE);
  // The code that has confirmed it is used up.
  access.clock.advance(2 * STEP_MS);
  return { access, account, signedIn, secret, codes };
}

/** How a sign-in ends: `signed in`, or the detail, the field or the code of its failure. */
async function end(access: AccessUnderTest, code: string, network = HERE.network): Promise<string> {
  try {
    const { session } = await signIn(access, { ...ADA, code }, { network });
    return session.secondFactor === true ? "signed in" : "signed in by the password alone";
  } catch (error) {
    const {
      code: kind,
      detail,
      violations,
    } = error as { code: string; detail?: string; violations?: { field: string }[] };
    return detail ?? violations?.[0]?.field ?? kind;
  }
}

describe("an authenticator app", () => {
  it("is asked for after the right password only, and its code signs in", async () => {
    const { access, secret } = await withApp();
    const wrong = await signIn(access, { ...ADA, password: "not these words at all" }, HERE).catch((error) => error);
    expect(wrong).toMatchObject({ code: "unauthenticated", detail: undefined });
    expect(await end(access, "")).toBe("second_factor_required");
    const code = codeOf(access, secret);
    expect(await end(access, ` ${code.slice(0, 3)} ${code.slice(3)}`)).toBe("signed in");
    expect(access.logged.at(-1)?.action).toBe("signed_in");
  });

  it.each([
    ["30 s behind", -1, "signed in"],
    ["30 s ahead", 1, "signed in"],
    ["a minute behind", -2, "code"],
    ["a minute ahead", 2, "code"],
  ])("whose clock is %s: %s", async (_, steps, expected) => {
    const { access, secret } = await withApp();
    expect(await end(access, codeOf(access, secret, steps))).toBe(expected);
  });

  it("has codes that are used once, and none before the last one", async () => {
    const { access, secret } = await withApp();
    const [before, now, next] = [-1, 0, 1].map((steps) => codeOf(access, secret, steps));
    expect([await end(access, now!), await end(access, now!), await end(access, before!)]).toEqual([
      "signed in",
      "code",
      "code",
    ]);
    const both = await Promise.all([end(access, next!, "a"), end(access, next!, "b")]);
    expect(both.toSorted()).toEqual(["code", "signed in"]);
    expect(access.logged.filter(({ action }) => action === "second_factor_failed")).toHaveLength(3);
  });

  it("is throttled as passwords are, also with right passwords in between", async () => {
    const { access, secret } = await withApp();
    for (let guess = 0; guess < 4; guess += 1) {
      expect([await end(access, "000000"), await end(access, "")]).toEqual(["code", "second_factor_required"]);
    }
    expect(await end(access, "000000")).toBe("code");
    expect([await end(access, ""), await end(access, codeOf(access, secret))]).toEqual([
      "rate_limited",
      "rate_limited",
    ]);
    access.clock.advance(1_000);
    expect(await end(access, codeOf(access, secret))).toBe("signed in");
    // The sign-in has forgotten them.
    expect([await end(access, "000000"), await end(access, "000000")]).toEqual(["code", "code"]);
  });

  it("whose secret was encrypted with another key says so, and counts no failures", async () => {
    const { access, secret } = await withApp();
    const other = { ...access, factors: { ...access.factors, open: () => undefined } };
    const code = codeOf(access, secret);
    for (let time = 0; time < 10; time += 1)
      await expect(signIn(other, { ...ADA, code }, HERE)).rejects.toMatchObject({
        violations: [{ field: "code", description: expect.stringContaining("encryption key has changed") }],
      });
    expect(access.logged.at(-1)).toMatchObject({ action: "second_factor_failed" });
    expect(await end(access, code)).toBe("signed in");
  });

  it("asks for many codes without counting them as failures", async () => {
    const { access, secret } = await withApp();
    for (let time = 0; time < 30; time += 1) expect(await end(access, "")).toBe("second_factor_required");
    expect(await end(access, codeOf(access, secret))).toBe("signed in");
  });

  it("ends all other sessions, and its secret is stored encrypted", async () => {
    const { access } = await setUp();
    const [other, signedIn] = [await signIn(access, ADA, HERE), await signIn(access, ADA, HERE)];
    const { secret, uri, enrolment } = await beginTotp(access, signedIn);
    expect(uri).toMatch(/^otpauth:\/\/totp\/Parley:ada%40example\.com\?.*algorithm=SHA1&digits=6&period=30$/);
    expect(enrolment).not.toContain(secret);
    const code = codeOf(access, secret);
    await expect(confirmTotp(access, { signedIn, enrolment, code: "000000" }, HERE)).rejects.toThrow("code");
    await expect(confirmTotp(access, { signedIn, enrolment: "x", code }, HERE)).rejects.toThrow("expired");
    await confirmTotp(access, { signedIn, enrolment, code }, HERE);
    expect([
      await findSession(access, other.id),
      (await findSession(access, signedIn.id))?.session.secondFactor,
    ]).toEqual([undefined, true]);
    expect(JSON.stringify(await access.store.findTotp(signedIn.account.id))).not.toContain(secret);
    expect(JSON.stringify(access.logged)).not.toContain(secret);
    await expect(beginTotp(access, signedIn)).rejects.toThrow("turn it off first");
    await removeTotp(access, signedIn, HERE);
    expect(await end(access, "")).toBe("signed in by the password alone");
  });

  it("is not confirmed ten minutes later, or for another account", async () => {
    const { access } = await setUp();
    const signedIn = await signIn(access, ADA, HERE);
    const { secret, enrolment } = await beginTotp(access, signedIn);
    const bob = await createAccount(access, { ...ADA, email: "bob@example.com", name: "", role: "developer" });
    const ofBob = await signIn(access, { ...ADA, email: bob.email! }, HERE);
    const confirm = (by: StartedSession) =>
      confirmTotp(access, { signedIn: by, enrolment, code: codeOf(access, secret) }, HERE);
    await expect(confirm(ofBob)).rejects.toThrow("expired");
    access.clock.advance(600_000);
    await expect(confirm(signedIn)).rejects.toThrow("expired");
  });
});

describe("recovery codes", () => {
  it("sign in once each, in any form, and are stored as hashes", async () => {
    const { access, account, codes } = await withApp();
    expect(codes).toHaveLength(10);
    expect(new Set(codes).size).toBe(10);
    for (const code of codes) expect(code).toMatch(/^([a-z2-9]{4}-){3}[a-z2-9]{4}$/);
    expect(await end(access, codes[0]!.toUpperCase().replaceAll("-", " "))).toBe("signed in");
    expect(access.logged.at(-2)).toMatchObject({ action: "recovery_code_used", details: '{"left":"9"}' });
    expect(await end(access, codes[0]!)).toBe("code");
    const both = await Promise.all([end(access, codes[1]!, "a"), end(access, codes[1]!, "b")]);
    expect(both.toSorted()).toEqual(["code", "signed in"]);
    expect(await access.store.countRecoveryCodes(account.id)).toBe(8);
    expect(JSON.stringify(access.logged)).not.toContain(codes[1]);
  });

  it("are replaced together", async () => {
    const { access, signedIn, codes } = await withApp();
    const [next] = await renewRecoveryCodes(access, signedIn, HERE);
    expect([await end(access, codes[0]!), await end(access, next!)]).toEqual(["code", "signed in"]);
  });
});

describe("a required second factor", () => {
  it("is due in sessions by a password, until it is set up, and stays due after a change of the password", async () => {
    const { access } = await setUp({ signIn: REQUIRED });
    let signedIn = await signIn(access, ADA, HERE);
    expect(isSecondFactorDue(signedIn, access.signIn)).toBe(true);
    const change = { signedIn, current: PASSWORD, next: "another set of words" };
    signedIn = await changePassword(access, change, HERE);
    expect(isSecondFactorDue(signedIn, access.signIn)).toBe(true);
    const { secret, enrolment } = await beginTotp(access, signedIn);
    await confirmTotp(access, { signedIn, enrolment, code: codeOf(access, secret) }, HERE);
    const current = (await findSession(access, signedIn.id))!;
    expect(isSecondFactorDue(current, access.signIn)).toBe(false);
    const again = { signedIn: current, current: "another set of words", next: PASSWORD };
    expect(isSecondFactorDue(await changePassword(access, again, HERE), access.signIn)).toBe(false);
  });

  it("is not due in sessions by the provider or a link of the command line", () => {
    for (const method of ["oidc", "link"] as const) {
      const session = { method } as StartedSession["session"];
      expect(isSecondFactorDue({ session }, REQUIRED)).toBe(false);
    }
  });

  it("refuses a password alone where there is a passkey", async () => {
    const { access, account } = await setUp({ signIn: REQUIRED });
    await access.store.insertPasskey(passkeyOf(account.id), 20);
    expect(await end(access, "")).toBe("permission_denied");
    const optional = { ...access, signIn: RULES };
    expect(await end(optional, "")).toBe("signed in by the password alone");
  });

  it("ends the sessions without one, once the account has one", async () => {
    const { access, account } = await setUp();
    const stolen = await signIn(access, ADA, HERE);
    const required = { ...access, signIn: REQUIRED };
    expect(await findSession(required, stolen.id)).toBeDefined();
    await access.store.insertPasskey(passkeyOf(account.id), 20);
    expect(await findSession(access, stolen.id)).toBeDefined();
    const proven = await startSession(required, account, { ...HERE, method: "passkey", secondFactor: true });
    expect([await findSession(required, stolen.id), (await findSession(required, proven.id))?.session.method]).toEqual([
      undefined,
      "passkey",
    ]);
    expect((await listSessions(required, proven)).map(({ method }) => method)).toEqual(["passkey"]);
  });

  it("is not set up in a session that has ended meanwhile, or beside one that was set up in another", async () => {
    const { access, account } = await setUp({ signIn: REQUIRED });
    const [stolen, signedIn] = [await signIn(access, ADA, HERE), await signIn(access, ADA, HERE)];
    const { secret, enrolment } = await beginTotp(access, stolen);
    const session = { hash: signedIn.session.hash, setsUpFirst: true };
    expect(await access.store.insertPasskey(passkeyOf(account.id), 20, session)).toBe("done");
    const confirm = () => confirmTotp(access, { signedIn: stolen, enrolment, code: codeOf(access, secret) }, HERE);
    await expect(confirm()).rejects.toMatchObject({ code: "unauthenticated" });
    await access.store.insertSession(stolen.session);
    await expect(confirm()).rejects.toMatchObject({ code: "unauthenticated" });
    expect([await access.store.findTotp(account.id), await findSession(access, stolen.id)]).toEqual([
      undefined,
      undefined,
    ]);
    expect(await findSession(access, signedIn.id)).toBeDefined();
  });

  it("refuses a sign-in by the password alone during which a passkey was added", async () => {
    const { access, account } = await setUp({ signIn: REQUIRED });
    const insertSession = access.store.insertSession.bind(access.store);
    vi.spyOn(access.store, "insertSession").mockImplementation(async (session) => {
      await access.store.insertPasskey(passkeyOf(account.id), 20);
      await insertSession(session);
    });
    await expect(signIn(access, ADA, HERE)).rejects.toMatchObject({ code: "unauthenticated" });
    expect(access.stores.rows("sessions")).toEqual([]);
  });

  it("is not removed when it is the last, also when two are removed at once", async () => {
    const { access, account, signedIn } = await withApp({ signIn: REQUIRED });
    await access.store.insertPasskey(passkeyOf(account.id), 20);
    const removals = await Promise.allSettled([
      removePasskey(access, { signedIn, id: "credential" }, HERE),
      removeTotp(access, signedIn, HERE),
    ]);
    expect(removals.map(({ status }) => status).toSorted()).toEqual(["fulfilled", "rejected"]);
  });

  it("is not removed when it is the last", async () => {
    const { access, account, signedIn } = await withApp({ signIn: REQUIRED });
    await expect(removeTotp(access, signedIn, HERE)).rejects.toThrow("add another one");
    await access.store.insertPasskey(passkeyOf(account.id), 20);
    await removeTotp(access, signedIn, HERE);
    await expect(removePasskey(access, { signedIn, id: "credential" }, HERE)).rejects.toThrow("add another one");
    await expect(removePasskey(access, { signedIn, id: "unknown" }, HERE)).rejects.toThrow("passkey");
  });
});

describe("the factors of a person", () => {
  it("are reset with the sessions, and the password signs in again", async () => {
    const { access, account, signedIn } = await withApp();
    await access.store.insertPasskey(passkeyOf(account.id), 20);
    const actor = { actorId: account.id, network: undefined };
    expect(await resetFactors(access, account, actor)).toEqual({ passkeys: 1, totp: true });
    expect(await findSession(access, signedIn.id)).toBeUndefined();
    expect(access.logged.at(-1)).toMatchObject({ action: "factors_reset", accountId: account.id });
    expect(await end(access, "")).toBe("signed in by the password alone");
    await expect(resetFactors(access, { ...account, kind: "team" }, actor)).rejects.toThrow("does not sign in");
  });

  it("are those of the provider for people who sign in there", async () => {
    const provider = { name: "Acme ID", domains: new Set<string>() };
    const { access } = await setUp({ signIn: { ...RULES, provider } });
    const signedIn = await signIn(access, ADA, HERE);
    const bySso = { ...signedIn, session: { ...signedIn.session, method: "oidc" as const } };
    await expect(beginTotp(access, bySso)).rejects.toThrow("You sign in with Acme ID");
    const added = { signedIn: bySso, name: "Laptop", response: "{}", site: SITE };
    await expect(addPasskey(access, added, HERE)).rejects.toThrow("You sign in with Acme ID");
  });
});

describe("a response with a passkey", () => {
  it.each(["", "{", "null", "[]", '{"id":1}', '{"id":"a\\u0000"}', `{"id":"${"x".repeat(20_000)}"}`])(
    "that cannot be read is an invalid field: %.20s",
    async (response) => {
      const { access } = await setUp();
      const use = { response, site: SITE, signedIn: undefined, field: "response_json" };
      await expect(verifyPasskey(access, use)).rejects.toMatchObject({ code: "invalid_request" });
    },
  );

  it("of others in the network of a known browser does not prevent that browser's sign-in", async () => {
    const { access, account } = await setUp();
    const response = JSON.stringify({ id: "unknown" });
    const codeOfUse = (browserToken?: string): Promise<string> =>
      signInByPasskey(access, { response, site: SITE }, { ...HERE, browserToken }).then(
        () => "signed in",
        ({ code }: { code: string }) => code,
      );
    const ended: string[] = [];
    for (let count = 0; count < 21; count += 1) ended.push(await codeOfUse());
    expect(new Set(ended.slice(0, -1))).toEqual(new Set(["unauthenticated"]));
    expect(ended.at(-1)).toBe("rate_limited");
    expect(await codeOfUse(generateToken())).toBe("rate_limited");
    const browserToken = await rememberBrowser(access, account.id, undefined);
    for (let count = 0; count < 20; count += 1) expect(await codeOfUse(browserToken)).toBe("unauthenticated");
    expect(await codeOfUse(browserToken)).toBe("rate_limited");
  });

  it("is not valid when it is unknown, or made up", async () => {
    const { access, account } = await setUp();
    await access.store.insertPasskey(passkeyOf(account.id), 20);
    const challenge = (await issueChallenge(access, "sign in")).toString("base64url");
    const clientData = JSON.stringify({ type: "webauthn.get", challenge, origin: SITE.origin });
    for (const id of ["credential", "unknown"]) {
      const made = {
        clientDataJSON: Buffer.from(clientData).toString("base64url"),
        authenticatorData: "",
        signature: "",
      };
      const response = JSON.stringify({
        id,
        rawId: id,
        type: "public-key",
        response: made,
        clientExtensionResults: {},
      });
      const use = { response, site: SITE, signedIn: undefined, field: "response_json" };
      expect((await verifyPasskey(access, use)).isValid).toBe(false);
    }
  });
});
