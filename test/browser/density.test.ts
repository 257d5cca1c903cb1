import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

const LAPTOP = { width: 1280, height: 720 };
const LARGE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

let site: Site;
let visit: Visit;
let page: Page;

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/");
  ({ page } = visit);
  await setUp(page);
  site.edit((database) => {
    const account = database.prepare(
      "INSERT INTO accounts (id, name, email, role, password_hash, created_at_ms) VALUES (?, ?, ?, 'member', 'x', ?)",
    );
    const key = database.prepare(
      `INSERT INTO api_keys (id, account_id, name, hash, display, capabilities, created_at_ms, expires_at_ms, monthly_budget_micro_usd, limited_by_administrator)
       SELECT ?, ?, ?, ?, ?, capabilities, ?, ?, 20000, 0 FROM api_keys LIMIT 1`,
    );
    for (let index = 0; index < 30; index += 1) {
      const nowMs = Date.now();
      const owner = `acct_${index}`;
      account.run(owner, `Person ${index}`, `person-${index}@example.com`, nowMs - index);
      const name =
        index === 3 ? "a name that goes on and on, because nobody has stopped it yet" : `application ${index}`;
      key.run(`key_${index}`, owner, name, `hash ${index}`, `sk_parley_${index}…`, nowMs - index, nowMs + 864e5);
    }
  });
});
afterAll(() => site?.close());

async function go(path: string, size: typeof LAPTOP): Promise<void> {
  await page.setViewportSize(size);
  await page.goto(site.product.url + path);
  await page
    .getByRole("table")
    .or(page.getByRole("navigation", { name: "Sections" }))
    .first()
    .waitFor();
}

const rows = () => page.getByRole("row").filter({ has: page.getByRole("cell") });

/** Describes the element that has the focus, and whether the header or the footer of its dialog covers it. */
const FOCUSED = `(() => {
  const focused = document.activeElement;
  const { left, top, bottom, height } = focused.getBoundingClientRect();
  const covers = (y) => document.elementFromPoint(left + 4, y)?.closest("[data-footer], [role=dialog] > header") != null;
  return {
    name: focused.tagName + " " + (focused.getAttribute("name") ?? focused.textContent),
    isCovered: focused.closest("[data-footer]") === null && (covers(top + height * 0.2) || covers(bottom - height * 0.2)),
  };
})()`;

async function heightsOf(found: Locator): Promise<number[]> {
  const heights = await found.evaluateAll((all) => all.map((each) => each.getBoundingClientRect().height));
  expect(heights.length).toBeGreaterThan(5);
  return heights;
}

async function countInView(found: Locator, height: number): Promise<number> {
  const ends = await found.evaluateAll((all) => all.map((each) => each.getBoundingClientRect().bottom));
  return ends.filter((end) => end <= height).length;
}

describe("a long dialog on a laptop's screen", () => {
  const dialog = () => page.getByRole("dialog", { name: "Create API key" });
  const action = () => dialog().getByRole("button", { name: "Create key" });

  it("keeps its title and its buttons in view while its content scrolls", async () => {
    await go("/keys", LAPTOP);
    await page.getByRole("button", { name: "Create key" }).click();
    await dialog().locator("summary").first().waitFor();
    for (const fold of await dialog().locator("summary").all()) await fold.click();
    for (const end of ["0", "scrollHeight"]) {
      await dialog().evaluate((element, to) => element.scrollTo(0, to === "0" ? 0 : element.scrollHeight), end);
      for (const part of [dialog().getByRole("heading").first(), action()]) {
        const box = (await part.boundingBox())!;
        expect(box.y).toBeGreaterThanOrEqual(0);
        expect(box.y + box.height).toBeLessThanOrEqual(LAPTOP.height);
      }
    }
  });

  it("covers no field that has the focus", async () => {
    await dialog().getByLabel("Name", { exact: true }).focus();
    const seen = new Set<string>();
    for (let count = 0; count < 40 && !(await action().and(page.locator(":focus")).isVisible()); count += 1) {
      const { name, isCovered } = await page.evaluate<{ name: string; isCovered: boolean }>(FOCUSED);
      seen.add(name);
      expect([name, isCovered]).toEqual([name, false]);
      await page.keyboard.press("Tab");
    }
    expect(seen.size).toBeGreaterThan(10);
    await page.keyboard.press("Escape");
  });
});

