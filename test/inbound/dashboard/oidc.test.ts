import { createServer } from "node:net";
import { once } from "node:events";
import { Code } from "@connectrpc/connect";
import { afterEach, beforeEach, describe, expect, it } from "vitest";
import { AccountRole } from "../../../gen/parley/console/v1/account_pb.js";
import { linkIdentity } from "../../../src/access/identities.ts";
import { createInvitation, findInvitationOf } from "../../../src/access/invitations.ts";
import { DEFAULT_ACCOUNT_ID } from "../../../src/access/key-store.ts";
import { createSignInLink } from "../../../src/access/sign-in-link.ts";
import { isToken } from "../../../src/access/secret-token.ts";
import { findSession } from "../../../src/access/sessions.ts";
import { CookieBrowser } from "../../support/cookie-browser.ts";
import { PASSWORD } from "../../access/set-up.ts";
import { errorOf } from "./errors.ts";
import {
  isCallback,
  type OidcSite,
  type OidcSiteOptions,
  pathOf,
  reachCallback,
  signInAs,
  startOidcSite,
} from "./oidc-site.ts";

let open: OidcSite;
afterEach(() => open.close());

const ADA = { email: "Ada@acme.example", email_verified: true, name: "Ada Lovelace" };

async function start(options?: OidcSiteOptions): Promise<OidcSite> {
  open = await startOidcSite(options);
  open.provider.people["ada"] = { ...ADA };
  return open;
}

/** The session of a browser, as the dashboard sees it. */
async function sessionOf(browser: CookieBrowser) {
  const sid = browser.cookies.get(open.url)?.get("sid");
  return (await open.site.browser({ cookie: `sid=${sid}` }).session.getSession({})).session;
}

/** The entries of the audit log, with their facts as objects. */
const entries = () =>
  open.site.access.logged.map(({ before, after, details, ...entry }) => ({
    ...entry,
    before: before && JSON.parse(before),
    after: after && JSON.parse(after),
    details: details && JSON.parse(details),
  }));
const actionsOf = (): string[] => open.site.access.logged.map(({ action }) => action);
const refusals = () => entries().filter(({ action }) => action === "sign_in_refused");

describe("a sign-in at the provider", () => {
  it("makes an account for a verified address of the domain, and returns to the page", async () => {
    await start();
    const browser = new CookieBrowser();
    const done = await signInAs(open, "ada", { browser, query: "?return=%2Fusage%3Fby%3Dkey%23top" });
    expect([done.status, pathOf(done)]).toEqual([303, "/usage?by=key#top"]);
    const session = await sessionOf(browser);
    expect(session).toMatchObject({ byProvider: true, account: { email: "ada@acme.example", name: "Ada Lovelace" } });
    const account = await open.access.store.findByEmail("ada@acme.example");
    expect(account).toMatchObject({ role: "developer", passwordHash: undefined });
    expect(entries()).toMatchObject([
      { action: "signed_up", accountId: account!.id, after: { role: "developer" }, details: { method: "oidc" } },
      {
        action: "signed_in",
        accountId: account!.id,
        network: "127.0.0.0/24",
        details: { method: "oidc" },
      },
    ]);
    expect(await sessionOf(new CookieBrowser())).toBeUndefined();
  });

  it("finds the account by its subject afterwards, whatever the address is then", async () => {
    await start();
    await signInAs(open, "ada");
    open.provider.people["ada"] = { email: "ada@elsewhere.example", email_verified: false, name: "Other" };
    const browser = new CookieBrowser();
    expect(pathOf(await signInAs(open, "ada", { browser }))).toBe("/");
    expect((await sessionOf(browser))?.account?.email).toBe("ada@acme.example");
    expect(await open.access.store.list()).toHaveLength(2);
  });

  it("has PKCE, and a cookie that scripts cannot read, removed at the end", async () => {
    await start();
    const browser = new CookieBrowser();
    const begun = await browser.get(`${open.url}/auth/oidc/start`);
    expect(begun.headers.get("set-cookie")).toMatch(/^oidc=[\w.-]+; Max-Age=600; Path=\/; HttpOnly; SameSite=Lax$/);
    const asked = begun.location!.searchParams;
    expect(Object.fromEntries(asked)).toMatchObject({
      response_type: "code",
      scope: "openid email profile",
      code_challenge_method: "S256",
      redirect_uri: `${open.url}/auth/oidc/callback`,
    });
    const secrets = browser.cookies.get(open.url)!.get("oidc")!.split(".");
    expect(isToken(secrets[0]!)).toBe(true);
    for (const name of ["state", "nonce", "code_challenge"]) {
      expect(asked.get(name)).toHaveLength(43);
      expect(begun.location!.href).not.toContain(secrets[0]);
    }
    const done = await signInAs(open, "ada", { browser });
    expect(done.headers.getSetCookie()).toContainEqual(expect.stringMatching(/^oidc=; Max-Age=0;/));
  });

  it("ends the session that the browser had", async () => {
    await start();
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    const before = browser.cookies.get(open.url)!.get("sid")!;
    await signInAs(open, "ada", { browser });
    expect(browser.cookies.get(open.url)!.get("sid")).not.toBe(before);
    expect(open.access.stores.rows("sessions")).toHaveLength(1);
  });

  it.each(["//evil.example/", "https://evil.example/", "/\\evil.example", "/no-page", "javascript:alert(1)"])(
    "returns to no other place than a page: %s",
    async (path) => {
      await start();
      expect(pathOf(await signInAs(open, "ada", { query: `?return=${encodeURIComponent(path)}` }))).toBe("/");
    },
  );

  it("returns to no other server by a path that another program has put into its cookie", async () => {
    await start();
    const browser = new CookieBrowser();
    const { location } = await reachCallback(open, browser, { login: "ada" });
    const cookies = browser.cookies.get(open.url)!;
    const [token, purpose] = cookies.get("oidc")!.split(".");
    cookies.set("oidc", `${token}.${purpose}.${Buffer.from("/..//evil.example/").toString("base64url")}.`);
    expect((await browser.get(location!)).location!.href).toBe(`${open.url}/`);
  });

  it("works behind a proxy, with the public address", async () => {
    await start({ publicUrl: "https://parley.acme.example" });
    const browser = new CookieBrowser();
    const begun = await browser.get(`${open.url}/auth/oidc/start`);
    expect(begun.location!.searchParams.get("redirect_uri")).toBe("https://parley.acme.example/auth/oidc/callback");
    expect(begun.headers.get("set-cookie")).toMatch(/^__Host-oidc=.*; Secure$/);
    const reached = await reachCallback(open, browser, { login: "ada" });
    expect(reached.location!.origin).toBe("https://parley.acme.example");
    const done = await browser.get(open.url + reached.location!.pathname + reached.location!.search);
    expect(pathOf(done)).toBe("/");
    expect(done.headers.getSetCookie().join()).toMatch(/__Host-sid=/);
  });
});

