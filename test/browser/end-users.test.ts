import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

const HOSTILE = "<img src=x onerror=alert(1)>";
const MODEL = "alpha-haiku-4.5";

let site: Site;
let visit: Visit;
let page: Page;

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
});
afterAll(() => site?.close());

/** Makes a key by the dashboard's service, with a budget for each end user and session. */
async function createKey(): Promise<string> {
  const attributionLimits = {
    endUserBudgetMicroUsd: "500000",
    endUserBudgetPeriod: "BUDGET_PERIOD_MONTH",
    sessionBudgetMicroUsd: "2000000",
  };
  return page.evaluate(
    async (body) => {
      const headers = { "content-type": "application/json" };
      const response = await fetch("/parley.console.v1.KeyService/Create", { method: "POST", headers, body });
      return ((await response.json()) as { secret: string }).secret;
    },
    JSON.stringify({ name: "shop", attributionLimits }),
  );
}

async function ask(apiKey: string, user: string): Promise<number> {
  const client = new OpenAI({ apiKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  const headers = { "parley-session-id": `run of ${user.length}` };
  const messages = [{ role: "user" as const, content: "How old is it?" }];
  const asked = client.chat.completions.create({ model: MODEL, user, messages, max_tokens: 50 }, { headers });
  return asked.then(
    () => 200,
    (error: InstanceType<typeof OpenAI.APIError>) => Number(error.status),
  );
}

const row = (name: string) => page.getByRole("row").filter({ hasText: name });

// The steps depend on each other.
describe("the end users of a key", () => {
  let secret = "";

  it("are listed with what they have spent of their budget, and found by name", async () => {
    secret = await createKey();
    for (const user of ["ann", "ann", "ben", HOSTILE]) expect(await ask(secret, user)).toBe(200);
    await page.goto(`${site.product.url}/keys`);
    await page.getByRole("link", { name: "Spending of the end users of shop" }).click();
    await page.getByText("3 end users, highest spending first").waitFor();
    await row(HOSTILE).waitFor();
    expect(await page.getByRole("table").locator("img").count()).toBe(0);
    expect(await page.getByRole("row").nth(1).innerText()).toContain("ann");
    expect(await row("ben").innerText()).toContain("$0.50");
    await page.getByLabel("Find end users").fill("BE");
    await page.getByText("1 end user, highest spending first").waitFor();
    expect(await page.getByRole("row").count()).toBe(2);
    await page.getByLabel("Find end users").fill("");
    await row("ann").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("get a budget of their own, which is in force at once, until it is the key's again", async () => {
    await page.getByRole("button", { name: "Change the budget of ben" }).click();
    await page.getByLabel("Budget (USD)").fill("much");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByText("must be an amount").waitFor();
    await page.getByLabel("Budget (USD)").fill("0");
    await page.getByRole("button", { name: "Save" }).click();
    await row("ben").getByText("$0.00*").waitFor();
    expect([await ask(secret, "ben"), await ask(secret, "ann")]).toEqual([429, 200]);
    await page.getByRole("button", { name: "Change the budget of ben" }).click();
    await page.getByLabel("Budget (USD)").fill("");
    await page.getByRole("button", { name: "Save" }).click();
    await page.getByRole("dialog", { name: "Change the budget" }).waitFor({ state: "detached" });
    await row("ben").getByText("$0.00*").waitFor({ state: "detached" });
    expect(await ask(secret, "ben")).toBe(200);
  });

  it("are stopped and let in again", async () => {
    await page.getByRole("button", { name: "Stop ann" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Stop end user" }).click();
    await row("ann").getByText("Stopped").waitFor();
    await expect.poll(() => ask(secret, "ann"), { timeout: 8_000 }).toBe(403);
    await page.getByRole("button", { name: "End the stop of ann" }).click();
    await row("ann").getByText("Stopped").waitFor({ state: "detached" });
    await expect.poll(() => ask(secret, "ann"), { timeout: 8_000 }).toBe(200);
  });

  it("have sessions, with budgets of theirs", async () => {
    await page.getByText("Sessions", { exact: true }).click();
    await row("run of 3").waitFor();
    expect(await row("run of 3").innerText()).toContain("$2.00");
    await page.getByRole("link", { name: "Requests of run of 3" }).click();
    await page.getByRole("heading", { name: "Requests" }).waitFor();
    expect(new URL(page.url()).searchParams.get("session")).toBe("run of 3");
  });
});
