import { execFile } from "node:child_process";
import { promisify } from "node:util";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { FAILURE_TABLE } from "../../src/inbound/failure-table.ts";
import { chatRequest } from "../../src/formats/openai-chat/schema.ts";
import { findBarriers, SIZES } from "./support/accessibility.ts";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

const run = promisify(execFile);

/** Maximum size of the JavaScript, compressed: Redoc, React and the page. */
const MAX_BYTES = 290_000;

/** Lets the page find no idle time until `beIdle` is called. */
const BUSY = `
  const idle = requestIdleCallback.bind(globalThis);
  const waiting = [];
  globalThis.requestIdleCallback = (callback) => waiting.push(callback);
  globalThis.beIdle = () => {
    globalThis.requestIdleCallback = idle;
    waiting.forEach((callback) => idle(callback));
  };`;

/** Adds two barriers to the last section, which is out of view. */
const PLANT_BARRIERS = `(() => {
  const text = document.createElement("p");
  text.textContent = "pale";
  Object.assign(text.style, { color: "#888888", backgroundColor: "#777777" });
  [...document.querySelectorAll("[data-section-id]")].at(-1).append(document.createElement("img"), text);
})()`;

/** Lays out the sections that are out of view: until then they have the styles that they had in view last. */
const LAY_OUT = `document.querySelectorAll(".late-section").forEach(({ style }) => (style.contentVisibility = "visible"))`;

let site: Site;
let visit: Visit;
const requestedUrls: string[] = [];
/** Of the page before it was idle. */
let rendered: { readonly empty: number; readonly last: string | null };

beforeAll(async () => {
  site = await startSite();
  // In the first theme of the tests of accessibility: another one renders the page again.
  visit = await site.visit("/openapi.json", { colorScheme: "dark" });
  // By far the longest page: a new layout of it takes seconds on a busy machine.
  visit.page.setDefaultTimeout(60_000);
  visit.page.on("request", (request) => requestedUrls.push(request.url()));
  await visit.page.addInitScript(BUSY);
  await visit.page.goto(`${site.product.url}/docs`);
  await visit.page.getByRole("heading", { name: "API reference" }).waitFor();
  rendered = { empty: await empty().count(), last: await last().textContent() };
  await visit.page.evaluate("beIdle()");
});
afterAll(() => site?.close());

const search = () => visit.page.getByRole("textbox", { name: "search" });
/** Sections that are not rendered yet. */
const empty = () => visit.page.locator(".redoc-wrap [data-section-id]:empty");
const last = () => visit.page.locator(".redoc-wrap [data-section-id]").last();
const found = () => visit.page.locator('[data-role="search:results"]').getByRole("menuitem");