describe("an answer of the provider", () => {
  beforeEach(() => start());

  it("is refused with another state", async () => {
    const browser = new CookieBrowser();
    const { location } = await reachCallback(open, browser, { login: "ada" });
    location!.searchParams.set("state", "A".repeat(43));
    expect(pathOf(await browser.get(location!))).toBe("/sign-in?problem=expired");
    expect(open.access.stores.rows("sessions")).toEqual([]);
  });

  it("is refused in another browser, with a sign-in of its own or without", async () => {
    const { location } = await reachCallback(open, new CookieBrowser(), { login: "ada" });
    const other = new CookieBrowser();
    expect(pathOf(await other.get(location!))).toBe("/sign-in?problem=expired");
    await other.get(`${open.url}/auth/oidc/start`);
    expect(pathOf(await other.get(location!))).toBe("/sign-in?problem=expired");
    expect(open.provider.asked).not.toContain("/token");
  });

  it("is refused with another nonce", async () => {
    const browser = new CookieBrowser();
    const change = ({ searchParams }: URL): void => searchParams.set("nonce", "another");
    const { location } = await reachCallback(open, browser, { login: "ada", change });
    expect(pathOf(await browser.get(location!))).toBe("/sign-in?problem=invalid");
    expect(open.logged.at(-1)).toMatchObject({ reason: "invalid", cause: expect.stringContaining("nonce") });
  });

  it("is refused with the code challenge of another browser", async () => {
    const browser = new CookieBrowser();
    const change = ({ searchParams }: URL): void => searchParams.set("code_challenge", "B".repeat(43));
    const { location } = await reachCallback(open, browser, { login: "ada", change });
    expect(pathOf(await browser.get(location!))).toBe("/sign-in?problem=expired");
  });

  it("is refused a second time", async () => {
    const browser = new CookieBrowser();
    const { location } = await reachCallback(open, browser, { login: "ada" });
    const kept = browser.cookies.get(open.url)!.get("oidc")!;
    expect(pathOf(await browser.get(location!))).toBe("/");
    expect(pathOf(await browser.get(location!))).toBe("/sign-in?problem=expired");
    browser.cookies.get(open.url)!.set("oidc", kept);
    expect(pathOf(await browser.get(location!))).toBe("/sign-in?problem=expired");
    expect(open.access.stores.rows("sessions")).toHaveLength(1);
  });

  it.each(["https://other.example", undefined])("is refused when it names the issuer %s", async (issuer) => {
    const browser = new CookieBrowser();
    const { location } = await reachCallback(open, browser, { login: "ada" });
    if (issuer === undefined) location!.searchParams.delete("iss");
    else location!.searchParams.set("iss", issuer);
    expect(pathOf(await browser.get(location!))).toBe("/sign-in?problem=invalid");
    expect(open.provider.asked).not.toContain("/token");
  });

  it("is refused with a token signed by a key that the provider does not publish", async () => {
    await open.provider.publishOtherKeys();
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=invalid");
    expect(actionsOf()).toEqual([]);
  });

  it("is accepted at once when the provider has new keys", async () => {
    await signInAs(open, "ada");
    await open.provider.rotateKeys();
    expect(pathOf(await signInAs(open, "ada"))).toBe("/");
    expect(open.provider.asked.filter((path) => path === "/.well-known/openid-configuration")).toHaveLength(1);
  });

  const failOften = async (times: number, answer: string, reason: string): Promise<void> => {
    const browser = new CookieBrowser();
    for (let attempt = 0; attempt < times; attempt += 1) {
      const begun = await browser.get(`${open.url}/auth/oidc/start`);
      const state = begun.location!.searchParams.get("state")!;
      const forged = `${open.url}/auth/oidc/callback?${answer}&state=${state}&iss=${open.provider.issuer}`;
      expect(pathOf(await browser.get(forged))).toBe(`/sign-in?problem=${reason}`);
    }
  };

  it("is refused after twenty failures of the network in a minute, but not in a known browser or session", async () => {
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    await failOften(20, "code=guess", "expired");
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=rate_limited");
    expect(pathOf(await signInAs(open, "ada", { browser, query: "?confirm" }))).not.toContain("problem");
    expect(pathOf(await signInAs(open, "ada", { browser }))).toBe("/");
    const sid = browser.cookies.get(open.url)!.get("sid")!;
    const ofSession = new CookieBrowser();
    ofSession.cookies.set(open.url, new Map([["sid", sid]]));
    expect(pathOf(await signInAs(open, "ada", { browser: ofSession, query: "?confirm" }))).not.toContain("problem");
    const madeUp = new CookieBrowser();
    madeUp.cookies.set(
      open.url,
      new Map([
        ["browser", "A".repeat(43)],
        ["sid", "A".repeat(43)],
      ]),
    );
    expect(pathOf(await signInAs(open, "ada", { browser: madeUp }))).toBe("/sign-in?problem=rate_limited");
    open.site.access.clock.advance(60_000);
    expect(pathOf(await signInAs(open, "ada"))).toBe("/");
  });

  it.each([
    ["error=access_denied", "declined"],
    ["code=guess&error=access_denied", "declined"],
    ["", "invalid"],
  ])("that asks nothing of the provider is no failure of the network: %s", async (answer, reason) => {
    await failOften(25, answer, reason);
    expect(open.provider.asked).not.toContain("/token");
    expect(pathOf(await signInAs(open, "ada"))).toBe("/");
  });

  it("is refused for a subject that is too long", async () => {
    const login = "x".repeat(256);
    open.provider.people[login] = { ...ADA };
    expect(pathOf(await signInAs(open, login))).toBe("/sign-in?problem=invalid");
    expect(actionsOf()).toEqual([]);
    open.provider.people[login.slice(1)] = { ...ADA };
    expect(pathOf(await signInAs(open, login.slice(1)))).toBe("/");
  });
});

