import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

/** A provider that cannot be reached, with more models than anybody reads through. */
const MANY_MODELS = {
  simulator: { enabled: true },
  providers: { far: { dialect: "openai", base_url: "http://127.0.0.1:9/v1", allow_private: true } },
  models: Object.fromEntries(
    Array.from({ length: 800 }, (_, index) => [
      `vendor/model-${index}`,
      { provider: "far", upstream_model: `m-${index}`, context_window: 9_000, max_output_tokens: 900 },
    ]),
  ),
};
/** An account has at most 1,000. */
const KEYS = 990;

let site: Site;
let visit: Visit;
let page: Page;

beforeAll(async () => {
  site = await startSite({ config: MANY_MODELS });
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
  site.edit((database) => {
    const insert = database.prepare(
      `INSERT INTO api_keys (id, account_id, name, hash, display, capabilities, created_at_ms, last_used_at_ms, limited_by_administrator)
       SELECT ?, account_id, ?, ?, ?, capabilities, ?, ?, 0 FROM api_keys LIMIT 1`,
    );
    for (let index = 0; index < KEYS; index += 1) {
      const nowMs = Date.now();
      const name = `application ${index}`;
      insert.run(`key_many${index}`, name, `hash ${index}`, `sk_parley_m${index}…`, nowMs - index, nowMs - 180_000);
    }
  });
});
afterAll(() => site?.close());

const notices = () => page.getByRole("region", { name: "Results of actions" });
const palette = () => page.getByRole("dialog", { name: "Search", exact: true });

describe("notices", () => {
  it("announce results politely, and are closed by the keyboard", async () => {
    await page.goto(`${site.product.url}/account`);
    await page.getByLabel("Name", { exact: true }).fill("Ada Lovelace");
    await page.getByRole("button", { name: "Save name" }).click();
    await notices().getByText("Name saved.").waitFor();
    expect(await notices().getAttribute("aria-live")).toBe("polite");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.keyboard.press("F6");
    await page.keyboard.press("Tab");
    await page.keyboard.press("Escape");
    await notices().getByText("Name saved.").waitFor({ state: "detached" });
  });

  it("close after some seconds", async () => {
    await page.getByRole("button", { name: "Save name" }).click();
    await notices().getByText("Name saved.").waitFor();
    await notices().getByText("Name saved.").waitFor({ state: "detached", timeout: 15_000 });
    expect(await notices().getByText(/./).count()).toBe(0);
  });

  it("never have an error", async () => {
    await page.getByLabel("Name", { exact: true }).fill("x".repeat(101));
    await page.getByRole("button", { name: "Save name" }).click();
    await page.locator("[aria-invalid]").waitFor();
    expect(await notices().getByText(/./).count()).toBe(0);
  });
});

describe("relative times", () => {
  it("have the exact time on hover and focus", async () => {
    await page.goto(`${site.product.url}/keys`);
    const time = page.locator("time", { hasText: "3 minutes ago" }).first();
    await time.hover();
    const hint = page.getByRole("tooltip");
    await hint.waitFor();
    expect(await hint.innerText()).toMatch(/^\w{3} \d{1,2}, \d{4}, \d{1,2}:\d\d:\d\d [AP]M .+/);
    await page.mouse.move(0, 0);
    await hint.waitFor({ state: "hidden" });
    await time.focus();
    await hint.waitFor();
    await page.keyboard.press("Escape");
    await hint.waitFor({ state: "hidden" });
  });
});

