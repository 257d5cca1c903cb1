import { readFileSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { openStore } from "../../src/store/store.ts";
import { writeHistory } from "../support/history.ts";
import { findBarriers, findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, setUp, type Site, startSite, type Visit } from "./support/site.ts";

let site: Site;
let visit: Visit;
let page: Page;

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
  const apiKey = await createKey(page, "app");
  const store = await openStore({ dataDir: join(site.product.home, "data"), databaseUrl: undefined });
  await writeHistory(store.ledger, { count: 3_000, untilMs: Date.now() - 60_000 });
  await store.close();
  const client = new OpenAI({ apiKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  const messages = [{ role: "user" as const, content: "Hello!" }];
  const unknown = { temprature: 1 } as object;
  await client.chat.completions.create({ model: "beta-3-flash", messages, seed: 7, ...unknown });
});
afterAll(() => site?.close());

const rows = () => page.getByRole("table", { name: "Requests" }).getByRole("row");
const panel = () => page.getByRole("complementary", { name: "Request" });
const idIn = (url: string) => new URL(url).searchParams.get("request");

async function open(query = "", of: Page = page): Promise<void> {
  await of.goto(`${site.product.url}/requests${query}`);
  await of.getByRole("table", { name: "Requests" }).waitFor();
}

/** Texts of the cells in a column, without the header. */
async function column(name: string): Promise<string[]> {
  const names = await rows().first().getByRole("columnheader").allInnerTexts();
  const index = names.indexOf(name);
  return page.evaluate(
    `[...document.querySelectorAll('[role=table] [role=row]')].slice(1)
      .map((row) => [...row.querySelectorAll('[role=cell]')].filter((cell) => cell.offsetParent !== null)[${index}].innerText)`,
  );
}

describe("the table of requests", () => {
  it("has at least 20 requests on a laptop's screen, and takes the width of the window", async () => {
    await open();
    const seen = await page.evaluate<number>(
      "[...document.querySelectorAll('[role=row]')].filter((row) => row.getBoundingClientRect().bottom <= innerHeight).length - 1",
    );
    expect(seen).toBeGreaterThanOrEqual(20);
    const width = await page.evaluate<number>("document.querySelector('[role=table]').getBoundingClientRect().width");
    expect(width).toBeGreaterThan(1_100);
  });

  it("shows all usual columns whole in a window of 1280 pixels with a scroll bar", async () => {
    await page.setViewportSize({ width: 1265, height: 800 });
    await open();
    const cut = await page.evaluate<string[]>(
      `[...document.querySelectorAll("[role=table], [role=cell]:nth-child(4) span")]
        .filter((element) => element.scrollWidth > element.clientWidth && element.clientWidth > 0)
        .map((element) => (element.role ?? element.tagName) + " " + element.textContent.slice(0, 40))`,
    );
    expect([...new Set(cut)]).toEqual([]);
    const table = await page.getByRole("table", { name: "Requests" }).boundingBox();
    const ttft = await page.getByRole("columnheader", { name: "TTFT" }).boundingBox();
    expect(ttft!.x + ttft!.width).toBeLessThan(table!.x + table!.width);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  it("shows the columns that were chosen, also after a reload", async () => {
    await page.getByRole("button", { name: "Columns" }).click();
    for (const name of ["Finish reason", "Client"]) await page.getByRole("menuitemcheckbox", { name }).click();
    await page.getByRole("menuitemcheckbox", { name: "Key", exact: true }).click();
    await page.keyboard.press("Escape");
    const shown = ["Time", "Model", "Status", "Tokens", "Cost", "Duration", "TTFT", "Finish reason", "Client"];
    expect(await rows().first().getByRole("columnheader").allInnerTexts()).toEqual(shown);
    await open();
    expect(await rows().first().getByRole("columnheader").allInnerTexts()).toEqual(shown);
    const latest = rows().filter({ hasText: "beta-3-flash" }).first();
    expect(await latest.innerText()).toMatch(/stop[\s\S]*OpenAI\/JS/);
    await page.getByRole("button", { name: "Columns" }).click();
    await page.getByRole("menuitem", { name: "Default columns" }).click();
    expect(await rows().first().getByRole("columnheader").allInnerTexts()).toContain("Key");
  });

  it("sorts by a column, with the order in the URL, and back", async () => {
    await page.getByRole("button", { name: "Cost", exact: true }).click();
    await page.getByText("Highest cost first, without refused requests.").waitFor();
    await expect.poll(() => rows().count()).toBeGreaterThan(50);
    expect(new URL(page.url()).search).toBe("?order=cost");
    expect(await page.getByRole("columnheader", { name: "Cost" }).getAttribute("aria-sort")).toBe("descending");
    const costs = (await column("Cost")).map((text) => Number(text.replace("$", "")));
    expect(costs).toEqual(costs.toSorted((left, right) => right - left));
    await page.getByRole("button", { name: "Show more" }).click();
    await expect.poll(() => rows().count()).toBeGreaterThan(100);
    // The second click reverses, here by the keyboard.
    await page.getByRole("button", { name: "Cost", exact: true }).press("Enter");
    await page.getByText("Lowest cost first, without refused requests.").waitFor();
    await expect.poll(() => rows().count()).toBeGreaterThan(50);
    expect(new URL(page.url()).search).toBe("?order=cost&direction=asc");
    expect(await page.getByRole("columnheader", { name: "Cost" }).getAttribute("aria-sort")).toBe("ascending");
    const lowest = (await column("Cost")).map((text) => Number(text.replace("$", "")) || 0);
    expect(lowest).toEqual(lowest.toSorted((left, right) => left - right));
    await page.getByRole("button", { name: "Export" }).click();
    const saved = page.waitForEvent("download");
    await page.getByRole("menuitem", { name: "JSON lines" }).click();
    const lines = readFileSync(await (await saved).path(), "utf8")
      .trimEnd()
      .split("\n");
    const exported = lines.map((line) => (JSON.parse(line) as { cost_usd: number }).cost_usd);
    expect(exported.length).toBeGreaterThan(100);
    expect(exported).toEqual(exported.toSorted((left, right) => left - right));
    await page.getByRole("button", { name: "Time", exact: true }).click();
    await page.getByRole("switch", { name: "Live" }).waitFor();
    await page.getByRole("button", { name: "Time", exact: true }).click();
    await page.getByText("Oldest first, without refused requests.").waitFor();
    expect(new URL(page.url()).search).toBe("?direction=asc");
    await page.getByRole("button", { name: "Latest first" }).click();
    await page.getByRole("switch", { name: "Live" }).waitFor();
    expect(new URL(page.url()).search).toBe("");
  });

  it("is narrowed to a time", async () => {
    await page.getByLabel("Time", { exact: true }).selectOption("Last hour");
    await page.getByRole("row").filter({ hasText: "beta-3-flash" }).first().waitFor();
    expect(new URL(page.url()).search).toBe("?range=1h");
    await expect.poll(() => rows().count()).toBeLessThan(40);
    await page.getByLabel("Time", { exact: true }).selectOption("Custom…");
    await page.getByLabel("From").waitFor();
    expect(new URL(page.url()).search).toMatch(/^\?since=[^&]+&until=[^&]+$/);
    await page.getByRole("button", { name: "Clear all" }).click();
    await expect.poll(() => rows().count()).toBe(51);
  });

  it("has no barrier in any size and theme, with all columns, a menu, and 1,920 pixels", async () => {
    await open();
    await page.getByRole("button", { name: "Columns" }).click();
    expect(await findBarriers(page)).toEqual([]);
    for (const name of ["Tokens/s", "Cached prompt tokens", "Reasoning tokens", "Attempts", "Endpoint", "Request ID"])
      await page.getByRole("menuitemcheckbox", { name }).click();
    await page.keyboard.press("Escape");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.setViewportSize({ width: 1920, height: 1080 });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      expect(await findBarriers(page)).toEqual([]);
    }
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.evaluate("localStorage.clear()");
  }, 180_000);
});

describe("a request beside the table", () => {
  it("opens with a click, its address shows the same, and Escape closes it", async () => {
    await open();
    await rows().nth(3).getByRole("link").click();
    await panel().getByRole("heading", { name: "Details" }).waitFor();
    const id = idIn(page.url());
    const other = await page.context().newPage();
    await open(new URL(page.url()).search, other);
    await other.getByRole("complementary", { name: "Request" }).getByText(id!).waitFor();
    await other.close();
    await page.keyboard.press("Escape");
    await panel().waitFor({ state: "detached" });
    expect(idIn(page.url())).toBeNull();
    expect(await page.evaluate("document.activeElement.dataset.request")).toBe(id);
  });

  it("steps to the next and previous one by J and K, by arrows and by buttons, on to the next page", async () => {
    await rows().nth(1).getByRole("link").click();
    await panel().getByRole("heading", { name: "Details" }).waitFor();
    const ids = await page.evaluate<string[]>(
      "[...document.querySelectorAll('[data-request]')].map((a) => a.dataset.request)",
    );
    const press = async (key: string, expected: string): Promise<void> => {
      await page.keyboard.press(key);
      await expect.poll(() => idIn(page.url())).toBe(expected);
    };
    expect(await panel().getByRole("button", { name: "Previous request" }).isDisabled()).toBe(true);
    await press("j", ids[1]!);
    await press("ArrowDown", ids[2]!);
    await press("k", ids[1]!);
    await press("ArrowUp", ids[0]!);
    await panel().getByRole("button", { name: "Next request" }).click();
    await expect.poll(() => idIn(page.url())).toBe(ids[1]);
    for (const id of ids.slice(2)) await press("j", id);
    await expect.poll(() => panel().getByRole("button", { name: "Next request" }).isDisabled()).toBe(false);
    await page.keyboard.press("j");
    await expect.poll(() => ids.includes(idIn(page.url())!)).toBe(false);
    // Letters are text where one types.
    const before = page.url();
    await page.getByLabel("Find by ID").fill("");
    await page.getByLabel("Find by ID").press("j");
    expect(page.url()).toBe(before);
  });

  it("shows phases, the client, the finish reason, and fields that were omitted", async () => {
    await open("?model=beta-3-flash");
    await rows().nth(1).getByRole("link").click();
    const text = () => panel().innerText();
    await expect.poll(text).toMatch(/Connect and send \d+ ms · Wait for response \d+ ms · Receive \d+ ms/);
    expect(await text()).toMatch(/Omitted\s+temprature · unknown field/);
    expect(await text()).toMatch(/Finish reason\s+stop/);
    expect(await text()).toMatch(/Client\s+OpenAI\/JS/);
    const playground = await panel().getByRole("link", { name: "Open in playground" }).getAttribute("href");
    expect(playground).toBe("/playground?model=beta-3-flash");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.setViewportSize({ width: 1920, height: 1080 });
    expect(await findBarriers(page)).toEqual([]);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  it("is a page on phones", async () => {
    await page.setViewportSize({ width: 390, height: 844 });
    await open();
    await rows().nth(2).getByRole("link").click();
    await page.getByRole("heading", { name: "Request", exact: true }).waitFor();
    expect(new URL(page.url()).pathname).toMatch(/^\/requests\/chatcmpl-/);
    await page.setViewportSize({ width: 1440, height: 900 });
  });
});

describe("the filtered requests", () => {
  it.each([
    ["CSV", /^requests-\d{4}-\d\d-\d\d\.csv$/, /^id,request_id,/],
    ["JSON lines", /^requests-\d{4}-\d\d-\d\d\.jsonl$/, /^\{"id":"chatcmpl-/],
  ])("are saved as %s", async (name, fileName, content) => {
    await open("?outcome=failed");
    await page.getByRole("button", { name: "Export" }).click();
    const [file] = await Promise.all([page.waitForEvent("download"), page.getByRole("menuitem", { name }).click()]);
    expect(file.suggestedFilename()).toMatch(fileName);
    const text = readFileSync(await file.path(), "utf8");
    expect(text).toMatch(content);
    const lines = text.trimEnd().split("\n").length - (name === "CSV" ? 1 : 0);
    await page.getByText(`Saved ${lines} requests.`).waitFor();
    expect(text).not.toContain('"status":"served"');
  });

  it("have a filter that is saved, opened in another browser, and removed", async () => {
    await open("?outcome=failed&order=duration");
    const dialog = page.getByRole("dialog", { name: "Saved filters" });
    await page.getByRole("button", { name: "Saved filters" }).click();
    await dialog.getByText("None yet.").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("is required").waitFor();
    await dialog.getByLabel("Save the current filter as").fill("Slow errors <b>");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.waitFor({ state: "detached" });

    const elsewhere = await site.visit("/sign-in");
    await elsewhere.page.getByLabel("E-mail").fill("ada@example.com");
    await elsewhere.page.getByLabel("Password").fill("four unrelated words");
    await elsewhere.page.getByRole("button", { name: "Sign in" }).click();
    await elsewhere.page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Requests" }).click();
    await elsewhere.page.getByRole("button", { name: "Saved filters" }).click();
    await elsewhere.page.getByRole("link", { name: "Slow errors <b>" }).click();
    await elsewhere.page.getByText("Highest duration first, without refused requests.").waitFor();
    expect(new URL(elsewhere.page.url()).search).toBe("?outcome=failed&order=duration");
    expect(elsewhere.complaints).toEqual([]);

    await page.getByRole("button", { name: "Saved filters" }).click();
    await dialog.getByRole("button", { name: "Remove Slow errors <b>" }).click();
    await dialog.getByText("None yet.").waitFor();
  });

  it("cause no browser errors", () => {
    expect(visit.complaints).toEqual([]);
  });
});