describe("the clocks of Parley and the provider", () => {
  it.each([
    ["/", 50_000],
    ["/sign-in?problem=invalid", 75_000],
  ])("lead to %s when a token expired %i ms ago", async (path, lateMs) => {
    await start({ idTokenSeconds: 1 });
    open.site.access.clock.advance(1_000 + lateMs);
    expect(pathOf(await signInAs(open, "ada"))).toBe(path);
  });
});

describe("a person", () => {
  it.each([
    ["without a verified address", { email: ADA.email, email_verified: false }, "unverified"],
    ["without an address", { name: "Ada" }, "unverified"],
    ["with a text in place of true", { email: ADA.email, email_verified: "true" }, "unverified"],
    ["of another domain", { email: "ada@sub.acme.example", email_verified: true }, "no_account"],
    ["of a similar domain", { email: "ada@acme.example.evil.example", email_verified: true }, "no_account"],
  ])("%s is refused", async (_, claims, reason) => {
    await start();
    open.provider.people["ada"] = claims;
    expect(pathOf(await signInAs(open, "ada"))).toBe(`/sign-in?problem=${reason}`);
    expect(refusals()).toMatchObject([{ details: { reason, subject: "ada", issuer: open.provider.issuer } }]);
    expect(open.access.stores.rows("sessions")).toEqual([]);
  });

  it("whose account is disabled stays out, also with a session begun before", async () => {
    await start();
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    const { id } = (await sessionOf(browser))!.account!;
    await open.access.store.update(id, { disabledAtMs: open.access.clock.now() });
    expect(await sessionOf(browser)).toBeUndefined();
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=disabled");
  });

  it("who declines at the provider reads that", async () => {
    await start();
    const browser = new CookieBrowser();
    const begun = await browser.get(`${open.url}/auth/oidc/start`);
    const form = await browser.follow(begun);
    const [, abort = ""] = /href="([^"]+\/abort)"/.exec(form.text) ?? [];
    const reached = await browser.follow(await browser.get(new URL(abort, form.url)), isCallback);
    expect(pathOf(await browser.get(reached.location!))).toBe("/sign-in?problem=declined");
    expect(open.logged).toMatchObject([{ reason: "declined", cause: expect.stringContaining("access_denied") }]);
  });
});