describe("a reader elsewhere", () => {
  it("has numbers, dates and money as there, in English sentences", async () => {
    const options = { locale: "de-DE", timezoneId: "Europe/Berlin", storageState: await page.context().storageState() };
    const german = await site.visit("/keys", options);
    await german.page.getByRole("button", { name: "Create key" }).first().click();
    const dialog = german.page.getByRole("dialog");
    await dialog.getByLabel("Name", { exact: true }).fill("Berlin");
    await dialog.locator("summary", { hasText: "Limits" }).click();
    await dialog.getByLabel("Monthly budget").fill("1.007,50");
    await dialog.getByLabel("Requests per minute").fill("1.200");
    await dialog.getByRole("button", { name: "Create key" }).click();
    await german.page.getByTestId("secret").waitFor();
    await german.page.getByRole("button", { name: "I have saved it" }).click();
    const row = german.page.getByRole("row").filter({ hasText: "Berlin" });
    await row.getByText("0,00 $ of 1.007,50 $").waitFor();
    await german.page.getByRole("button", { name: "Edit Berlin" }).click();
    await german.page.locator("summary", { hasText: "Limits" }).click();
    expect(await german.page.getByLabel("Monthly budget").inputValue()).toBe("1007,5");
    expect(await german.page.getByLabel("Requests per minute").inputValue()).toBe("1200");
    await german.page.keyboard.press("Escape");
    await german.page.locator("time", { hasText: "minutes ago" }).first().focus();
    expect(await german.page.getByRole("tooltip").innerText()).toMatch(/\d\d\.\d\d\.\d{4}, \d\d:\d\d:\d\d MEZ/);
    expect(german.complaints).toEqual([]);
    await german.page.context().close();
  });
});

/** Size of the lists of keys that the page has fetched. */
const LISTED_KEYS_BYTES = `performance.getEntriesByType("resource")
  .filter(({ name }) => name.endsWith("KeyService/List"))
  .reduce((sum, { decodedBodySize }) => sum + decodedBodySize, 0)`;

describe("a field with many choices", () => {
  const options = () => page.getByRole("listbox").getByRole("option");
  /** The field once its choices are loaded: until then it is a select. */
  const search = (label: string) => page.locator("input[role=combobox]").and(page.getByLabel(label, { exact: true }));

  it("finds one of many keys by the keyboard alone, and lists few", async () => {
    await page.goto(`${site.product.url}/usage`);
    const field = search("Key");
    await field.focus();
    await page.keyboard.press("ArrowDown");
    await options().first().waitFor();
    expect(await page.evaluate(LISTED_KEYS_BYTES)).toBeLessThan(30_000);
    expect(await options().count()).toBeLessThanOrEqual(100);
    await page.keyboard.type("777 application");
    await expect.poll(() => options().count()).toBe(1);
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).searchParams.get("key")).toBe("key_many777");
    expect(await field.inputValue()).toContain("application 777");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    // Cleared, it is all of them again.
    await field.fill("");
    await page.keyboard.press("Escape");
    await expect.poll(() => new URL(page.url()).searchParams.get("key")).toBeNull();
  });

  it("keeps what was chosen after text that matches nothing", async () => {
    await page.goto(`${site.product.url}/usage?model=vendor%2Fmodel-42`);
    const field = search("Model");
    await expect.poll(() => field.inputValue()).toBe("vendor/model-42");
    await field.click();
    await page.keyboard.type("no such thing");
    await page.getByText("Nothing matches.").waitFor();
    await page.keyboard.press("Escape");
    await page.keyboard.press("Tab");
    await expect.poll(() => field.inputValue()).toBe("vendor/model-42");
  });

  it("is in the playground for keys and models", async () => {
    await page.goto(`${site.product.url}/playground`);
    await search("Model").fill("model-799");
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).searchParams.get("model")).toBe("vendor/model-799");
    await search("Key").fill("application 5");
    await page.keyboard.press("Enter");
    await page.getByText("sk_parley_m5…").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("selects all models of a search for a key", async () => {
    await page.goto(`${site.product.url}/keys?create`);
    await page.getByLabel("Name", { exact: true }).fill("some models");
    await page.locator("summary", { hasText: "Permissions" }).click();
    await page.getByLabel("Selected models only").check();
    await page.getByLabel("Find a model").fill("vendor model-19");
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Select these 11" }).click();
    await page.getByLabel("vendor/model-19", { exact: true }).uncheck();
    await page.getByText("10 of 80").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    await page.getByTestId("secret").waitFor();
    await page.getByRole("button", { name: "I have saved it" }).click();
    await page.getByRole("row").filter({ hasText: "some models" }).getByText("10 models").waitFor();
  });
});

