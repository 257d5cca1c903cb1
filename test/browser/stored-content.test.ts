import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openKeys, readSecret, setUp, type Site, startSite, type Visit } from "./support/site.ts";

const HOSTILE = "<img src=x onerror=alert(1)>";
const MODEL = "alpha-haiku-4.5";

let site: Site;
let visit: Visit;
let page: Page;
let secret = "";

beforeAll(async () => {
  site = await startSite({ config: { content: { store_days: 3 } } });
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
});
afterAll(() => site?.close());

async function ask(apiKey: string): Promise<string> {
  const client = new OpenAI({ apiKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  const { id } = await client.chat.completions.create({
    model: MODEL,
    temperature: 0.5,
    messages: [
      { role: "system", content: "Be brief." },
      { role: "user", content: `How old is it? ${HOSTILE} ![x](https://example.com/x.png)` },
    ],
  });
  return id;
}

const panel = () => page.getByRole("region", { name: "Prompt and answer" });

// The steps depend on each other.
describe("stored prompts and answers", () => {
  it("are turned on for a key by an administrator", async () => {
    await page.getByRole("button", { name: "Create key" }).first().click();
    await page.getByLabel("Name", { exact: true }).fill("storing");
    await page.getByText("Encrypted, kept for 3 days").waitFor();
    await page.getByLabel("Store prompts and answers").check();
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    secret = await readSecret(page);
    const row = page.getByRole("row").filter({ hasText: "storing" });
    await row.getByText("Stores prompts and answers").waitFor();
    await row.getByRole("button", { name: "Edit storing" }).click();
    expect(await page.getByLabel("Store prompts and answers").isChecked()).toBe(true);
    await page.keyboard.press("Escape");
  });

  it("are shown with the request on demand, as plain text", async () => {
    const id = await ask(secret);
    await page.goto(`${site.product.url}/requests/${id}`);
    await page.getByText("Prompts and responses are stored only for keys that store them.").waitFor();
    expect(await page.getByText("How old is it?").count()).toBe(0);
    await panel().getByRole("button", { name: "Show prompt and answer" }).click();
    const prompt = panel().getByRole("list", { name: "Prompt" });
    await prompt.getByText(`How old is it? ${HOSTILE} ![x](https://example.com/x.png)`).waitFor();
    await prompt.getByText("Be brief.").waitFor();
    expect((await panel().getByRole("list", { name: "Answer" }).innerText()).length).toBeGreaterThan(20);
    expect(await panel().locator("img").count()).toBe(0);
    await panel().getByText("Parameters and tools").first().click();
    await panel().getByText('"temperature": 0.5').waitFor();
  });

  it("are opened in the playground, with the parameters", async () => {
    await page.getByRole("link", { name: "Open in playground" }).click();
    await page.getByRole("heading", { name: "Playground" }).waitFor();
    await page.getByText("How old is it?").waitFor();
    expect(await page.getByLabel("Instructions for the model").inputValue()).toBe("Be brief.");
    expect(new URL(page.url()).searchParams.get("model")).toBe(MODEL);
    expect(await page.getByLabel("Temperature").inputValue()).toBe("0.5");
    await page.getByRole("button", { name: "Run", exact: true }).click();
    // The conversation ends with an answer now.
    await page.getByRole("button", { name: "Send", exact: true }).waitFor();
  });

  it("have an entry of the audit log for each reading", async () => {
    await page.goto(`${site.product.url}/admin/audit`);
    await page.getByRole("row").filter({ hasText: "Stored prompt and answer read" }).first().waitFor();
    expect(await page.getByRole("row").filter({ hasText: "Stored prompt and answer read" }).count()).toBe(1);
  });

  it("are not stored once it is turned off, and the link opens the model alone", async () => {
    await openKeys(page);
    await page.getByRole("button", { name: "Edit storing" }).click();
    await page.getByLabel("Store prompts and answers").uncheck();
    await page.getByRole("dialog").getByRole("button", { name: "Save" }).click();
    await page.getByText("Stores prompts and answers").waitFor({ state: "detached" });
    const id = await ask(secret);
    await page.goto(`${site.product.url}/requests/${id}`);
    await panel().getByRole("button", { name: "Show prompt and answer" }).click();
    await panel().getByText("Nothing is stored of this request").waitFor();
    await page.getByRole("link", { name: "Open in playground" }).click();
    await page.getByRole("heading", { name: "Playground" }).waitFor();
    expect(await page.getByLabel("Instructions for the model").inputValue()).toBe("");
    expect(visit.complaints).toEqual([]);
  });
});