describe("an invited person", () => {
  const DAY_MS = 86_400_000;

  /** Starts where passwords are off, with an owner who has signed in; `invite` makes invitations as this owner. */
  async function startInviting(options: OidcSiteOptions = {}) {
    await start({ signIn: { password: false }, ...options });
    open.provider.people["eve"] = { email: "Eve@other.example", email_verified: true, name: "Eve" };
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    const { id } = (await sessionOf(browser))!.account!;
    await open.access.store.update(id, { role: "owner" });
    const { account } = open.site.browser({ cookie: `sid=${browser.cookies.get(open.url)?.get("sid")}` });
    const invite = (role: AccountRole, email = "eve@other.example") => account.createInvitation({ role, email });
    return { account, invite };
  }

  it("gets an account with the invited role, once, where passwords are off", async () => {
    const { account, invite } = await startInviting();
    expect(pathOf(await signInAs(open, "eve"))).toBe("/sign-in?problem=no_account");
    const { invitation } = await invite(AccountRole.ADMINISTRATOR);
    const browser = new CookieBrowser();
    expect(pathOf(await signInAs(open, "eve", { browser }))).toBe("/");
    const { account: made } = (await sessionOf(browser))!;
    expect(made).toMatchObject({ email: "eve@other.example", name: "Eve", role: AccountRole.ADMINISTRATOR });
    expect((await account.listInvitations({})).invitations).toMatchObject([
      { id: invitation!.id, useTime: expect.anything() },
    ]);
    expect(entries().slice(-3)).toMatchObject([
      { action: "invitation_accepted", accountId: made!.id, object: { kind: "invitation", id: invitation!.id } },
      { action: "signed_up", accountId: made!.id, after: { role: "administrator" }, details: { method: "oidc" } },
      { action: "signed_in", accountId: made!.id },
    ]);
    // Somebody who has the address later is another person.
    open.provider.people["successor"] = { email: "eve@other.example", email_verified: true };
    expect(pathOf(await signInAs(open, "successor"))).toBe("/sign-in?problem=not_linked");
    expect(pathOf(await signInAs(open, "eve"))).toBe("/");
  });

  it.each([
    ["whose address is not verified", { email: "eve@other.example", email_verified: false }, "unverified"],
    ["with another address", { email: "eve2@other.example", email_verified: true }, "no_account"],
    ["without an address", {}, "unverified"],
  ])("%s is refused, and the invitation stays", async (_, claims, reason) => {
    const { account, invite } = await startInviting();
    await invite(AccountRole.DEVELOPER);
    open.provider.people["eve"] = claims;
    expect(pathOf(await signInAs(open, "eve"))).toBe(`/sign-in?problem=${reason}`);
    expect((await account.listInvitations({})).invitations[0]?.useTime).toBeUndefined();
  });

  it("is refused when the invitation is revoked or has expired", async () => {
    const { account, invite } = await startInviting();
    const { invitation } = await invite(AccountRole.DEVELOPER);
    await account.revokeInvitation({ id: invitation!.id });
    expect(pathOf(await signInAs(open, "eve"))).toBe("/sign-in?problem=no_account");
    await invite(AccountRole.DEVELOPER);
    open.site.access.clock.advance(7 * DAY_MS);
    // By this clock a token of the provider has expired, too, so no sign-in can show it.
    expect(await findInvitationOf(open.access, "eve@other.example")).toBeUndefined();
    open.site.access.clock.advance(-1);
    expect(await findInvitationOf(open.access, "eve@other.example")).toBeDefined();
  });

  it("of the provider's domains gets the invited role in place of the default one", async () => {
    const { invite } = await startInviting({ oidc: { default_role: "viewer" } });
    open.provider.people["eve"] = { email: "eve@acme.example", email_verified: true };
    await invite(AccountRole.DEVELOPER, "eve@acme.example");
    const browser = new CookieBrowser();
    await signInAs(open, "eve", { browser });
    expect((await sessionOf(browser))?.account?.role).toBe(AccountRole.DEVELOPER);
  });

  it("gets the role of the groups where they decide, and none without such a group", async () => {
    const oidc = { roles: { ops: "administrator", staff: "viewer" }, default_role: "none" };
    await start({ oidc });
    open.provider.people["ada"] = { ...ADA, groups: ["ops"] };
    await signInAs(open, "ada");
    const inviter = { actorId: undefined, network: undefined };
    await createInvitation(open.access, { email: "eve@other.example", role: "owner", ...inviter });
    open.provider.people["eve"] = { email: "eve@other.example", email_verified: true, groups: [] };
    expect(pathOf(await signInAs(open, "eve"))).toBe("/sign-in?problem=no_role");
    open.provider.people["eve"] = { email: "eve@other.example", email_verified: true, groups: ["staff"] };
    const browser = new CookieBrowser();
    expect(pathOf(await signInAs(open, "eve", { browser }))).toBe("/");
    expect((await sessionOf(browser))?.account?.role).toBe(AccountRole.VIEWER);
  });

  it("as an owner takes over the default account of a new installation", async () => {
    await start({ signIn: { password: false } });
    open.provider.people["ada"] = { email: "ada@other.example", email_verified: true };
    const inviter = { actorId: undefined, network: undefined };
    await createInvitation(open.access, { email: "ada@other.example", role: "owner", ...inviter });
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    expect((await sessionOf(browser))?.account).toMatchObject({ id: DEFAULT_ACCOUNT_ID, role: AccountRole.OWNER });
    expect(await open.access.store.listInvitations()).toEqual([]);
  });

  it("needs an address, and no closed sign-up", async () => {
    const { account } = await startInviting();
    const refused = await errorOf(account.createInvitation({ role: AccountRole.DEVELOPER }));
    expect([refused.code, refused.message]).toEqual([Code.InvalidArgument, expect.stringContaining("Acme ID")]);
    await createInvitation(open.access, {
      email: "eve@other.example",
      role: "developer",
      actorId: undefined,
      network: undefined,
    });
    expect(await findInvitationOf({ ...open.access, signUp: "closed" }, "eve@other.example")).toBeUndefined();
  });
});

