import { once } from "node:events";
import { createServer, type Server } from "node:http";
import type { AddressInfo } from "node:net";
import type { BrowserContext, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openKeys, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

/** Attack pages by path. */
const PAGES: Readonly<Record<string, (target: string) => string>> = {
  // A text/plain form can produce a body that looks like JSON.
  "/form": (target) =>
    `<form method="post" enctype="text/plain" action="${target}">` +
    `<input name='{"name":"a forgery","x":"' value='"}'><button>Win</button></form>`,
  "/frame": (target) => `<iframe src="${target}"></iframe>`,
};

let site: Site;
let victim: Visit;
let attacker: Server;

beforeAll(async () => {
  site = await startSite({ config: { sign_up: "open" } });
  victim = await site.visit("/");
  await setUp(victim.page);
  // Server of another origin. For browsers, 127.0.0.1 with another port is the same site, and localhost is another
  // site.
  attacker = createServer((request, response) => {
    const { pathname, searchParams } = new URL(request.url!, "http://attacker");
    const target = site.product.url + (searchParams.get("target") ?? "");
    response.writeHead(200, { "content-type": "text/html" }).end(PAGES[pathname]?.(target) ?? "<p>Hello</p>");
  });
  attacker.listen(0);
  await once(attacker, "listening");
});
afterAll(async () => {
  attacker?.close();
  await site?.close();
});

/** Opens a page of the other origin in the victim's browser. */
async function openAttackPage(host: string, path = "/"): Promise<Page> {
  const page = await victim.page.context().newPage();
  await page.goto(`http://${host}:${(attacker.address() as AddressInfo).port}${path}`);
  return page;
}

/** Calls a service from a page's script with the browser's cookies. Returns the status. */
function call(page: Page, path: string, body: object = {}): Promise<number | string> {
  const url = `${site.product.url}/parley.console.v1.${path}`;
  return page.evaluate(
    ([to, json]) =>
      fetch(to, { method: "POST", headers: { "content-type": "application/json" }, credentials: "include", body: json })
        .then(({ status }) => status)
        .catch((reason: unknown) => String(reason)),
    [url, JSON.stringify(body)] as const,
  );
}

const sessionCookie = async (context: BrowserContext) =>
  (await context.cookies()).find(({ name }) => name.endsWith("sid"));

describe("pages of other origins", () => {
  it.each(["127.0.0.1", "localhost"])("cannot call the services with the victim's session, from %s", async (host) => {
    const page = await openAttackPage(host);
    // The preflight request is not allowed.
    expect(await call(page, "KeyService/Create", { name: "a forgery" })).toBe("TypeError: Failed to fetch");
    await page.close();
  });

  it.each(["127.0.0.1", "localhost"])("cannot post a form to the services, from %s", async (host) => {
    const page = await openAttackPage(host, "/form?target=/parley.console.v1.KeyService/Create");
    const answered = page.waitForResponse((response) => response.url().includes("/parley.console.v1."));
    await page.getByRole("button").click();
    expect((await answered).status()).toBe(403);
    await page.close();
  });

  it("have not created a key", async () => {
    await victim.page.reload();
    await victim.page.getByText("first key").waitFor();
    expect(await victim.page.getByText("a forgery").count()).toBe(0);
  });

  it.each(["/", "/keys", "/sign-in", "/sign-up"])("cannot show %s in a frame", async (path) => {
    const page = await openAttackPage("127.0.0.1", `/frame?target=${path}`);
    // The browser shows its own error page instead.
    await expect.poll(() => page.frames()[1]?.url()).toMatch(/^chrome-error:/);
    await page.close();
  });
});

describe("a session", () => {
  it("is an HttpOnly cookie with SameSite=Lax", async () => {
    const cookie = await sessionCookie(victim.page.context());
    expect(cookie).toMatchObject({ httpOnly: true, sameSite: "Lax", path: "/" });
    expect(await victim.page.evaluate("document.cookie")).toBe("");
  });

  it("gets a new cookie at sign-in (no session fixation)", async () => {
    const before = await sessionCookie(victim.page.context());
    const { page } = await site.visit("/sign-in");
    const planted = { ...before!, value: "A".repeat(43) };
    await page.context().addCookies([planted]);
    await page.reload();
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    const after = await sessionCookie(page.context());
    expect(after?.value).not.toBe(planted.value);
    expect(after?.value).not.toBe(before?.value);
    // The planted cookie has not become a session.
    await page.context().addCookies([planted]);
    expect(await call(page, "KeyService/List")).toBe(401);
    await page.context().close();
  });

  it("ends for all tabs at sign-out, also with a saved cookie", async () => {
    const { page } = await site.visit("/sign-in");
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    const kept = (await sessionCookie(page.context()))!;
    const tab = await page.context().newPage();
    await tab.goto(`${site.product.url}/usage`);
    await tab.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await call(tab, "KeyService/List")).toBe(401);
    await page.context().addCookies([kept]);
    expect(await call(tab, "KeyService/List")).toBe(401);
    await page.context().close();
  });

  it("leaves no pages in the browser's back/forward cache", async () => {
    const { page } = await site.visit("/sign-in");
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await openKeys(page);
    await page.getByText("first key").waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.goto(`${site.product.url}/healthz`);
    await page.goBack();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await page.getByText("first key").count()).toBe(0);
    await page.context().close();
  });
});