describe("the command palette", () => {
  it("is loaded when it is opened, and leads to pages, keys, models and accounts", async () => {
    await page.goto(site.product.url);
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    const isLoaded = `performance.getEntriesByType("resource").some(({ name }) => /palette/.test(name))`;
    expect(await page.evaluate(isLoaded)).toBe(false);
    await page.keyboard.press("Control+K");
    await palette().waitFor();
    expect(await page.evaluate(isLoaded)).toBe(true);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    for (const [query, option, path] of [
      ["usage", "Usage", "/usage"],
      ["application 321", "application 321 sk_parley_m321…", "/keys/key_many321"],
      ["vendor/model-765", "vendor/model-765", "/models/vendor/model-765"],
      ["playground model-765", "Open playground with vendor/model-765", "/playground?model=vendor%2Fmodel-765"],
      ["ada@", "Ada Lovelace ada@example.com", "/usage?account=acct_default"],
    ] as const) {
      if (!(await palette().isVisible())) await page.keyboard.press("Control+K");
      await palette().getByRole("combobox").fill(query);
      await palette().getByRole("option", { name: option }).first().waitFor();
      await page.keyboard.press("Enter");
      await expect.poll(() => page.url().slice(site.product.url.length)).toBe(path);
      await palette().waitFor({ state: "detached" });
    }
  });

  it("shows the key or the model that was found", async () => {
    await page.goto(`${site.product.url}/keys?find=application+321`);
    await expect.poll(() => page.getByRole("table", { name: "Active keys" }).getByRole("row").count()).toBe(2);
    await page.goto(`${site.product.url}/models?find=vendor%2Fmodel-765`);
    await expect.poll(() => page.getByRole("table", { name: "Models" }).getByRole("row").count()).toBe(2);
  });

  it("creates a key, changes the theme and signs out", async () => {
    const run = async (query: string): Promise<void> => {
      await page.keyboard.press("Control+K");
      await palette().getByRole("combobox").fill(query);
      await expect.poll(() => palette().getByRole("option").count()).toBe(1);
      await page.keyboard.press("Enter");
    };
    await run("create key");
    await page.getByRole("dialog", { name: "Create API key" }).waitFor();
    expect(new URL(page.url()).search).toBe("");
    // Not over a dialog, whose secret is shown once.
    await page.keyboard.press("Control+K");
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").first().waitFor({ state: "detached" });
    await run("dark theme");
    await page.locator("html[data-theme=dark]").waitFor();
    expect(await page.getByRole("radio", { name: "Dark" }).isChecked()).toBe(true);
    await run("sign out");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill("four unrelated words");
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("navigation", { name: "Pages" }).waitFor();
  });

  it("works on a phone by a button", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await page.getByRole("button", { name: "Menu" }).click();
    await page.getByRole("button", { name: "Search", exact: true }).click();
    await palette().getByRole("option", { name: "Models" }).click();
    await page.getByRole("heading", { name: "Models", exact: true }).waitFor();
    expect(await palette().count()).toBe(0);
    await page.setViewportSize({ width: 1440, height: 900 });
  });
});

describe("keyboard shortcuts", () => {
  const heading = (name: string) => page.getByRole("heading", { name, exact: true }).waitFor();

  it("go to pages and to the search, and are listed", async () => {
    await page.evaluate("localStorage.clear()");
    await page.goto(site.product.url);
    await heading("Overview");
    for (const [letter, name] of [
      ["k", "Keys"],
      ["u", "Usage"],
      ["r", "Requests"],
      ["p", "Playground"],
      ["a", "Accounts"],
      ["m", "Models"],
    ] as const) {
      await page.keyboard.press("g");
      await page.keyboard.press(letter);
      await heading(name);
    }
    await page.getByLabel("Find a model").waitFor();
    await page.keyboard.press("/");
    await page.keyboard.type("gk?");
    expect(await page.getByLabel("Find a model").inputValue()).toBe("gk?");
    await page.evaluate("document.activeElement.blur()");
    await page.keyboard.press("?");
    const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await help.waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("of single keys can be turned off", async () => {
    const help = page.getByRole("dialog", { name: "Keyboard shortcuts" });
    await help.getByRole("switch").click();
    await page.keyboard.press("Escape");
    await help.waitFor({ state: "detached" });
    await page.keyboard.press("?");
    await page.keyboard.press("g");
    await page.keyboard.press("k");
    await page.keyboard.press("Control+K");
    await palette().waitFor();
    expect(await help.count()).toBe(0);
    expect(new URL(page.url()).pathname).toBe("/models");
    await page.keyboard.press("Escape");
    await page.evaluate("localStorage.clear()");
    expect(visit.complaints).toEqual([]);
  });
});