describe("the lists", () => {
  it.each([
    ["/keys", "Keys"],
    ["/models", "Models"],
    ["/admin/accounts", "Accounts"],
  ])("have rows of one line on a laptop's screen: %s", async (path) => {
    await go(path, LAPTOP);
    expect(Math.max(...(await heightsOf(rows())))).toBeLessThanOrEqual(40);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  it("show twenty keys at once", async () => {
    await go("/keys", LARGE);
    expect(await countInView(rows(), LARGE.height)).toBeGreaterThanOrEqual(20);
  });

  it.each([
    ["/keys", "Keys"],
    ["/models", "Models"],
    ["/admin/accounts", "Accounts"],
  ])("have rows of two lines on a phone: %s", async (path) => {
    await go(path, PHONE);
    expect(Math.max(...(await heightsOf(rows())))).toBeLessThanOrEqual(64);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  it("have the whole of a cut name, and the owner and the expiry of a key, on a phone, too", async () => {
    await go("/keys", PHONE);
    const row = rows().filter({ hasText: "a name that goes on" });
    expect(await row.locator("bdi").first().getAttribute("title")).toMatch(/because nobody has stopped it yet$/);
    expect(await row.innerText()).toMatch(/sk_parley_3….*Expires.*of Person 3.*All models.*\$0\.02\/month/);
  });
});

describe("the actions of a row on a narrow screen", () => {
  it("are in a menu, which works by the keyboard", async () => {
    await go("/keys", PHONE);
    await page.getByRole("button", { name: "Actions on application 7" }).focus();
    await page.keyboard.press("Enter");
    await page.getByRole("menuitem").first().waitFor();
    expect(await page.getByRole("menuitem").allInnerTexts()).toEqual(["Edit", "Rotate", "Transfer", "Revoke"]);
    await page.getByRole("menuitem", { name: "Revoke" }).press("Enter");
    await page.getByRole("dialog", { name: "Revoke key?" }).getByText("application 7").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  it("lead to other pages", async () => {
    await go("/models", LAPTOP);
    await page.getByRole("button", { name: "Actions on alpha-haiku-4.5" }).click();
    await page.getByRole("menuitem", { name: "Usage" }).click();
    await expect.poll(() => page.url()).toContain("/usage?model=alpha-haiku-4.5");
  });
});

describe("the settings", () => {
  const search = () => page.getByLabel("Find a setting");
  const current = () => page.getByRole("navigation", { name: "Sections" }).locator("[aria-current]");

  it("are found by name, key and value, from the keyboard", async () => {
    await go("/admin/settings", LAPTOP);
    await page.keyboard.press("/");
    await page.keyboard.type("retention");
    await page.getByText("ledger.retention_days").waitFor();
    await expect.poll(() => page.getByText("http.listen").count()).toBe(0);
    expect(await search().and(page.locator(":focus")).count()).toBe(1);
    await page.getByText(/^\d of 1\d\d settings$/).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await search().fill("nothing like it");
    await page.getByText("No setting matches.").waitFor();
  });

  it("have links to their sections, which follow the scrolling", async () => {
    await go("/admin/settings", LAPTOP);
    expect(await current().innerText()).toBe("Installation");
    await page.getByRole("link", { name: "Network" }).click();
    await expect.poll(() => current().innerText()).toBe("Network");
    await page.evaluate("scrollTo(0, document.documentElement.scrollHeight)");
    await expect.poll(() => current().innerText()).toBe("Process");
    await page.evaluate("scrollTo(0, 0)");
    await expect.poll(() => current().innerText()).toBe("Installation");
  });

  it("have addresses", async () => {
    await go("/admin/settings#timeouts.idle_ms", LAPTOP);
    const row = page.locator("[id='timeouts.idle_ms']");
    await row.and(page.locator(":target")).waitFor();
    expect((await row.boundingBox())!.y).toBeLessThan(LAPTOP.height);
    expect(await row.getByRole("link").getAttribute("href")).toBe("#timeouts.idle_ms");
  });
});

it("cause no browser errors", () => {
  expect(visit.complaints).toEqual([]);
});
