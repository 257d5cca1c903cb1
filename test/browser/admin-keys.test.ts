import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { PASSWORD, readSecret, setUp, type Site, startSite, type Visit } from "./support/site.ts";

let site: Site;
let ada: Visit;
let bob: Visit;
beforeAll(async () => {
  site = await startSite({ config: { sign_up: "open", alerts: { allow_private: true } } });
  ada = await site.visit("/");
  await setUp(ada.page);
  bob = await site.visit("/sign-up");
  await bob.page.getByLabel("E-mail").fill("bob@example.com");
  await bob.page.getByLabel("Name (optional)").fill("Bob");
  await bob.page.getByLabel("Password").fill(PASSWORD);
  await bob.page.getByRole("button", { name: "Create account" }).click();
  await bob.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
});
afterAll(() => site?.close());

async function go({ page }: Visit, path: string, heading: string): Promise<Page> {
  await page.goto(site.product.url + path);
  await page.getByRole("heading", { name: heading, exact: true, level: 1 }).waitFor();
  return page;
}

const closed = (page: Page) => page.getByRole("dialog").first().waitFor({ state: "detached" });

describe("in Administration an owner", () => {
  it("makes a key for a program, sees it used and revokes it", async () => {
    const page = await go(ada, "/admin/keys", "Administration keys");
    await page.getByRole("button", { name: "Create key" }).click();
    await page.getByLabel("Name", { exact: true }).fill("terraform");
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    await page.getByText("choose at least one").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByLabel("accounts.read").check();
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    const secret = await readSecret(page);
    const list = () =>
      fetch(`${site.product.url}/parley.console.v1.AccountService/List`, {
        method: "POST",
        headers: { authorization: `Bearer ${secret}`, "content-type": "application/json" },
        body: "{}",
      });
    expect((await list()).status).toBe(200);
    await page.reload();
    const item = page.getByRole("table", { name: "Administration keys" }).getByRole("row", { name: /terraform/ });
    await item.getByText("just now").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Revoke terraform" }).click();
    await page.getByRole("button", { name: "Revoke key" }).click();
    await closed(page);
    await item.getByText("Revoked", { exact: true }).waitFor();
    expect((await list()).status).toBe(401);
  });

  it("makes a role and gives it to somebody, who sees the pages that it allows", { timeout: 120_000 }, async () => {
    const page = await go(ada, "/admin/roles", "Roles");
    await page.getByText("No custom roles").waitFor();
    await page.getByRole("button", { name: "Create role" }).click();
    await page.getByLabel("Name", { exact: true }).fill("Auditor");
    await page.getByLabel("audit.read").check();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Save" }).click();
    await closed(page);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await go(ada, "/admin/accounts", "Accounts");
    await page.getByRole("button", { name: "Edit Bob" }).click();
    await page.getByLabel("Role").selectOption("Auditor");
    await page.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await page.getByRole("row").filter({ hasText: "Bob" }).getByText("Auditor").waitFor();

    await bob.page.reload();
    await bob.page.getByRole("link", { name: "Administration", exact: true }).click();
    await bob.page.getByRole("heading", { name: "Audit log", level: 1 }).waitFor();
    await bob.page.getByRole("table", { name: "Audit log" }).getByText("Role created").waitFor();
    const places = bob.page.getByRole("navigation", { name: "Administration" }).getByRole("link");
    expect(await places.allTextContents()).toEqual(["Audit log"]);
    await go(bob, "/admin/accounts", "Accounts");
    await bob.page.getByText("Your role does not allow this page").waitFor();

    await go(ada, "/admin/roles", "Roles");
    await page.getByRole("button", { name: "Remove Auditor" }).click();
    await page.getByRole("button", { name: "Remove role" }).click();
    await page.getByRole("alert").filter({ hasText: "in use by 1 account or invitation" }).waitFor();
  });

  it("adds a receiver of the audit log, sees what waits for it, and removes it", async () => {
    const page = await go(ada, "/admin/audit", "Audit log");
    await page.getByRole("link", { name: "Receivers" }).click();
    await page.getByText("No receivers").waitFor();
    await page.getByRole("button", { name: "Add receiver" }).click();
    await page.getByLabel("Address").fill("nonsense");
    await page.getByRole("dialog").getByRole("button", { name: "Add receiver" }).click();
    await page.locator("[aria-invalid]").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByLabel("Address").fill("http://127.0.0.1:1/audit");
    await page.getByRole("dialog").getByRole("button", { name: "Add receiver" }).click();
    expect(await readSecret(page)).toMatch(/^whsec_/);
    await page.getByText("It could not be reached (ECONNREFUSED).").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Remove http://127.0.0.1:1" }).click();
    await page.getByRole("button", { name: "Remove receiver" }).click();
    await closed(page);
    await page.getByText("No receivers").waitFor();
  });
});