describe("an existing account with the same address", () => {
  const password = { email: "ada@acme.example", password: PASSWORD, name: "Eve" };

  /** Makes an account with a password, as before the provider was configured. */
  async function withPassword(email: string): Promise<string> {
    const passwordHash = await open.access.passwords.hash(PASSWORD, { known: "acct_ada" });
    const account = { ...(await open.access.store.list())[0]!, id: "acct_eve", email, passwordHash };
    await open.access.store.insert({ ...account, role: "developer", name: "Eve" });
    return account.id;
  }

  it("is linked where the domain is configured, and loses its password and sessions", async () => {
    await start();
    const id = await withPassword("ada@acme.example");
    const hash = { accountId: id, createdAtMs: open.access.clock.now(), lastSeenAtMs: open.access.clock.now() };
    await open.access.store.insertSession({
      ...hash,
      hash: "h",
      authenticatedAtMs: 0,
      method: "link",
      network: undefined,
      browser: undefined,
    });
    const browser = new CookieBrowser();
    expect(pathOf(await signInAs(open, "ada", { browser }))).toBe("/");
    expect((await sessionOf(browser))?.account?.id).toBe(id);
    expect(await open.access.store.find(id)).toMatchObject({ passwordHash: undefined });
    expect(await open.access.store.findSession("h")).toBeUndefined();
    expect(actionsOf()).toEqual(["identity_linked", "signed_in"]);
  });

  it("is not linked where it is not", async () => {
    await start({ oidc: { domains: ["other.example"] } });
    await withPassword("ada@acme.example");
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=not_linked");
    expect(refusals()).toMatchObject([{ accountId: "acct_eve", details: { reason: "not_linked" } }]);
    await open.site.browser().session.signIn(password);
  });

  it("loses its password and sessions where an administrator links it", async () => {
    await start({ oidc: { domains: ["other.example"] } });
    const id = await withPassword("ada@acme.example");
    const { session } = open.site.browser();
    await session.signIn(password);
    await linkIdentity(open.access, (await open.access.store.find(id))!, {
      issuer: open.provider.issuer,
      subject: "ada",
    });
    expect((await session.getSession({})).session).toBeUndefined();
    expect((await errorOf(open.site.browser().session.signIn(password))).code).toBe(Code.Unauthenticated);
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    expect((await sessionOf(browser))?.account?.id).toBe(id);
  });

  it("is not given to the next person who has the address", async () => {
    await start();
    await signInAs(open, "ada");
    open.provider.people["grace"] = { ...ADA };
    expect(pathOf(await signInAs(open, "grace"))).toBe("/sign-in?problem=not_linked");
  });
});

