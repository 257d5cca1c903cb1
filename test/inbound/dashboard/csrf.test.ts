import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { POLICIES, SERVICES } from "../../../src/inbound/dashboard/policy.ts";
import { createNetworkFinder } from "../../../src/inbound/dashboard/client-address.ts";
import type { Role } from "../../../src/access/account-store.ts";
import { createKey } from "../../../src/access/keys.ts";
import { ROLES } from "../../../src/access/permissions.ts";
import { PASSWORD } from "../../access/set-up.ts";
import { type Answer, type Browser, type ConsoleUnderTest, JSON_TYPE, startConsole } from "./set-up.ts";

const SIGN_IN = "/parley.console.v1.SessionService/SignIn";
const GET_SESSION = "/parley.console.v1.SessionService/GetSession";
const STREAM = "/parley.console.v1.PlaygroundService/Stream";
const CREDENTIALS = JSON.stringify({ email: "ada@example.com", password: PASSWORD });

let site: ConsoleUnderTest;
beforeAll(async () => {
  site = await startConsole();
  await site.signedUp("ada");
});
afterAll(() => site.close());

const ownOrigin = (): string => `http://127.0.0.1:${site.server.port}`;

describe("a call from a page", () => {
  it.each([
    ["of this origin, by the browser's word", { "sec-fetch-site": "same-origin" }, 200],
    ["of this origin, by its Origin", { origin: "own" }, 200],
    ["of no browser", {}, 200],
    ["of another site", { "sec-fetch-site": "cross-site" }, 403],
    ["of another site that says its Origin is ours", { "sec-fetch-site": "cross-site", origin: "own" }, 403],
    ["of a sister domain", { "sec-fetch-site": "same-site" }, 403],
    ["of nobody, typed by hand", { "sec-fetch-site": "none" }, 403],
    ["of an unknown kind", { "sec-fetch-site": "" }, 403],
    ["of another origin", { origin: "http://evil.example" }, 403],
    ["of another port", { origin: "http://127.0.0.1:1" }, 403],
    ["of a sandboxed frame", { origin: "null" }, 403],
    ["with an empty Origin", { origin: "" }, 403],
    ["at another host's name for this address", { host: "evil.example" }, 403],
    ["at another host's name that looks like ours", { host: "127.0.0.1.evil.example" }, 403],
    ["at localhost", { host: "localhost:8080", origin: "http://localhost:8080" }, 200],
    ["at an IPv6 address", { host: "[::1]:8080", origin: "http://[::1]:8080" }, 200],
    ["behind a proxy with TLS", { host: "10.0.0.1", origin: "https://10.0.0.1" }, 200],
    ["with a form's content type", { "content-type": "application/x-www-form-urlencoded" }, 400],
    ["with a plain text that is JSON", { "content-type": "text/plain" }, 400],
    ["with a file's content type", { "content-type": "multipart/form-data; boundary=x" }, 400],
    ["without a content type", { "content-type": "" }, 400],
    ["with two content types", { "content-type": "text/plain, application/json" }, 400],
    ["with a streaming content type", { "content-type": "application/connect+json" }, 400],
  ])("%s is answered with the right status: %o, %i", async (_, given, status) => {
    const sessions = (): number => site.access.stores.rows("sessions").length;
    const before = sessions();
    const headers = Object.fromEntries(
      Object.entries({ ...JSON_TYPE, ...given }).map(([name, value]) => [name, value === "own" ? ownOrigin() : value]),
    );
    const answer = await site.send(SIGN_IN, { headers, body: CREDENTIALS });
    expect(answer.status).toBe(status);
    expect(sessions() - before).toBe(status === 200 ? 1 : 0);
    await site.access.store.removeSessions("acct_default");
    site.access.clock.advance(60_000);
  });

  it.each([
    ["of this origin, in JSON", { "sec-fetch-site": "same-origin" }, 200, "unauthenticated"],
    ["of this origin, in bytes", { "content-type": "application/connect+proto" }, 200, "unauthenticated"],
    ["of another site", { "sec-fetch-site": "cross-site" }, 403, "permission_denied"],
    ["of another origin", { origin: "http://evil.example" }, 403, "permission_denied"],
    ["at another host's name for this address", { host: "evil.example" }, 403, "permission_denied"],
    ["with a form's content type", { "content-type": "application/x-www-form-urlencoded" }, 400, "invalid_argument"],
    ["with a plain text", { "content-type": "text/plain" }, 400, "invalid_argument"],
    ["with another kind of call's content type", { "content-type": "application/json" }, 400, "invalid_argument"],
    ["with one that only begins like it", { "content-type": "application/connect+jsonp" }, 400, "invalid_argument"],
    ["without a content type", { "content-type": "" }, 400, "invalid_argument"],
  ])("that asks for a stream, %s, is answered with the right status: %o, %i, %s", async (_, given, status, code) => {
    const headers = { "content-type": "application/connect+json", ...given };
    const answer = await site.send(STREAM, { headers, body: "\0\0\0\0\x02{}" });
    expect(answer.status).toBe(status);
    // Once it may be the page, the refusal is what the stream says: its client reads nothing else.
    expect(answer.text).toContain(`{"code":"${code}"`);
    expect(answer.text.startsWith("\x02")).toBe(status === 200);
  });

  it("asks other origins' pages to ask before they send what asks for a stream, and they may not", async () => {
    const headers = {
      origin: "http://evil.example",
      "access-control-request-method": "POST",
      "access-control-request-headers": "content-type",
    };
    const answer = await site.send(STREAM, { method: "OPTIONS", headers });
    expect(answer.status).toBe(400);
    expect(Object.keys(answer.headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
  });

  it.each(["GET", "PUT", "PATCH", "DELETE", "OPTIONS", "HEAD"])("with %s changes nothing", async (method) => {
    const query = `?connect=v1&encoding=json&message=${encodeURIComponent(CREDENTIALS)}`;
    const answer = await site.send(SIGN_IN + query, { method, headers: JSON_TYPE });
    expect(answer.status).toBe(400);
    expect(site.access.stores.rows("sessions")).toEqual([]);
  });

  it("gets no permission for other origins, even where /v1 gives it", async () => {
    const origin = "https://page.example";
    for (const method of ["OPTIONS", "POST"]) {
      const { headers } = await site.send(SIGN_IN, { method, headers: { ...JSON_TYPE, origin }, body: CREDENTIALS });
      expect(Object.keys(headers).filter((name) => name.startsWith("access-control"))).toEqual([]);
    }
    const { headers } = await site.send("/v1/models", { method: "GET", headers: { origin } });
    expect(headers["access-control-allow-origin"]).toBe(origin);
  });

  it("has at most 64 KiB, whether it says so before or not", async () => {
    const body = JSON.stringify({ email: "x".repeat(64 * 1024) });
    const declared = await site.send(GET_SESSION, { headers: JSON_TYPE, body });
    const chunked = { ...JSON_TYPE, "transfer-encoding": "chunked" };
    for (const { text } of [declared, await site.send(GET_SESSION, { headers: chunked, body })]) {
      expect(JSON.parse(text)).toMatchObject({ code: "resource_exhausted" });
    }
  });

  it("is answered after `Expect: 100-continue`", async () => {
    const answer = await site.send(GET_SESSION, { headers: { ...JSON_TYPE, expect: "100-continue" }, body: "{}" });
    expect(answer.status).toBe(200);
  });

  it.each(["{", "[]", '{"email":5}', "\0", `{"a":${"[".repeat(30_000)}`])("%.12j is no message", async (body) => {
    const answer = await site.send(SIGN_IN, { headers: JSON_TYPE, body });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({ code: "invalid_argument" });
  });
});

describe("every answer", () => {
  const EXPECTED = {
    "cache-control": "no-store",
    "content-security-policy": "default-src 'none'; base-uri 'none'; form-action 'none'; frame-ancestors 'none'",
    "cross-origin-opener-policy": "same-origin",
    "cross-origin-resource-policy": "same-origin",
    "referrer-policy": "no-referrer",
    "x-content-type-options": "nosniff",
  };

  it("has the headers of private data, errors too", async () => {
    const paths = [...POLICIES.keys(), "/parley.console.v1.SessionService/None", "/parley.console.v1."];
    const answers: Answer[] = [];
    for (const path of paths) {
      answers.push(await site.send(path, { headers: JSON_TYPE, body: "{}" }));
      answers.push(await site.send(path, { method: "GET" }));
      answers.push(await site.send(path, { headers: { ...JSON_TYPE, origin: "null" }, body: "{}" }));
    }
    for (const { headers } of answers) {
      expect(headers).toMatchObject({ ...EXPECTED, "x-request-id": expect.stringMatching(/^req_/) });
      expect(headers["strict-transport-security"]).toBeUndefined();
    }
  });

  it("of a path that is none is a 404", async () => {
    const answer = await site.send("/parley.console.v1.SessionService/None", { headers: JSON_TYPE, body: "{}" });
    expect(answer.status).toBe(404);
    expect(JSON.parse(answer.text)).toMatchObject({ code: "unimplemented" });
  });

  it("requires TLS from then on behind a listener with TLS", async () => {
    const secure = await startConsole({ publicUrl: "https://parley.example" });
    const answer = await secure.send(GET_SESSION, { headers: { ...JSON_TYPE, host: "parley.example" }, body: "{}" });
    expect(answer.headers).toMatchObject({ ...EXPECTED, "strict-transport-security": "max-age=31536000" });
    secure.close();
  });

  it("comes after the entrance's own refusals", async () => {
    const headers = { ...JSON_TYPE, host: "a b" };
    const answer = await site.send(GET_SESSION, { headers, body: "{}" });
    expect(answer.status).toBe(400);
    expect(JSON.parse(answer.text)).toMatchObject({
      code: "invalid_argument",
      message: "The Host header is not a host.",
    });
  });
});

describe("the cookies", () => {
  it.each([
    [undefined, "", ""],
    ["http://127.0.0.1:8080", "", ""],
    ["https://parley.example", "__Host-", "; Secure"],
  ])("are as narrow as they can be for %s", async (publicUrl, prefix, secure) => {
    const own = await startConsole({ publicUrl });
    const ada = await own.signedUp("ada");
    const [session = "", browser = "", ...others] = ada.setCookies.map((line) => line.replace(/=[\w-]{43};/, "=…;"));
    expect(session).toBe(`${prefix}sid=…; Max-Age=86400; Path=/; HttpOnly; SameSite=Lax${secure}`);
    expect(browser).toBe(`${prefix}browser=…; Max-Age=15552000; Path=/; HttpOnly; SameSite=Strict${secure}`);
    expect(others).toEqual([]);
    // The browser stays known after the session has ended.
    await ada.session.signOut({});
    expect(ada.setCookies.slice(2)).toEqual([session.replace("=…; Max-Age=86400", "=; Max-Age=0")]);
    own.close();
  });

  it("of a session is not read when there are two, and not under the other name", async () => {
    const ada = site.browser();
    await ada.session.signIn({ email: "ada@example.com", password: PASSWORD });
    const ask = async (cookie: string) =>
      JSON.parse((await site.send(GET_SESSION, { headers: { ...JSON_TYPE, cookie }, body: "{}" })).text).session;
    expect(await ask(ada.cookie())).toBeDefined();
    expect(await ask(`theme=dark; ${ada.cookie()};`)).toBeDefined();
    expect(await ask(`sid=planted; ${ada.cookie()}`)).toBeUndefined();
    expect(await ask(ada.cookie().replace("sid", "__Host-sid"))).toBeUndefined();
    expect(await ask(ada.cookie().replace("sid", "xsid"))).toBeUndefined();
  });
});

describe("who may call what", () => {
  const OPEN = [
    ...["SignUp", "SignIn", "SignInByLink", "SignOut", "GetSession", "GetInvitation"].map(
      (name) => `SessionService/${name}`,
    ),
    "FactorService/GetPasskeyOptions",
    "FactorService/SignInByPasskey",
    "PasswordService/RequestReset",
    "PasswordService/Reset",
  ];
  /** For everybody who has signed in: the sign-in itself, and what pages need. */
  const SIGNED_IN = [
    ...["Reauthenticate", "ChangePassword", "ListSessions", "SignOutElsewhere"].map((name) => `SessionService/${name}`),
    "FactorService/List",
    "SettingsService/Get",
    "ModelService/List",
    "TeamService/List",
    ...["ListSavedFilters", "SaveFilter", "RemoveSavedFilter"].map((name) => `RequestService/${name}`),
  ];
  const SIGNED_IN_FRESH = ["BeginPasskey", "AddPasskey", "RemovePasskey"]
    .concat(["BeginTotp", "ConfirmTotp", "RemoveTotp", "RenewRecoveryCodes"])
    .map((name) => `FactorService/${name}`);
  const READING = [
    "AuditService/List",
    "AuditService/Export",
    "KeyService/Get",
    "KeyService/List",
    "StopService/List",
    "AttributionService/ListBudgets",
    "RoutingService/GetRouting",
    "OverviewService/Get",
    ...["Summarize", "GetLatency", "GetSpending"].map((name) => `UsageService/${name}`),
    ...["List", "Get", "Watch", "Export"].map((name) => `RequestService/${name}`),
    ...["List", "GetCount"].map((name) => `AlertService/${name}`),
  ];
  const DEVELOPERS = ["PlaygroundService/Stream", "AlertService/Acknowledge"];
  const DEVELOPERS_FRESH = [
    ...["Create", "Update", "Rotate", "Transfer", "Revoke"].map((name) => `KeyService/${name}`),
    ...["Create", "Remove"].map((name) => `StopService/${name}`),
    "AttributionService/SetBudget",
    ...["SetCredential", "RemoveCredential", "SetAliases"].map((name) => `RoutingService/${name}`),
  ];
  const ADMINISTRATORS = [
    "AccountService/List",
    // Without an ID it is not one's own account.
    "AccountService/Update",
    "AccountService/ListInvitations",
    "RoleService/List",
    "AdminKeyService/List",
    "AuditService/ListStreams",
    // Without an ID it is no team of one's own.
    "TeamService/ListMembers",
    "ModelService/ListUpstreams",
    "ModelService/ListTargetHistory",
    "ModelService/ExplainRoute",
    "ModelService/TestModel",
    "RequestService/GetContent",
    "SettingsService/GetConfiguration",
    ...["ListEntries", "Export", "ListVersions", "GetVersion", "ListPresets"].map(
      (name) => `ConfigurationService/${name}`,
    ),
    ...["Mute", "ListChannels", "GetThresholds"].map((name) => `AlertService/${name}`),
  ];
  const ADMINISTRATORS_FRESH = [
    "AccountService/CreateInvitation",
    "AccountService/RevokeInvitation",
    "AccountService/Offboard",
    ...["Create", "Revoke"].map((name) => `AdminKeyService/${name}`),
    ...["CreateStream", "RemoveStream"].map((name) => `AuditService/${name}`),
    "FactorService/Reset",
    "TeamService/Create",
    // Of others only maintainers of a team.
    ...["SetMember", "RemoveMember"].map((name) => `TeamService/${name}`),
    ...["ChangeEntries", "Import", "RollBack", "TestProvider"].map((name) => `ConfigurationService/${name}`),
    ...["CreateChannel", "UpdateChannel", "RemoveChannel", "TestChannel", "SetThresholds"].map(
      (name) => `AlertService/${name}`,
    ),
  ];
  const OWNERS_FRESH = ["Create", "Update", "Remove"].map((name) => `RoleService/${name}`);
  const FRESH = [...SIGNED_IN_FRESH, ...DEVELOPERS_FRESH, ...ADMINISTRATORS_FRESH, ...OWNERS_FRESH];

  /** The roles that a call is for; undefined for everybody. */
  function rolesOf(path: string): readonly Role[] | undefined {
    if (OPEN.includes(path)) return undefined;
    if (OWNERS_FRESH.includes(path)) return ["owner"];
    if ([...ADMINISTRATORS, ...ADMINISTRATORS_FRESH].includes(path)) return ["owner", "administrator"];
    if ([...DEVELOPERS, ...DEVELOPERS_FRESH].includes(path)) return ["owner", "administrator", "developer"];
    return ["owner", "administrator", "developer", "viewer"];
  }

  /** A request of an endless stream with which it ends. */
  const ENDING: Readonly<Record<string, string>> = { "RequestService/Watch": '{"filter":{"outcome":"none"}}' };

  const all = SERVICES.flatMap(({ typeName, methods }) =>
    methods.map(({ name }) => `${typeName.replace("parley.console.v1.", "")}/${name}`),
  );

  it("is decided for every RPC there is", () => {
    const decided = [...OPEN, ...SIGNED_IN, ...READING, ...DEVELOPERS, ...ADMINISTRATORS, ...FRESH];
    expect(all.toSorted()).toEqual(decided.toSorted());
    expect([...POLICIES.keys()].toSorted()).toEqual(all.map((path) => `/parley.console.v1.${path}`).toSorted());
  });

  // An endless stream has no answer to wait for: watch.test.ts.
  const answered = all.filter((path) => path !== "RequestService/Watch");
  it.each(answered)("%s: nobody, API key, every role, each fresh and not", async (path) => {
    const own = await startConsole();
    const people = new Map<Role, Browser & { readonly id: string }>();
    for (const role of ROLES) {
      const person = await own.signedUp(role);
      await own.access.store.update(person.id, { role });
      people.set(role, person);
    }
    const { id: accountId } = people.get("developer")!;
    const { secret } = await createKey({ store: own.keys, clock: own.access.clock }, { name: "k", accountId });
    const ask = async (headers: Record<string, string>) => {
      const isStream = POLICIES.get(`/parley.console.v1.${path}`)?.streams === true;
      const answer = await own.send(`/parley.console.v1.${path}`, {
        headers: { "content-type": isStream ? "application/connect+json" : "application/json", ...headers },
        body: isStream ? envelope(ENDING[path] ?? "{}") : "{}",
      });
      const status = answer.text.includes('{"error":{"code":"unauthenticated"') ? 401 : answer.status;
      const isStale = answer.text.includes("Confirm that it is you");
      const isDenied = status === 403 || answer.text.includes('"code":"permission_denied"');
      return status === 401 ? "unknown" : isDenied ? (isStale ? "stale" : "forbidden") : "answered";
    };
    const key = { authorization: `Bearer ${secret}` };
    const nobody = OPEN.includes(path) ? "answered" : "unknown";
    expect([await ask({}), await ask(key), await ask({ cookie: `sid=${secret}` })]).toEqual([nobody, nobody, nobody]);

    // Signing out, which would end the session, has nothing left to show.
    if (path === "SessionService/SignOut") return own.close();
    const askAll = async (): Promise<Partial<Record<Role, string>>> => {
      const answers: Partial<Record<Role, string>> = {};
      for (const [role, person] of people) answers[role] = await ask({ cookie: person.cookie() });
      return answers;
    };
    const roles = rolesOf(path);
    const expected = (answer: string) =>
      Object.fromEntries(ROLES.map((role) => [role, roles?.includes(role) === false ? "forbidden" : answer]));
    expect(await askAll()).toEqual(expected("answered"));
    own.access.clock.advance(11 * 60_000);
    expect(await askAll()).toEqual(expected(FRESH.includes(path) ? "stale" : "answered"));

    for (const { id } of people.values()) await own.access.store.update(id, { disabledAtMs: 1 });
    expect(await askAll()).toEqual(Object.fromEntries(ROLES.map((role) => [role, nobody])));
    own.close();
  });

  it("lets no session call /v1", async () => {
    const ada = site.browser();
    await ada.session.signIn({ email: "ada@example.com", password: PASSWORD });
    const [, id] = ada.cookie().split("=");
    for (const headers of [{ cookie: ada.cookie() }, { authorization: `Bearer ${id}` }]) {
      expect((await site.send("/v1/models", { method: "GET", headers })).status).toBe(401);
    }
  });

  it("is not decided while sessions cannot be looked up", async () => {
    const own = await startConsole();
    const ada = await own.signedUp("ada");
    own.access.store.findSession = () => Promise.reject(new Error("the database is away at 10.1.2.3"));
    const headers = { ...JSON_TYPE, cookie: ada.cookie() };
    const answer = await own.send("/parley.console.v1.KeyService/List", { headers, body: "{}" });
    expect(answer.status).toBe(503);
    expect(answer.text).not.toContain("10.1.2.3");
    own.close();
  });
});

/** A short message as a stream has it: a byte of flags, four of length. */
function envelope(message: string): string {
  return `\0\0\0\0${String.fromCharCode(message.length)}${message}`;
}

describe("the caller's network", () => {
  const find = createNetworkFinder({
    trustedProxies: ["10.0.0.0/8", "127.0.0.1", "2001:db8::/32"],
    onUntrusted: () => expect.fail("a proxy is trusted"),
  });

  it.each([
    ["198.51.100.7", "192.0.2.1", "198.51.100.0/24"],
    ["10.1.1.1", undefined, "10.1.1.0/24"],
    ["10.1.1.1", "192.0.2.1", "192.0.2.0/24"],
    ["::ffff:10.1.1.1", "192.0.2.1", "192.0.2.0/24"],
    ["127.0.0.1", "203.0.113.9, 192.0.2.1, 10.9.9.9", "192.0.2.0/24"],
    ["127.0.0.1", "192.0.2.1:4711", "192.0.2.0/24"],
    ["127.0.0.1", "[2001:dead::1]:4711", "2001:dead:0::/48"],
    ["2001:db8::1", "2001:dead::1", "2001:dead:0::/48"],
    ["127.0.0.1", "192.0.2.1, nonsense", "127.0.0.0/24"],
    ["127.0.0.1", "10.2.2.2", "10.2.2.0/24"],
    [undefined, "192.0.2.1", "unknown"],
  ])("of %s, forwarded for %s, is %s", (remoteAddress, forwardedFor, network) => {
    expect(find({ remoteAddress, forwardedFor })).toBe(network);
  });

  it("is reported once when a proxy that is not trusted hides it", () => {
    let told = 0;
    const findBehind = createNetworkFinder({ trustedProxies: [], onUntrusted: () => (told += 1) });
    findBehind({ remoteAddress: "127.0.0.1", forwardedFor: undefined });
    expect(told).toBe(0);
    for (let each = 0; each < 3; each += 1)
      expect(findBehind({ remoteAddress: "127.0.0.1", forwardedFor: "192.0.2.1" })).toBe("127.0.0.0/24");
    expect(told).toBe(1);
  });

  it("is not found with a range that is none", () => {
    for (const range of ["10.0.0.0/99", "proxy.example", ""]) {
      expect(() => createNetworkFinder({ trustedProxies: [range], onUntrusted: () => undefined })).toThrow(
        "is not an address or a range",
      );
    }
  });
});