describe("the API reference", () => {
  it("renders what is in view, and the rest while the browser is idle", { timeout: 120_000 }, async () => {
    expect(rendered.empty).toBeGreaterThan(100);
    expect(rendered.last).toBe("");
    await expect.poll(() => empty().count(), { timeout: 100_000 }).toBe(0);
    expect(await last().textContent()).toContain((await last().getAttribute("id"))?.replace(/.*\//, ""));
  });

  it("shows the operations, and every field of a completion request", async () => {
    const { page } = visit;
    await page.getByRole("heading", { name: "Create a chat completion" }).waitFor();
    const operation = page.locator('[id="operation/createChatCompletion"]');
    const names = await operation.locator("td[kind=field] .property-name").allTextContents();
    expect(Object.keys(chatRequest.shape).filter((name) => !names.includes(name))).toEqual([]);
    const row = operation.locator("tr").filter({ hasText: /^\s*seed/ });
    expect(await row.first().textContent()).toContain("Asks for a repeatable answer");
  });

  it("loads nothing from other hosts", () => {
    const others = requestedUrls.filter((url) => !url.startsWith(site.product.url) && !/^(data|blob):/.test(url));
    expect(others).toEqual([]);
    expect(requestedUrls).toContain(`${site.product.url}/openapi.json`);
  });

  it(`loads at most ${MAX_BYTES / 1000} kB of JavaScript`, async () => {
    const bytes = await visit.page.evaluate<number>(
      `performance.getEntriesByType("resource").filter(({ name }) => name.endsWith(".js"))
        .reduce((total, { encodedBodySize }) => total + encodedBodySize, 0)`,
    );
    console.log(`/docs: ${bytes} bytes of JavaScript, compressed`);
    expect(bytes).toBeLessThanOrEqual(MAX_BYTES);
  });

  it("has every failure, at the URL that the dashboard links to", async () => {
    const missing = await visit.page.evaluate<string[]>(
      `${JSON.stringify(Object.keys(FAILURE_TABLE))}.filter((code) => !document.getElementById("section/Errors/" + code))`,
    );
    expect(missing).toEqual([]);
  });

  it.each([
    ["a field", "fallback_models", "Create a chat completion"],
    ["a nested field", "thought_signature", "ExtraContent"],
    ["an error", "budget_spent", "budget_spent"],
    ["a message of the contract", "PartDelta", "parley.v1.PartDelta"],
    ["an unsupported endpoint", "fine-tuning", "Not offered"],
  ])("finds %s", async (_, query, title) => {
    await search().fill(query);
    await expect.poll(() => found().filter({ hasText: title }).count()).toBeGreaterThan(0);
  });

  it("supports keyboard navigation", async () => {
    const { page } = visit;
    await search().fill("budget_spent");
    await found().filter({ hasText: "budget_spent" }).first().waitFor();
    await page.keyboard.press("ArrowDown");
    await page.keyboard.press("Enter");
    await expect.poll(() => new URL(page.url()).hash).not.toBe("");
    await page.keyboard.press("Escape");
    await search().focus();
    await page.keyboard.press("Tab");
    const entry = page.locator(":focus");
    expect(await entry.getAttribute("role")).toBe("menuitem");
    await page.keyboard.press("Enter");
    await expect.poll(() => entry.getAttribute("aria-expanded")).toBe("true");
  });

  it("scrolls to the error in the URL", async () => {
    const { page } = await site.visit("/docs#section/Errors/rate_limited");
    const top = () =>
      page.evaluate<number>(
        `document.getElementById("section/Errors/rate_limited")?.getBoundingClientRect().top ?? -1`,
      );
    await expect.poll(top, { timeout: 45_000 }).toBeGreaterThan(0);
    await expect.poll(top).toBeLessThan(300);
    await page.context().close();
  });

  it("shows its contents behind a button on narrow screens", async () => {
    const { page } = visit;
    await page.setViewportSize({ width: 390, height: 844 });
    const entry = page.getByRole("menuitem", { name: "Errors", exact: true });
    await expect.poll(() => entry.isVisible()).toBe(false);
    await page.getByRole("button", { name: "Contents", exact: true }).click();
    await expect.poll(() => entry.isVisible()).toBe(true);
    await page.getByRole("button", { name: "Close" }).click();
    await expect.poll(() => entry.isVisible()).toBe(false);
    await page.setViewportSize({ width: 1440, height: 900 });
  });

  // The page is by far the longest: one test for each size. A theme has the same colours in every size.
  it.each(
    SIZES.map(([width, height], index) => ({
      width,
      height,
      theme: index === 0 ? ("dark" as const) : ("light" as const),
    })),
  )("has no accessibility violation at $width pixels, $theme", { timeout: 300_000 }, async ({ theme, ...size }) => {
    const { page } = visit;
    await page.setViewportSize(size);
    await page.emulateMedia({ colorScheme: theme, reducedMotion: "reduce" });
    await page.locator(`html[data-theme=${theme}]`).waitFor();
    await page.getByRole("heading", { name: "API reference" }).waitFor();
    await expect.poll(() => empty().count(), { timeout: 150_000 }).toBe(0);
    expect(await page.evaluate("document.documentElement.scrollWidth > innerWidth")).toBe(false);
    // Only those that were added: sections out of view are looked at, too.
    await page.evaluate(LAY_OUT);
    await page.evaluate(PLANT_BARRIERS);
    const planted = [/^color-contrast /, /^image-alt /].map((barrier): unknown => expect.stringMatching(barrier));
    expect((await findBarriers(page)).toSorted()).toEqual(planted);
  });

  it("has a program that runs as pasted, with a key in the environment", async () => {
    const { page } = visit;
    await page.setViewportSize({ width: 1440, height: 900 });
    const operation = page.locator('[id="operation/createChatCompletion"]');
    await operation.getByRole("tab", { name: "curl" }).click();
    const program = (await operation
      .getByRole("tabpanel")
      .filter({ hasText: "curl -N" })
      .locator("pre")
      .textContent())!;
    const { stdout } = await run("bash", ["-c", program], {
      cwd: site.product.home,
      env: { PATH: process.env["PATH"], PARLEY_API_KEY: site.product.firstKey },
      timeout: 30_000,
    });
    expect(stdout).toContain("data: [DONE]");
  });
});

describe("links to the reference and back", () => {
  it("exist without an account", async () => {
    const { page, complaints } = await site.visit("/docs");
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.getByRole("heading", { name: "Set up Parley" }).waitFor();
    await page.getByRole("link", { name: "API reference" }).click();
    await page.getByRole("heading", { name: "API reference" }).waitFor();
    expect(await page.title()).toBe("API reference · Parley");
    expect(complaints).toEqual([]);
  });

  it("are in the navigation of a session", async () => {
    const { page, complaints } = await site.visit("/");
    await setUp(page);
    await page.getByRole("link", { name: "API reference" }).click();
    await page.getByRole("heading", { name: "API reference" }).waitFor();
    await page.getByRole("link", { name: "Dashboard" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    expect(complaints).toEqual([]);
  });
});

it("the API reference causes no browser errors", () => {
  expect(visit.complaints).toEqual([]);
});
