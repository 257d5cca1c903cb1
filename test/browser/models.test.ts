import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, setUp, type Site, startSite, type Visit } from "./support/site.ts";

const HOSTILE = `<img src=x onerror="document.title='pwned'">\u202Eevil`;

/** Configuration with 300 models. */
const MANY = Object.fromEntries(
  Array.from({ length: 300 }, (_, index) => [
    `family/model-${index}`,
    { provider: "alpha", upstream_model: `upstream-${index}`, description: index === 7 ? HOSTILE : `Number ${index}` },
  ]),
);

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite({ config: { models: MANY, breaker: { open_ms: 60_000, max_open_ms: 60_000 } } });
  visit = await site.visit("/");
  await setUp(visit.page);
});
afterAll(() => site?.close());

const table = () => visit.page.getByRole("table", { name: "Models", exact: true });
/** The rows of models, without that of the column headers. */
const items = () =>
  table()
    .getByRole("row")
    .filter({ has: visit.page.getByRole("cell") });

describe("the models", () => {
  it("are found among 300 by name, description and capability", async () => {
    const { page } = visit;
    await page.getByRole("link", { name: "Models" }).click();
    await expect.poll(() => items().count()).toBe(60);
    await page.getByRole("button", { name: /^Show more/ }).click();
    await expect.poll(() => items().count()).toBe(120);
    await page.getByLabel("Find a model").fill("MODEL-29 number");
    await expect.poll(() => items().count()).toBe(11);
    await page.getByLabel("Find a model").fill("nothing like it");
    await page.getByText("No models match.").waitFor();
    await page.getByLabel("Find a model").fill("");
    await page.getByLabel("Show").selectOption("Image output");
    await expect.poll(() => items().count()).toBe(1);
    expect(await items().innerText()).toMatch(/beta-3-pro-image-preview[\s\S]*Preview[\s\S]*image \$120\.00/);
  });

  it("show prices and capabilities, and link to other pages", async () => {
    const { page } = visit;
    await page.getByLabel("Show").selectOption("All");
    await page.getByLabel("Find a model").fill("alpha-haiku");
    await expect.poll(() => items().count()).toBe(1);
    const text = await items().innerText();
    expect(text).toMatch(
      /alpha · [\s\S]*Tool calling[\s\S]*200K\s*tokens[\s\S]*\$1\.00\s*cached \$0\.10[\s\S]*\$5\.00[\s\S]*Healthy/,
    );
    const links = items().getByRole("link");
    const targets = await links.evaluateAll((found) => found.map((each) => each.getAttribute("href")));
    expect(targets).toEqual([
      "/models/alpha-haiku-4.5",
      ...["playground", "requests", "usage"].map((page_) => `/${page_}?model=alpha-haiku-4.5`),
    ]);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Copy the name alpha-haiku-4.5" }).click();
    expect(await page.evaluate("navigator.clipboard.readText()")).toBe("alpha-haiku-4.5");
  });

  it("are sorted by a column, those without a value last", async () => {
    const { page } = visit;
    await page.getByLabel("Find a model").fill("beta");
    const names = async () => (await items().locator("code").allInnerTexts()).join(" ");
    const configured = await names();
    const output = table().getByRole("columnheader", { name: "Output / 1M" });
    const pressed = async (): Promise<string | null> => {
      await output.getByRole("button").click();
      return output.getAttribute("aria-sort");
    };
    expect(await pressed()).toBe("ascending");
    expect(await names()).toMatch(/^\S+ beta-3-flash .*preview$/);
    expect(await pressed()).toBe("descending");
    expect(await names()).toMatch(/^beta-3-pro-\S*preview/);
    // The order is in the address.
    expect(new URL(page.url()).search).toBe("?order=output&direction=desc");
    await page.reload();
    await page.getByLabel("Find a model").fill("beta");
    await expect.poll(names).toMatch(/^beta-3-pro-\S*preview/);
    expect(await pressed()).toBeNull();
    expect(await names()).toBe(configured);
  });

  it("escape a hostile description", async () => {
    const { page } = visit;
    await page.getByLabel("Find a model").fill("model-7 pwned");
    await expect.poll(() => items().count()).toBe(1);
    expect(await items().innerText()).toContain("<img src=x");
    expect(await page.locator("img[src=x]").count()).toBe(0);
    expect(await page.title()).toBe("Models · Parley");
  });

  it("show the time to first token, and an open circuit", async () => {
    const { page } = visit;
    await page.goto(`${site.product.url}/keys`);
    const apiKey = await createKey(page, "program");
    const client = new OpenAI({ apiKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
    const ask = async (model: string, content: string): Promise<void> => {
      const stream = await client.chat.completions.create({
        model,
        stream: true,
        messages: [{ role: "user", content }],
      });
      for await (const chunk of stream) expect(chunk.model).toBe(model);
    };
    for (let index = 0; index < 3; index += 1) await ask("alpha-haiku-4.5", "Write 3 words");
    for (let index = 0; index < 3; index += 1) {
      await expect(ask("alpha-opus-4.5", `[[fault: status=500; id=${index}]]`)).rejects.toMatchObject({ status: 503 });
    }
    await page.getByRole("link", { name: "Models" }).click();
    await page.getByLabel("Find a model").fill("alpha-haiku");
    await expect.poll(() => items().innerText()).toMatch(/\d+ ms\s*p95 \d+ ms[\s\S]*0% \(0 of 3\) errors/);
    await page.getByLabel("Find a model").fill("alpha-opus");
    await expect.poll(() => items().innerText()).toMatch(/Circuit open\s+Since \d[\s\S]*100% \(5 of 5\)/);
    await page.getByLabel("Show").selectOption("Unhealthy");
    await page.getByLabel("Find a model").fill("");
    await expect.poll(() => items().count()).toBe(1);
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("cause no browser errors", () => {
    expect(visit.complaints).toEqual([]);
  });
});
