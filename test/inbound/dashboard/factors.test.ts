import { once } from "node:events";
import { createServer } from "node:http";
import type { AddressInfo } from "node:net";
import { Code } from "@connectrpc/connect";
import { Secret, TOTP } from "otpauth";
import { describe, expect, it, onTestFinished } from "vitest";
import { ErrorInfoSchema } from "../../../gen/google/rpc/error_details_pb.js";
import { POLICIES } from "../../../src/inbound/dashboard/policy.ts";
import { createSiteFinder } from "../../../src/inbound/dashboard/passkey-site.ts";
import { PASSWORD, RULES } from "../../access/set-up.ts";
import { createDevice } from "../../support/passkey-device.ts";
import { errorOf } from "./errors.ts";
import { type Browser, type ConsoleUnderTest, JSON_TYPE, startConsole } from "./set-up.ts";

const REQUIRED = { ...RULES, secondFactor: "required" } as const;
const ADA = { email: "ada@example.com", password: PASSWORD };

async function start(options: Parameters<typeof startConsole>[0] = {}): Promise<ConsoleUnderTest> {
  const site = await startConsole({ signUp: "open", ...options });
  onTestFinished(() => site.close());
  return site;
}

/** Turns the authenticator app on. Returns its codes, by steps from now. */
async function turnOn(
  { access: { clock } }: ConsoleUnderTest,
  { factor }: Browser,
): Promise<(steps: number) => string> {
  const { secret, enrolment } = await factor.beginTotp({});
  const codeOf = (steps: number): string =>
    TOTP.generate({ secret: Secret.fromBase32(secret), timestamp: clock.now() + steps * 30_000 });
  const { recoveryCodes } = await factor.confirmTotp({ enrolment, code: codeOf(0) });
  expect(recoveryCodes).toHaveLength(10);
  return codeOf;
}

describe("where a second factor is required", () => {
  it("a session by a password may only set one up, and then everything", async () => {
    const site = await start({ signIn: REQUIRED });
    const ada = await site.signedUp("ada");
    const { session } = await ada.session.getSession({});
    expect(session?.secondFactorDue).toBe(true);
    const answered: string[] = [];
    for (const [path, { who, streams }] of POLICIES) {
      if (who === "anybody" || streams) continue;
      const headers = { ...JSON_TYPE, cookie: ada.cookie() };
      const { text } = await site.send(path, { headers, body: "{}" });
      site.access.clock.advance(1_000);
      if (!text.includes("second_factor_required")) answered.push(path.replace("/parley.console.v1.", ""));
    }
    expect(answered.filter((path) => !path.startsWith("FactorService/"))).toEqual([
      "SessionService/Reauthenticate",
      "SessionService/ChangePassword",
      "SessionService/ListSessions",
      "SessionService/SignOutElsewhere",
    ]);
    expect(answered.filter((path) => path.startsWith("FactorService/"))).toHaveLength(8);
    expect((await errorOf(ada.key.list({}))).code).toBe(Code.PermissionDenied);
    await turnOn(site, ada);
    expect((await ada.session.getSession({})).session?.secondFactorDue).toBe(false);
    expect((await ada.key.list({})).keys).toEqual([]);
    expect(await ada.factor.list({})).toMatchObject({ required: true, available: true, recoveryCodes: 10 });
  });
});

describe("a session by a password alone", () => {
  it("ends where a second factor is required and the account has one, whenever it began", async () => {
    const site = await start({ signIn: REQUIRED });
    const ada = await site.signedUp("ada");
    const stolen = site.browser();
    await stolen.session.signIn(ADA);
    const { enrolment } = await stolen.factor.beginTotp({});
    const passkey = { id: "credential", accountId: ada.id, name: "Laptop", publicKey: "key", counter: 0 };
    await site.access.store.insertPasskey({ ...passkey, transports: [], createdAtMs: 1, usedAtMs: undefined }, 20);
    for (const call of [
      () => stolen.session.reauthenticate({ password: PASSWORD }),
      () => stolen.session.changePassword({ currentPassword: PASSWORD, newPassword: "another set of words" }),
      () => stolen.factor.list({}),
      () => stolen.factor.beginTotp({}),
      () => stolen.factor.confirmTotp({ enrolment, code: "000000" }),
      () => stolen.factor.removePasskey({ id: passkey.id }),
    ])
      expect((await errorOf(call())).code).toBe(Code.Unauthenticated);
    expect((await stolen.session.getSession({})).session).toBeUndefined();
    expect(await site.access.store.listPasskeys(ada.id)).toHaveLength(1);
  });
});

describe("a sign-in with an authenticator app", () => {
  it("says that it needs a code, and works with one", async () => {
    const site = await start();
    const ada = await site.signedUp("ada");
    const codeOf = await turnOn(site, ada);
    const again = site.browser();
    const error = await errorOf(again.session.signIn(ADA));
    expect(error.code).toBe(Code.Unauthenticated);
    expect(error.findDetails(ErrorInfoSchema)[0]?.metadata["error_code"]).toBe("second_factor_required");
    expect((await errorOf(again.session.signIn({ ...ADA, code: "000000" }))).code).toBe(Code.InvalidArgument);
    await again.session.signIn({ ...ADA, code: codeOf(1) });
    // A fresh proof is a password still: the session has its second factor.
    await again.session.reauthenticate({ password: PASSWORD });
  });
});

