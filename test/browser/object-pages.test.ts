import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere, TABLE_SIZES } from "./support/accessibility.ts";
import { createKey, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

const MODEL = "alpha-haiku-4.5";
/** More than a page of keys. */
const KEYS = 230;
const LAPTOP = [1280, 720] as const;

let site: Site;
let visit: Visit;
let page: Page;
/** The secret and the ID of a key with requests. */
let secret = "";
let keyId = "";

beforeAll(async () => {
  site = await startSite({
    config: {
      models: {
        "team/fast": { targets: [{ model: MODEL }] },
        "vendor/long-prompts": {
          provider: "alpha",
          upstream_model: "long-prompts",
          price: {
            input: 2,
            output: 8,
            cached_input: 0.5,
            cache_write: 2.5,
            tiers: [{ above: 200_000, input: 4, output: 12, cached_input: 1, cache_write: 5 }],
          },
        },
      },
    },
  });
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
  secret = await createKey(page, "shop");
  site.edit((database) => {
    keyId = (database.prepare("SELECT id FROM api_keys WHERE name = 'shop'").get() as { id: string }).id;
    const insert = database.prepare(
      `INSERT INTO api_keys (id, account_id, name, hash, display, capabilities, created_at_ms, last_used_at_ms, expires_at_ms, monthly_budget_micro_usd, limited_by_administrator)
       SELECT ?, account_id, ?, ?, ?, capabilities, ?, ?, ?, ?, 0 FROM api_keys WHERE name = 'shop'`,
    );
    const nowMs = Date.now();
    for (let index = 0; index < KEYS; index += 1) {
      // The order of names is neither that of creation nor of use.
      const name = `app ${String((index * 77) % KEYS).padStart(3, "0")}`;
      const usedMs = index % 3 === 0 ? null : nowMs - 3_600_000 - ((index * 31) % KEYS) * 60_000;
      const expiresMs = index % 4 === 0 ? nowMs + (1 + ((index * 13) % KEYS)) * 864e5 : null;
      const budget = index % 2 === 0 ? 1_000_000 * (1 + ((index * 7) % 50)) : null;
      insert.run(
        `key_${index}`,
        name,
        `h${index}`,
        `sk_parley_${index}…`,
        nowMs - 1e6 - index,
        usedMs,
        expiresMs,
        budget,
      );
    }
  });
  const client = new OpenAI({ apiKey: secret, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Write 3 words" }];
  for (let index = 0; index < 3; index += 1) await client.chat.completions.create({ model: MODEL, messages });
});
afterAll(() => site?.close());

const table = () => page.getByRole("table", { name: "Active keys" });
const names = async (): Promise<string[]> =>
  table().locator("[role=row] a[href^='/keys/key_']").locator("bdi").allInnerTexts();
const header = (name: string) => table().getByRole("columnheader", { name });

describe("the keys", () => {
  it("are sorted by their columns over all pages, by mouse and keyboard, with the order in the address", async () => {
    await page.goto(`${site.product.url}/keys`);
    await expect.poll(async () => (await names())[0]).toBe("shop");
    await header("Name").getByRole("button").click();
    await expect.poll(async () => (await names()).slice(0, 3)).toEqual(["app 000", "app 001", "app 002"]);
    expect(await header("Name").getAttribute("aria-sort")).toBe("ascending");
    await header("Name").getByRole("button").press("Enter");
    await expect.poll(async () => (await names()).slice(0, 3)).toEqual(["shop", "first key", "app 229"]);
    expect(await header("Name").getAttribute("aria-sort")).toBe("descending");
    expect(new URL(page.url()).search).toBe("?order=name&direction=desc");
    // The whole list, page by page.
    for (const count of [200, 232]) {
      await page.getByRole("button", { name: "Show more" }).click();
      await expect.poll(async () => (await names()).length).toBe(count);
    }
    const all = await names();
    expect(all).toEqual(all.toSorted().toReversed());
    expect(new Set(all).size).toBe(232);
    expect(await page.getByRole("button", { name: "Show more" }).count()).toBe(0);
    // An address opens the same order.
    await page.reload();
    await expect.poll(async () => (await names())[1]).toBe("first key");
    await header("Name").getByRole("button").click();
    await expect.poll(async () => (await names())[0]).toBe("shop");
    expect(new URL(page.url()).search).toBe("");
  });

  it("are sorted by what they spent and when they were used, the most and the latest first", async () => {
    for (const [column, order] of [
      ["Spent this month", "spent"],
      ["Last used", "used"],
    ] as const) {
      await page.goto(`${site.product.url}/keys?order=name`);
      await expect.poll(async () => (await names())[0]).toBe("app 000");
      await header(column).getByRole("button").click();
      await expect.poll(async () => (await names())[0]).toBe("shop");
      expect(new URL(page.url()).search).toBe(`?order=${order}&direction=desc`);
      expect(await header(column).getAttribute("aria-sort")).toBe("descending");
    }
  });

  it("are found by the server among all of them, and sorted on a phone, too", async () => {
    await page.getByLabel("Find a key").fill("APP SK_PARLEY_113…");
    await expect.poll(async () => (await names()).length).toBe(1);
    await page.getByLabel("Find a key").fill("");
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByLabel("Sort by").selectOption("Expires, ascending");
    await expect.poll(async () => (await names()).length).toBe(100);
    expect(new URL(page.url()).search).toBe("?order=expires");
    await expect.poll(() => table().getByRole("row").nth(1).innerText()).toMatch(/Expires in \d+ (hours|day)/);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  it("have no violations and no overflow when sorted, in every size and theme", { timeout: 120_000 }, async () => {
    await page.goto(`${site.product.url}/keys?find=app+22&order=budget&direction=desc`);
    await expect.poll(async () => (await names()).length).toBe(21);
    expect(await findBarriersEverywhere(page, [...TABLE_SIZES, LAPTOP])).toEqual([]);
  });
});

describe("the page of a key", () => {
  it("has its state, budget with what is left, usage, and latest requests", { timeout: 120_000 }, async () => {
    await page.goto(`${site.product.url}/keys?find=shop`);
    await table().getByRole("link", { name: "shop" }).click();
    await page.getByRole("heading", { name: "shop", level: 1 }).waitFor();
    expect(new URL(page.url()).pathname).toBe(`/keys/${keyId}`);
    await page.getByRole("button", { name: "Edit" }).click();
    const dialog = page.getByRole("dialog");
    await dialog
      .locator("summary")
      .filter({ hasText: /^Limits/ })
      .click();
    await dialog.getByLabel("Monthly budget (USD)").fill("5");
    if (await dialog.getByLabel("Your password").count()) await dialog.getByLabel("Your password").fill(PASSWORD);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });
    const limits = page.getByRole("region", { name: "Limits and budget" });
    await expect.poll(() => limits.innerText()).toMatch(/\$4\.99\d* left\s*\$0\.0\d+ of \$5\.00 spent/);
    const rows = page.getByRole("table", { name: "Latest requests" }).getByRole("row");
    await expect.poll(() => rows.count()).toBe(4);
    expect(await rows.nth(1).innerText()).toContain(MODEL);
    await page.getByRole("img", { name: /^Requests by model/ }).waitFor();
    await page.getByLabel("Period", { exact: true }).selectOption("Last 7 days");
    await expect.poll(() => new URL(page.url()).search).toBe("?range=7d");
    expect(await findBarriersEverywhere(page, [...TABLE_SIZES, LAPTOP])).toEqual([]);
    await page.getByRole("link", { name: "All requests" }).click();
    await expect.poll(() => page.url()).toContain(`/requests?key=${keyId}`);
  });

  it("tells that a key is not there, or not to be seen", async () => {
    await page.goto(`${site.product.url}/keys/key_none`);
    await page.getByText("No such key").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });
});

describe("the page of a model", () => {
  it("has its prices, health, keys, usage and latest requests", { timeout: 120_000 }, async () => {
    await page.goto(`${site.product.url}/models?find=haiku`);
    await page.getByRole("table", { name: "Models" }).getByRole("link", { name: MODEL, exact: true }).click();
    await page.getByRole("heading", { name: MODEL, level: 1 }).waitFor();
    const text = async (name: string) => (await page.getByRole("region", { name }).innerText()).replaceAll(/\s+/g, " ");
    expect(await text("Prices")).toMatch(/Input \$1\.00 Cached input \$0\.10 .*Output \$5\.00/);
    expect(await text("Model")).toMatch(/Context window 200,000 tokens .*Target of team\/fast/);
    expect(await text("Health")).toContain("Healthy");
    await expect.poll(() => text("Keys that may use it")).toMatch(/last used first\. shop/);
    await expect.poll(() => page.getByRole("table", { name: "Latest requests" }).getByRole("row").count()).toBe(4);
    await page.getByRole("img", { name: /^Cost by key/ }).waitFor();
    expect(await findBarriersEverywhere(page, [...TABLE_SIZES, LAPTOP])).toEqual([]);
    await page.getByRole("link", { name: "All keys that may use it" }).click();
    await page.getByText(`Keys that may use ${MODEL}.`).waitFor();
    await expect.poll(async () => (await names()).length).toBe(100);
  });

  it(
    "of a name with targets leads to them, and one with long prompts has their prices",
    { timeout: 120_000 },
    async () => {
      await page.goto(`${site.product.url}/models/team/fast`);
      await page.getByRole("region", { name: "Targets" }).getByRole("link", { name: MODEL }).click();
      await page.getByRole("heading", { name: MODEL, level: 1 }).waitFor();
      await page.goto(`${site.product.url}/models/vendor/long-prompts`);
      const prices = page.getByRole("region", { name: "Prices" });
      await prices.getByRole("columnheader", { name: "Prompts above 200,000 tokens" }).waitFor();
      const rows = (await prices.getByRole("row").allInnerTexts()).map((row) => row.replaceAll(/\s+/g, " ").trim());
      expect(rows).toContain("Cached input $0.50 $1.00");
      expect(rows).toContain("Cache write $2.50 $5.00");
      expect(await findBarriersEverywhere(page, [...TABLE_SIZES, LAPTOP])).toEqual([]);
      await page.goto(`${site.product.url}/models/no/such`);
      await page.getByText("No such model").waitFor();
    },
  );
});

it("cause no browser errors", () => {
  expect(visit.complaints).toEqual([]);
});