describe("groups", () => {
  const oidc = {
    roles: { founders: "owner", "parley admins": "administrator", staff: "developer", auditors: "viewer" },
    default_role: "none",
  };

  it("give the role at each sign-in, the one with the most rights", async () => {
    await start({ oidc });
    open.provider.people["ada"] = { ...ADA, groups: ["staff", "parley admins"] };
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    const account = (await sessionOf(browser))!.account!;
    expect(account.id).not.toBe("acct_default");
    const { account: accounts } = open.site.browser({
      cookie: `sid=${browser.cookies.get(open.url)!.get("sid")}`,
    });
    await accounts.list({});
    open.provider.people["ada"] = { ...ADA, groups: ["staff"] };
    await signInAs(open, "ada");
    expect((await errorOf(accounts.list({}))).code).toBe(Code.PermissionDenied);
    expect(entries()).toContainEqual(
      expect.objectContaining({
        action: "role_by_groups",
        before: { role: "administrator" },
        after: { role: "developer" },
      }),
    );
  });

  it("make an owner where they are mapped to it, who takes over the default account", async () => {
    await start({ oidc });
    open.provider.people["ada"] = { ...ADA, groups: ["auditors", "founders"] };
    await signInAs(open, "ada");
    expect(await open.access.store.find("acct_default")).toMatchObject({ role: "owner", email: "ada@acme.example" });
    expect((await open.site.browser().session.getSession({})).needsOwner).toBe(false);
  });

  it("demote an owner, but not the last one", async () => {
    await start({ oidc });
    open.provider.people["ada"] = { ...ADA, groups: ["founders"] };
    open.provider.people["bob"] = { email: "bob@acme.example", email_verified: true, groups: ["founders"] };
    await signInAs(open, "ada");
    await signInAs(open, "bob");
    open.provider.people["ada"] = { ...ADA, groups: ["auditors"] };
    open.provider.people["bob"] = { ...open.provider.people["bob"], groups: ["staff"] };
    await signInAs(open, "ada");
    expect(pathOf(await signInAs(open, "bob"))).toBe("/");
    const accounts = await open.access.store.list();
    expect(accounts.map(({ email, role }) => [email, role])).toEqual([
      ["ada@acme.example", "viewer"],
      ["bob@acme.example", "owner"],
    ]);
    expect(actionsOf().filter((action) => action === "role_by_groups")).toHaveLength(1);
  });

  it("without a role refuse the sign-in, and end the sessions from before", async () => {
    await start({ oidc });
    open.provider.people["ada"] = { ...ADA, groups: ["staff"] };
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    open.provider.people["ada"] = { ...ADA, groups: ["constructor", "__proto__"] };
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=no_role");
    expect(await sessionOf(browser)).toBeUndefined();
  });

  it("that do not fit in the token are not taken for none", async () => {
    await start({ oidc: { ...oidc, default_role: "developer" } });
    open.provider.people["ada"] = { ...ADA, _claim_names: { groups: "src1" } };
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=too_many_groups");
  });

  it("change nothing where no role is configured", async () => {
    await start();
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    const { id } = (await sessionOf(browser))!.account!;
    await open.access.store.update(id, { role: "administrator" });
    await signInAs(open, "ada");
    expect(await open.access.store.find(id)).toMatchObject({ role: "administrator" });
  });
});

