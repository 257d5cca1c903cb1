import type { Locator, Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

const LAPTOP = { width: 1280, height: 720 };
const LARGE = { width: 1440, height: 900 };
const PHONE = { width: 390, height: 844 };

const PERMISSIONS = ["accounts.read", "audit.read", "keys.read", "requests.read", "roles.read", "usage.read"];

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
    const role = database.prepare(
      `INSERT INTO custom_roles (id, name, permissions, base, created_at_ms) VALUES (?, ?, ?, 'viewer', 0)`,
    );
    const adminKey = database.prepare(
      `INSERT INTO administration_keys (id, hash, display, name, account_id, permissions, created_at_ms)
       SELECT ?, ?, ?, ?, id, ?, 0 FROM accounts WHERE email = 'ada@example.com'`,
    );
    const entry = database.prepare(
      `INSERT INTO audit_entries (sequence, at_ms, action, actor_kind, actor_id, network, client, object_kind, object_id, result, before_json, after_json, hash)
       SELECT ?, ?, 'account_renamed', 'account', id, '127.0.0.0/24', 'Chrome on Linux', 'account', 'acct_3', 'done', '{"name":"Before"}', '{"name":"A name that is longer than a phone is wide"}', ''
       FROM accounts WHERE email = 'ada@example.com'`,
    );
    for (let index = 0; index < 10; index += 1) {
      role.run(`role_${index}`, `Auditor ${index}`, JSON.stringify(PERMISSIONS));
      adminKey.run(`ak_${index}`, `hash ${index}`, `pak_${index}…`, `program ${index}`, JSON.stringify(PERMISSIONS));
      entry.run(1_000_000 + index, Date.now() - index);
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

/** Returns the rows of a picture, in base64, whose pixels have different colours between two columns. */
function unevenRows(png: string, columns: readonly [left: number, width: number], rows: readonly number[]) {
  return page.evaluate<readonly number[]>(`(async () => {
    const image = await createImageBitmap(new Blob([Uint8Array.fromBase64("${png}")]));
    const context = new OffscreenCanvas(image.width, image.height).getContext("2d");
    context.drawImage(image, 0, 0);
    const [left, width] = ${JSON.stringify(columns)};
    const isEven = (row) => context.getImageData(left, row, width, 1).data.every((value, index, all) => value === all[index % 4]);
    return ${JSON.stringify(rows)}.filter((row) => !isEven(row));
  })()`);
}

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

  it("shows nothing of its content above its title and below its buttons", async () => {
    const { x, y, width, height } = (await dialog().boundingBox())!;
    const edges = [Math.round(y), Math.round(y + height) - 4].flatMap((first) =>
      [0, 1, 2, 3].map((row) => first + row),
    );
    for (const top of [417, 200, 60, 200, 137, 206, 209, 300, 309]) {
      await dialog().evaluate((element, to) => element.scrollTo(0, to), top);
      const png = (await page.screenshot()).toString("base64");
      expect([top, await unevenRows(png, [x + 30, width - 60], edges)]).toEqual([top, []]);
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

/** Pages whose rows are one line on wide screens, and two on phones. */
const LISTS = [
  ["/keys"],
  ["/models"],
  ["/admin/accounts"],
  ["/admin/roles"],
  ["/admin/keys"],
  ["/admin/audit"],
  ["/admin/providers"],
] as const;

describe("the lists", () => {
  it.each(LISTS)("have rows of one line on a laptop's screen: %s", async (path) => {
    await go(path, LAPTOP);
    expect(Math.max(...(await heightsOf(rows())))).toBeLessThanOrEqual(40);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  it("show twenty keys at once", async () => {
    await go("/keys", LARGE);
    expect(await countInView(rows(), LARGE.height)).toBeGreaterThanOrEqual(20);
  });

  it.each(LISTS)("have rows of two lines on a phone: %s", async (path) => {
    await go(path, PHONE);
    expect(Math.max(...(await heightsOf(rows())))).toBeLessThanOrEqual(64);
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  it.each([
    ["/admin/roles", "Auditor 3"],
    ["/admin/keys", "program 3"],
  ])("open what is cut, by the keyboard: %s", async (path, name) => {
    await go(path, PHONE);
    const row = rows().filter({ hasText: name });
    expect(await row.innerText()).toContain("accounts.read, audit.read");
    const opener = row.getByRole("button", { name, exact: true });
    await opener.press("Enter");
    await page
      .getByRole("definition")
      .filter({ hasText: PERMISSIONS.join(", ") })
      .waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.setViewportSize(PHONE);
    await opener.press("Enter");
    await page.getByRole("definition").first().waitFor({ state: "detached" });
    expect(await page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
  });

  it("have actor, object and change of an entry of the audit log in its second line on a phone", async () => {
    await go("/admin/audit", PHONE);
    const row = rows().filter({ hasText: "Account renamed" }).first();
    expect(await row.innerText()).toMatch(/Ada\s+· Person 3\s+· name: Before → A name that is longer/);
    await row.getByRole("button").press("Enter");
    await page.getByRole("dialog", { name: "Account renamed" }).getByText("Chrome on Linux").waitFor();
    await page.keyboard.press("Escape");
    await page.getByRole("dialog").waitFor({ state: "detached" });
  });

  it("tell the outcome of a test of a target below its row on a phone", async () => {
    await go("/admin/providers", PHONE);
    await rows()
      .nth(1)
      .getByRole("button", { name: /^Test connection to / })
      .click();
    await page
      .locator("[role=cell] > p")
      .getByText(/^Answered in [\d.]+ m?s\.$/)
      .waitFor();
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

describe("the account", () => {
  const sections = () => page.getByRole("navigation", { name: "Sections" });

  it("has links to its sections, which are addresses", async () => {
    await go("/account", LAPTOP);
    expect(await sections().getByRole("link").allInnerTexts()).toEqual([
      "Profile",
      "Password",
      "Authenticator app",
      "Sessions",
      "Aliases",
    ]);
    expect(await page.locator("main h2").allInnerTexts()).toEqual(await sections().getByRole("link").allInnerTexts());
    await sections().getByRole("link", { name: "Sessions" }).press("Enter");
    await expect.poll(() => sections().locator("[aria-current]").innerText()).toBe("Sessions");
    expect(new URL(page.url()).hash).toBe("#sessions");
    await page.reload();
    await page.locator("#sessions:target").waitFor();
    await expect.poll(() => sections().locator("[aria-current]").innerText()).toBe("Sessions");
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("is two columns on a laptop's screen, and one on a phone, whose links stay in view", async () => {
    await go("/account", LAPTOP);
    const [links, profile] = [await sections().boundingBox(), await page.locator("#profile").boundingBox()];
    expect(links!.x + links!.width).toBeLessThanOrEqual(profile!.x);
    await go("/account#aliases", PHONE);
    await page.locator("#aliases:target").waitFor();
    await expect.poll(() => sections().locator("[aria-current]").innerText()).toBe("Aliases");
    const box = (await sections().boundingBox())!;
    expect(box.y).toBeGreaterThanOrEqual(0);
    expect(box.y).toBeLessThan(PHONE.height / 4);
    expect((await page.locator("#aliases").boundingBox())!.y).toBeGreaterThanOrEqual(box.y + box.height);
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
