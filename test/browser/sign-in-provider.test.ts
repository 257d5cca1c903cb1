import type { Page } from "playwright-core";
import { afterEach, describe, expect, it } from "vitest";
import { PROBLEMS } from "../../web/sign-in/problems.ts";
import { findFreePort } from "../support/free-port.ts";
import { type OidcProviderUnderTest, startOidcProvider } from "../support/oidc-provider.ts";
import { runProduct } from "../support/product.ts";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { openKeys, readSecret, setUp, type Site, startSite } from "./support/site.ts";

let site: Site;
let provider: OidcProviderUnderTest;
afterEach(async () => {
  await site?.close();
  await provider?.stop();
});

async function start(signIn: object = {}): Promise<void> {
  const port = await findFreePort();
  const url = `http://127.0.0.1:${port}`;
  provider = await startOidcProvider({
    redirectUris: [`${url}/auth/oidc/callback`],
    signOutUris: [`${url}/sign-in`],
  });
  const { issuer, client } = provider;
  provider.people["grace"] = { email: "grace@acme.example", email_verified: true, name: "Grace", groups: ["ops"] };
  const oidc = {
    issuer,
    client_id: client.clientId,
    client_secret: client.clientSecret,
    name: "Acme ID",
    domains: ["acme.example"],
    roles: { ops: "administrator" },
  };
  site = await startSite({ config: { http: { listen: `127.0.0.1:${port}` }, sign_in: { oidc, ...signIn } } });
}

/** Without the files that the provider's own pages lack. */
function ofParley(complaints: readonly string[]): readonly string[] {
  return complaints.filter((text) => !/^Failed to load resource: .*(ERR_NAME_NOT_RESOLVED|404)/.test(text));
}

/** Fills in the provider's form. */
async function logIn(page: Page, login: string): Promise<void> {
  await page.getByPlaceholder("Enter any login").fill(login);
  await page.getByPlaceholder("and password").fill("any");
  await page.getByRole("button", { name: "Sign-in" }).click();
}

describe("the sign-in at the provider", () => {
  it("begins and ends on the page that was asked for, and confirms in another tab", async () => {
    await start({ password: false });
    const { page, complaints } = await site.visit("/keys");
    expect(await page.getByLabel("Password").count()).toBe(0);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("link", { name: "Sign in with Acme ID" }).click();
    await logIn(page, "grace");
    await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
    expect(new URL(page.url()).pathname).toBe("/keys");
    site.forgetPasswords();
    await page.getByRole("button", { name: "Create key" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill("kept while confirming");
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    const opened = page.context().waitForEvent("page");
    await page.getByRole("link", { name: "Continue with Acme ID" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("link", { name: "Continue with Acme ID" }).click();
    const tab = await opened;
    await logIn(tab, "grace");
    await tab.getByRole("heading", { name: "Confirmed", exact: true }).waitFor();
    expect(await findBarriersEverywhere(tab)).toEqual([]);
    await tab.close();
    expect(await readSecret(page)).toMatch(/^sk_parley_/);
    await page.getByText("kept while confirming").first().waitFor();
    await page.getByRole("button", { name: "Sign out" }).click();
    await page.getByRole("button", { name: "Yes, sign me out" }).click();
    await page.getByRole("link", { name: "Sign in with Acme ID" }).waitFor();
    expect(ofParley(complaints)).toEqual([]);
  });

  it("stands beside passwords and the set-up, and says what went wrong", async () => {
    await start();
    const { page, complaints } = await site.visit("/");
    await page.getByRole("heading", { name: "Set up Parley" }).waitFor();
    await page.getByRole("link", { name: "Sign in with Acme ID" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await setUp(page, "ada@other.example");
    provider.people["eve"] = { email: "eve@other.example", email_verified: true };
    const other = await site.visit("/");
    await other.page.getByLabel("Password").waitFor();
    await other.page.getByRole("link", { name: "Sign in with Acme ID" }).click();
    await logIn(other.page, "eve");
    await other.page.getByText(PROBLEMS["no_account"]!).waitFor();
    expect(await findBarriersEverywhere(other.page)).toEqual([]);
    await other.page.getByLabel("E-mail").fill("grace@acme.example");
    await other.page.getByLabel("Password").fill("four unrelated words");
    await other.page.getByRole("button", { name: "Sign in" }).click();
    await other.page.getByText("Addresses of acme.example do not sign in with a password here").waitFor();
    await page.goto(`${site.product.url}/admin/audit`);
    await page.getByRole("table", { name: "Audit log" }).getByText("Sign-in at the provider refused").first().waitFor();
    expect([complaints, ofParley(other.complaints)]).toEqual([[], []]);
  });
});

describe("an invitation where passwords are off", () => {
  it("is made for an address, and used at the first sign-in with it", async () => {
    await start({ password: false });
    const { page, complaints } = await site.visit("/admin/invitations");
    await page.getByRole("link", { name: "Sign in with Acme ID" }).click();
    await logIn(page, "grace");
    await page.getByText("Addresses that get an account at the first sign-in with Acme ID.").waitFor();
    await page.getByRole("button", { name: "Invite" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Create invitation" }).click();
    await dialog.getByText("Is required, because Acme ID says").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await dialog.getByLabel("E-mail").fill("eve@other.example");
    await dialog.getByRole("button", { name: "Create invitation" }).click();
    await dialog.getByText("eve@other.example gets an account at the first sign-in with Acme ID").waitFor();
    expect(await dialog.getByTestId("invitation").innerText()).toBe(`${site.product.url}/sign-in`);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Done" }).click();
    provider.people["eve"] = { email: "eve@other.example", email_verified: true, name: "Eve", groups: ["ops"] };
    const other = await site.visit("/");
    await other.page.getByRole("link", { name: "Sign in with Acme ID" }).click();
    await logIn(other.page, "eve");
    await other.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await page.reload();
    await page.getByRole("list", { name: "Invitations" }).getByText(/^Used/).waitFor();
    expect([ofParley(complaints), ofParley(other.complaints)]).toEqual([[], []]);
  });
});

describe("the sign-in by the command line", () => {
  it("signs an administrator in by a link, while the provider does not answer", async () => {
    await start({ password: false });
    const first = await site.visit("/");
    await first.page.getByRole("link", { name: "Sign in with Acme ID" }).click();
    await logIn(first.page, "grace");
    await first.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    provider.answerWith((_, response) => void response.writeHead(503).end());
    const { url } = site.product;
    const command = runProduct(["accounts", "sign-in-link", "grace@acme.example"], site.product);
    await command.ending;
    const { stdout, stderr } = command.output;
    expect(stderr).toBe("");
    expect(stdout).toMatch(/#link=[\w-]{43}\n$/);
    const { page } = await site.visit(stdout.trim().slice(url.length));
    await page.getByRole("heading", { name: "Sign in by link" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    expect(page.url()).not.toContain("link=");
    await openKeys(page);
    const again = await site.visit(stdout.trim().slice(url.length));
    await again.page.getByRole("button", { name: "Sign in" }).click();
    await again.page.getByText("This link is not valid").waitFor();
  });
});