describe("passwords beside the provider", () => {
  const eve = { password: PASSWORD, name: "Eve" };

  it("are refused for addresses of its domains, with and without an account", async () => {
    await start();
    const { session } = open.site.browser();
    const refusal = await errorOf(session.signUp({ ...eve, email: "eve@ACME.example" }));
    expect([refusal.code, refusal.rawMessage]).toEqual([
      Code.PermissionDenied,
      "Addresses of acme.example do not sign in with a password here. Sign in with Acme ID.",
    ]);
    expect((await errorOf(session.signIn({ ...eve, email: "ada@acme.example" }))).code).toBe(Code.PermissionDenied);
    await session.signUp({ ...eve, email: "eve@else.example" });
  });

  it("are refused for all where it is enforced, and end the sessions that began with one", async () => {
    await start({ signIn: { password: false } });
    const { session } = open.site.browser();
    expect((await errorOf(session.signUp({ ...eve, email: "eve@else.example" }))).rawMessage).toBe(
      "Passwords are off. Sign in with Acme ID.",
    );
    expect(await session.getSession({})).toMatchObject({ providerName: "Acme ID", acceptsPasswords: false });
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    open.access.stores.exec("update sessions set method = 'password'");
    expect(await sessionOf(browser)).toBeUndefined();
  });
});

describe("what needs a fresh proof", () => {
  const confirm = { query: "?confirm=1&return=%2Fconfirmed" };
  const createKey = async (browser: CookieBrowser): Promise<unknown> => {
    const cookie = `sid=${browser.cookies.get(open.url)!.get("sid")}`;
    return open.site.browser({ cookie }).key.create({ name: "k" });
  };

  it("is allowed after the provider has asked again", async () => {
    await start();
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    await createKey(browser);
    open.access.stores.exec("update sessions set authenticated_at_ms = 0");
    expect((await errorOf(createKey(browser))).rawMessage).toBe("Confirm that it is you to continue.");
    const begun = await browser.get(`${open.url}/auth/oidc/start${confirm.query}`);
    expect(Object.fromEntries(begun.location!.searchParams)).toMatchObject({ prompt: "login", max_age: "0" });
    expect(pathOf(await signInAs(open, "ada", { browser, ...confirm }))).toBe("/confirmed");
    await createKey(browser);
    expect(actionsOf()).toContain("reauthenticated");
  });

  it("is not allowed when the provider was made not to ask", async () => {
    await start();
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    open.site.access.clock.advance(11 * 60_000);
    const change = ({ searchParams }: URL): void => {
      searchParams.delete("prompt");
      searchParams.delete("max_age");
    };
    const reached = await reachCallback(open, browser, { login: "ada", query: confirm.query, change });
    expect(pathOf(await browser.get(reached.location!))).toBe("/confirmed?problem=not_asked");
    expect((await errorOf(createKey(browser))).code).toBe(Code.PermissionDenied);
  });

  it("is not allowed by another person, or without a session", async () => {
    await start();
    open.provider.people["grace"] = { ...ADA, email: "grace@acme.example" };
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    // The provider has forgotten her.
    browser.cookies.delete(open.provider.issuer);
    expect(pathOf(await signInAs(open, "grace", { browser, ...confirm }))).toBe("/confirmed?problem=other_person");
    expect(pathOf(await signInAs(open, "ada", confirm))).toBe("/confirmed?problem=other_person");
    expect(open.access.stores.rows("sessions")).toHaveLength(1);
  });

  it("needs the time from the provider, unless that is optional", async () => {
    await start({ saysAuthTime: false });
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    expect((await errorOf(createKey(browser))).code).toBe(Code.PermissionDenied);
    await open.close();
    await start({ saysAuthTime: false, oidc: { auth_time: "optional" } });
    const other = new CookieBrowser();
    await signInAs(open, "ada", { browser: other });
    await createKey(other);
  });
});

describe("a sign-out", () => {
  it("ends the session, and leads to the end of the provider's", async () => {
    await start();
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    const known = open.site.browser({ cookie: `sid=${browser.cookies.get(open.url)!.get("sid")}` });
    const { providerUrl } = await known.session.signOut({});
    const url = new URL(providerUrl);
    expect(url.origin).toBe(open.provider.issuer);
    expect(url.searchParams.get("post_logout_redirect_uri")).toBe(`${open.url}/sign-in`);
    expect(url.searchParams.get("id_token_hint")).toMatch(/^ey/);
    expect((await known.session.getSession({})).session).toBeUndefined();
    expect((await browser.get(url)).status).toBe(200);
  });

  it("works when the provider does not answer", async () => {
    await start();
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    open.site.access.clock.advance(11 * 60_000);
    open.provider.answerWith((_, response) => void response.writeHead(503).end());
    const known = open.site.browser({ cookie: `sid=${browser.cookies.get(open.url)!.get("sid")}` });
    expect((await known.session.signOut({})).providerUrl).toBe("");
    expect((await known.session.getSession({})).session).toBeUndefined();
  });
});

