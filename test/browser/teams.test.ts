import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { PASSWORD, readSecret, setUp, type Site, startSite, type Visit } from "./support/site.ts";

let site: Site;
let ada: Visit;
let bob: Visit;
let cleo: Visit;
let secret = "";

beforeAll(async () => {
  site = await startSite({ config: { sign_up: "open" } });
  ada = await site.visit("/");
  await setUp(ada.page);
  bob = await signUp("Bob");
  cleo = await signUp("Cleo");
});
afterAll(() => site?.close());

async function signUp(name: string): Promise<Visit> {
  const visit = await site.visit("/sign-up");
  const { page } = visit;
  await page.getByLabel("E-mail").fill(`${name.toLowerCase()}@example.com`);
  await page.getByLabel("Name (optional)").fill(name);
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create account" }).click();
  await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
  return visit;
}

async function go({ page }: Visit, path: string, heading: string): Promise<void> {
  await page.goto(site.product.url + path);
  await page.getByRole("heading", { name: heading, exact: true, level: 1 }).waitFor();
}

const row = (page: Page, table: string, text: string) =>
  page.getByRole("table", { name: table }).getByRole("row").filter({ hasText: text });

const member = (page: Page, text: string) =>
  page.getByRole("list", { name: "Members" }).getByRole("listitem").filter({ hasText: text });

async function closed(page: Page): Promise<void> {
  await page.getByRole("dialog").first().waitFor({ state: "detached" });
}

