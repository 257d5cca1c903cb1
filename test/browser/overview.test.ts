import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite({ config: { sign_up: "open" } });
  visit = await site.visit("/");
  await setUp(visit.page);
});
afterAll(() => site?.close());

const openOverview = async (): Promise<void> => {
  await visit.page.goto(site.product.url);
  await visit.page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
};

describe("the home page", () => {
  it("begins with the steps of the first day, which end or can be hidden", async () => {
    const { page } = visit;
    await openOverview();
    const steps = page.getByRole("region", { name: "First steps" });
    await steps.getByText("1 of 4 done.").waitFor();
    const client = new OpenAI({ apiKey: site.product.firstKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
    const messages = [{ role: "user", content: "Hello" }] as const;
    const stream = await client.chat.completions.create({
      model: "alpha-haiku-4.5",
      messages: [...messages],
      stream: true,
    });
    for await (const _ of stream);
    await client.chat.completions.create({ model: "nothing", messages: [...messages] }).catch(() => undefined);
    await expect
      .poll(async () => {
        await openOverview();
        return steps.innerText();
      })
      .toContain("2 of 4 done.");
    await steps.getByRole("button", { name: "Hide these steps" }).click();
    await steps.waitFor({ state: "detached" });
    await openOverview();
    await page.getByRole("heading", { name: "Last 24 hours" }).waitFor();
    expect(await steps.count()).toBe(0);
  });

  it("shows requests, the share of failed and refused ones, and the time to the first token", async () => {
    const { page } = visit;
    const tile = (name: string) => page.locator("dl > div", { has: page.getByRole("link", { name, exact: true }) });
    await expect
      .poll(async () => {
        await openOverview();
        return tile("Error rate").innerText();
      })
      .toMatch(/50%\s+0 failed, 1 refused/);
    expect(await tile("Requests").innerText()).toMatch(/Requests\s+2\s/);
    expect(await tile("Time to first token, p95").innerText()).toMatch(/\d+ ms|\d\.\d s/);
    // Nothing is drawn of the 24 hours before, which had no request.
    expect(await tile("Requests").getByRole("img").getAttribute("aria-label")).toBe("Requests per hour: peak 2");
    await tile("Error rate").getByRole("link").click();
    await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    await page.getByRole("region", { name: "Usage by status" }).getByText("Model not found").waitFor();
  });

  it("has no accessibility violation, and causes no browser errors", async () => {
    await openOverview();
    await visit.page.getByRole("heading", { name: "Last 24 hours" }).waitFor();
    expect(await findBarriersEverywhere(visit.page)).toEqual([]);
    expect(visit.complaints).toEqual([]);
  });

  it("shows members their own account only", async () => {
    const { page } = await site.visit("/sign-up");
    await page.getByLabel("E-mail").fill("bob@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Last 24 hours" }).waitFor();
    expect(await page.getByRole("main").innerText()).toMatch(/Requests\s+0\s/);
    expect(await page.getByText("Unhealthy targets").count()).toBe(0);
    expect(await page.getByText("First steps").count()).toBe(0);
  });
});