describe("a reset of somebody's factors", () => {
  it("is for administrators, and of owners for owners", async () => {
    const site = await start();
    const [owner, administrator, developer] = [
      await site.signedUp("owner"),
      await site.signedUp("administrator"),
      await site.signedUp("developer"),
    ];
    await site.access.store.update(administrator.id, { role: "administrator" });
    await turnOn(site, developer);
    expect(await administrator.factor.reset({ id: developer.id })).toMatchObject({ passkeys: 0, totp: true });
    expect((await errorOf(developer.factor.list({}))).code).toBe(Code.Unauthenticated);
    expect((await errorOf(administrator.factor.reset({ id: owner.id }))).code).toBe(Code.PermissionDenied);
    expect((await errorOf(administrator.factor.reset({ id: "none" }))).code).toBe(Code.InvalidArgument);
    await owner.factor.reset({ id: administrator.id });
  });
});

describe("passkeys", () => {
  it.each<[host: string, publicUrl: string | undefined, hasTls: boolean, origin: string | undefined]>([
    ["parley.example.com", "https://parley.example.com", false, "https://parley.example.com"],
    ["parley.example.com:8443", "https://parley.example.com:8443", true, "https://parley.example.com:8443"],
    ["parley.example.com", "http://parley.example.com", false, undefined],
    ["other.example.com", "https://parley.example.com", false, undefined],
    ["192.0.2.1", "https://192.0.2.1", true, undefined],
    ["[::1]:8080", undefined, false, undefined],
    ["127.0.0.1:8080", undefined, false, undefined],
    ["localhost:8080", undefined, false, "http://localhost:8080"],
    ["localhost:8443", undefined, true, "https://localhost:8443"],
    ["localhost:8080", "https://parley.example.com", false, "http://localhost:8080"],
    ["LOCALHOST", "https://localhost", false, "https://localhost"],
    ["localhost.example.com", undefined, false, undefined],
  ])("at %s with the public URL %s and TLS %s are of %s", (host, publicUrl, hasTls, origin) => {
    const siteOf = createSiteFinder(publicUrl === undefined ? undefined : new URL(publicUrl), { hasTls });
    expect(siteOf({ requestHeader: new Headers({ host }) })?.origin).toBe(origin);
  });

  it("are not offered at an IP address, and refused with advice", async () => {
    const site = await start();
    const ada = await site.signedUp("ada");
    expect((await ada.session.getSession({})).acceptsPasskeys).toBe(false);
    for (const call of [ada.factor.beginPasskey({}), ada.factor.getPasskeyOptions({})]) {
      const error = await errorOf(call);
      expect([error.code, error.rawMessage]).toEqual([
        Code.InvalidArgument,
        expect.stringContaining("http.public_url"),
      ]);
    }
  });

  it("are added without what their devices are vouched for with, and nothing in it is fetched", async () => {
    const asked: (string | undefined)[] = [];
    const inside = createServer((request, response) => {
      asked.push(request.url);
      response.end("not a list");
    }).listen(0, "127.0.0.1");
    await once(inside, "listening");
    onTestFinished(() => void inside.close());
    const { ada, device } = await atLocalhost();
    const { optionsJson } = await ada.factor.beginPasskey({});
    const listAt = `http://127.0.0.1:${(inside.address() as AddressInfo).port}/internal`;
    await ada.factor.addPasskey({ name: "Phone", responseJson: device.attest(optionsJson, { listAt }) });
    expect((await ada.factor.list({})).passkeys).toMatchObject([{ name: "Phone" }]);
    expect(asked).toEqual([]);
  });

  it("may have no list of transports, and no handle of the person", async () => {
    const { site, host, ada, device } = await atLocalhost();
    const { optionsJson } = await ada.factor.beginPasskey({});
    const responseJson = device.attest(optionsJson, { listAt: "http://127.0.0.1:1", transports: { usb: true } });
    await ada.factor.addPasskey({ name: "Phone", responseJson });
    const elsewhere = site.browser({ host });
    const asked = await elsewhere.factor.getPasskeyOptions({});
    const used = device.use(asked.optionsJson, { userHandle: null });
    expect((await elsewhere.factor.signInByPasskey({ responseJson: used })).session?.account?.email).toBe(ADA.email);
    expect((await errorOf(elsewhere.factor.signInByPasskey({ responseJson: used }))).code).toBe(Code.Unauthenticated);
  });

  it("sign an account in 60 times a minute, and others meanwhile", async () => {
    const { site, host, ada, device } = await atLocalhost();
    const { optionsJson } = await ada.factor.beginPasskey({});
    await ada.factor.addPasskey({
      name: "Phone",
      responseJson: device.attest(optionsJson, { listAt: "http://127.0.0.1:1" }),
    });
    const elsewhere = site.browser({ host });
    const signIn = async () => {
      const asked = await elsewhere.factor.getPasskeyOptions({});
      return elsewhere.factor.signInByPasskey({ responseJson: device.use(asked.optionsJson, { userHandle: null }) });
    };
    await elsewhere.session.signIn(ADA);
    await elsewhere.session.signOut({});
    for (let count = 0; count < 60; count += 1) {
      await signIn();
      await elsewhere.session.signOut({});
    }
    const sessions = site.access.stores.rows("sessions").length;
    for (let count = 0; count < 21; count += 1) expect((await errorOf(signIn())).code).toBe(Code.ResourceExhausted);
    expect(site.access.stores.rows("sessions")).toHaveLength(sessions);
    await site.browser({ host }).session.signIn(ADA);
    site.access.clock.advance(60_000);
    await signIn();
  });
});

/** A person whose browser is at localhost, where passkeys are valid, with a device. */
async function atLocalhost() {
  const site = await start();
  const host = `localhost:${site.server.port}`;
  const ada = site.browser({ host });
  await ada.session.signUp({ ...ADA, name: "ada" });
  return { site, host, ada, device: createDevice(`http://${host}`) };
}