// The steps depend on each other.
describe("a team's first day", () => {
  it("begins with an administrator who creates it, with a budget", async () => {
    const { page } = ada;
    await page.getByRole("link", { name: "Administration", exact: true }).click();
    await page.getByRole("navigation", { name: "Administration" }).getByRole("link", { name: "Teams" }).click();
    await page.getByText("No teams yet").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Create team" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Create team" }).click();
    await expect.poll(() => page.locator("input[aria-invalid]:focus").count()).toBe(1);
    await page.getByLabel("Name", { exact: true }).fill("Search");
    await page.locator("summary", { hasText: "Limits" }).click();
    await page.getByLabel("Monthly budget (USD)").fill("50");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Create team" }).click();
    await closed(page);
    await row(page, "Teams", "Search").getByText("$50.00/month").waitFor();
  });

  it("continues with its first maintainer, found by e-mail address", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Members of Search" }).click();
    await page.getByText("This team has no members.").waitFor();
    await page.getByLabel("E-mail").fill("nobody@example.com");
    await page.getByRole("button", { name: "Add" }).click();
    await page.getByText(/person who can sign in/).waitFor();
    await page.getByLabel("E-mail").fill("bob@example.com");
    await page.getByLabel("Role", { exact: true }).selectOption("Maintainer");
    await page.getByRole("button", { name: "Add" }).click();
    await member(page, "Bob").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Done" }).click();
    await closed(page);
    await expect.poll(() => row(page, "Teams", "Search").innerText()).toMatch(/Search\s+1\s/);
  });

  it("has a maintainer who adds a viewer, and a key that the team owns", async () => {
    const { page } = bob;
    await go(bob, "/account", "Account");
    await page.getByRole("button", { name: "Members of Search" }).click();
    await page.getByLabel("E-mail").fill("cleo@example.com");
    await page.getByLabel("Role", { exact: true }).selectOption("Viewer");
    await page.getByRole("button", { name: "Add" }).click();
    await member(page, "Cleo").waitFor();
    await page.getByRole("button", { name: "Done" }).click();
    await closed(page);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await go(bob, "/keys", "Keys");
    await page.getByRole("button", { name: "Create key" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill("crawler");
    await page.getByLabel("Owner").last().selectOption("Search");
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    secret = await readSecret(page);
    await row(page, "Active keys", "crawler").getByText("of Search").waitFor();
    await page.getByLabel("Owner").selectOption("Bob (you)");
    await page.getByText("No active keys").waitFor();
    await page.getByLabel("Owner").selectOption("Search");
    await row(page, "Active keys", "crawler").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("has requests and usage that its members see, and a viewer cannot change anything", async () => {
    const client = new OpenAI({ apiKey: secret, baseURL: `${site.product.url}/v1` });
    await client.chat.completions.create({ model: "alpha-haiku-4.5", messages: [{ role: "user", content: "Hi" }] });
    const { page } = cleo;
    await go(cleo, "/keys", "Keys");
    await row(page, "Active keys", "crawler").waitFor();
    expect(await page.getByRole("button", { name: "Revoke crawler" }).count()).toBe(0);
    await go(cleo, "/requests", "Requests");
    await page.getByText("No requests yet").waitFor();
    await page.getByLabel("Account").selectOption("Search");
    const request = row(page, "Requests", "alpha-haiku-4.5");
    await request.getByRole("link").first().click();
    await page.getByText("crawler").and(page.locator(":visible")).first().waitFor();
    await go(cleo, "/usage", "Usage");
    await page.getByLabel("Account").selectOption("Search");
    await expect.poll(() => page.getByRole("main").innerText()).toMatch(/Requests\s+1\b/);
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("ends for a member who is removed: the open list of requests stops", async () => {
    await go(cleo, "/requests", "Requests");
    await cleo.page.getByLabel("Account").selectOption("Search");
    await row(cleo.page, "Requests", "alpha-haiku-4.5").waitFor();
    const { page } = bob;
    await go(bob, "/account", "Account");
    await page.getByRole("button", { name: "Members of Search" }).click();
    await page.getByRole("button", { name: "Remove Cleo" }).click();
    await expect.poll(() => member(page, "Cleo").count()).toBe(0);
    await cleo.page.getByText("Live updates stopped.").waitFor();
    await go(cleo, "/keys", "Keys");
    await cleo.page.getByText("No active keys").waitFor();
  });

  it("ends for a maintainer who is offboarded: the team gets the keys, and they work", async () => {
    const { page } = bob;
    await go(bob, "/keys", "Keys");
    await page.getByRole("button", { name: "Transfer crawler" }).click();
    await page.getByLabel("New owner").selectOption("Bob (you)");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Transfer key" }).click();
    await closed(page);
    await expect.poll(() => row(page, "Active keys", "crawler").innerText()).not.toContain("of Search");
    await go(ada, "/admin/accounts", "Accounts");
    await ada.page.getByRole("button", { name: "Offboard Bob" }).click();
    await ada.page.getByLabel("Active keys (1)").selectOption("Transfer to Search");
    expect(await findBarriersEverywhere(ada.page)).toEqual([]);
    await ada.page.getByRole("dialog").getByRole("button", { name: "Offboard" }).click();
    await closed(ada.page);
    await page.reload();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await go(ada, "/keys", "Keys");
    await row(ada.page, "Active keys", "crawler").getByText("of Search").waitFor();
    const client = new OpenAI({ apiKey: secret, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
    const messages = [{ role: "user", content: "Hi" }] as const;
    const answer = () => client.chat.completions.create({ model: "alpha-haiku-4.5", messages: [...messages] });
    await expect.poll(() => answer().then(({ object }) => object, String), { timeout: 10_000 }).toBe("chat.completion");
    await go(ada, "/admin/audit", "Audit log");
    await ada.page.getByText("Account offboarded").first().waitFor();
    expect([...ada.complaints, ...bob.complaints, ...cleo.complaints]).toEqual([]);
  });

  it("takes in a person who is invited into it", async () => {
    const { page } = ada;
    await go(ada, "/admin/invitations", "Invitations");
    await page.getByRole("button", { name: "Invite", exact: true }).click();
    const dialog = page.getByRole("dialog", { name: "Create an invitation" });
    await dialog.getByLabel("Team (optional)").selectOption({ label: "Search" });
    await dialog.getByLabel("Role in the team").selectOption({ label: "Viewer" });
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Create link" }).click();
    const link = await page.getByTestId("invitation").innerText();
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByText("Developer, viewer of Search, invited by").waitFor();
    const dora = await site.visit(link.slice(site.product.url.length));
    await dora.page.getByLabel("E-mail").fill("dora@example.com");
    await dora.page.getByLabel("Password").fill(PASSWORD);
    await dora.page.getByRole("button", { name: "Create account" }).click();
    await dora.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await go(dora, "/account", "Account");
    await dora.page.getByText("Search", { exact: true }).first().waitFor();
  });
});