describe("a provider that cannot be reached", () => {
  it("leads to a clear page within seconds, and works again when it answers", async () => {
    await start();
    open.provider.answerWith(() => undefined);
    const beganMs = performance.now();
    const both = await Promise.all([signInAs(open, "ada"), signInAs(open, "ada")]);
    expect(both.map(pathOf)).toEqual(["/sign-in?problem=unreachable", "/sign-in?problem=unreachable"]);
    expect(performance.now() - beganMs).toBeLessThan(8_000);
    // One request for both.
    expect(open.provider.asked).toHaveLength(1);
    open.provider.answerWith((_, response) => void response.end("x".repeat(2 * 1024 * 1024)));
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=unreachable");
    open.provider.answerWith((_, response) => {
      for (let count = 0; count < 17; count += 1) response.writeProcessing();
      response.writeHead(404).end();
    });
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=unreachable");
    open.provider.answerWith(undefined);
    expect(pathOf(await signInAs(open, "ada"))).toBe("/");
  });

  it("that refuses the client is a problem of the configuration, whose secret is not shown", async () => {
    await start({ oidc: { client_secret: "another-secret-than-the-client-has" } });
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=misconfigured");
    expect(open.logged).toMatchObject([{ reason: "misconfigured", cause: expect.stringContaining("invalid_client") }]);
    expect(JSON.stringify([open.logged, open.site.access.logged])).not.toContain("another-secret");
  });

  it("that ends connections is distinguished from a refusal", async () => {
    const server = createServer((socket) => socket.destroy()).listen(0, "127.0.0.1");
    await once(server, "listening");
    const { port } = server.address() as { port: number };
    await start({ oidc: { issuer: `http://127.0.0.1:${port}` } });
    expect(pathOf(await signInAs(open, "ada"))).toBe("/sign-in?problem=unreachable");
    server.close();
  });
});

describe("a link of the command line", () => {
  it("signs in once, also where passwords are off", async () => {
    await start({ signIn: { password: false } });
    await signInAs(open, "ada");
    const account = (await open.access.store.findByEmail("ada@acme.example"))!;
    const token = await createSignInLink(open.access, account);
    const { session, key } = open.site.browser();
    expect(await session.signInByLink({ token })).toMatchObject({ session: { byProvider: false } });
    await key.create({ name: "k" });
    expect((await errorOf(open.site.browser().session.signInByLink({ token }))).code).toBe(Code.Unauthenticated);
    const late = await createSignInLink(open.access, account);
    open.site.access.clock.advance(10 * 60_000);
    expect((await errorOf(session.signInByLink({ token: late }))).code).toBe(Code.Unauthenticated);
    const unused = await createSignInLink(open.access, account);
    await open.access.store.update(account.id, { disabledAtMs: 1 });
    expect((await errorOf(session.signInByLink({ token: unused }))).code).toBe(Code.Unauthenticated);
    expect((await errorOf(session.signInByLink({ token: "short" }))).code).toBe(Code.InvalidArgument);
  });
});

describe("sessions", () => {
  it("have the length and the idle time of the settings", async () => {
    await start({ signIn: { session_hours: 2, idle_minutes: 30 } });
    const browser = new CookieBrowser();
    const done = await signInAs(open, "ada", { browser });
    expect(done.headers.getSetCookie().join()).toContain("Max-Age=7200");
    const { expireTime, account } = (await sessionOf(browser))!;
    expect(Number(expireTime!.seconds) * 1000 - open.access.clock.now()).toBeCloseTo(7_200_000, -4);
    expect(account?.email).toBe("ada@acme.example");
    for (let minutes = 0; minutes < 100; minutes += 25) {
      open.site.access.clock.advance(25 * 60_000);
      expect(await sessionOf(browser)).toBeDefined();
    }
    open.site.access.clock.advance(20 * 60_000);
    expect(await sessionOf(browser)).toBeUndefined();
    await signInAs(open, "ada", { browser });
    open.site.access.clock.advance(30 * 60_000);
    expect(await sessionOf(browser)).toBeUndefined();
  });

  it("end where the provider is not configured any more", async () => {
    await start();
    const browser = new CookieBrowser();
    await signInAs(open, "ada", { browser });
    const id = browser.cookies.get(open.url)!.get("sid")!;
    const signIn = { ...open.access.signIn, provider: undefined };
    expect(await findSession({ ...open.access, signIn }, id)).toBeUndefined();
    expect(await findSession(open.access, id)).toBeDefined();
  });
});

describe("the pages of the sign-in", () => {
  it("are GET only, for the own host, and absent without a provider", async () => {
    await start();
    expect((await open.site.send("/auth/oidc/start", { method: "POST" })).status).toBe(405);
    const foreign = { method: "GET", headers: { host: "evil.example" } };
    expect((await open.site.send("/auth/oidc/start", foreign)).status).toBe(403);
  });
});
