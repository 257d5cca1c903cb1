import { readFileSync } from "node:fs";
import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { LedgerEntry } from "../../src/core/ledger.ts";
import { openStore } from "../../src/store/store.ts";
import { entry } from "../store/contracts/entries.ts";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";
import { postChat } from "../support/post-json.ts";

const DAY_MS = 86_400_000;
const HOSTILE_KEY = "=2+3 <img src=x onerror=alert(1)>";
const HOSTILE_MODEL = '"><script>alert(2)</script>';

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite({ config: { sign_up: "open" } });
  visit = await site.visit("/");
  await setUp(visit.page);
});
afterAll(() => site?.close());

/** Opens the usage page with this query, and waits for its figures. */
async function open(page: Page, search = ""): Promise<void> {
  await page.goto(`${site.product.url}/usage${search}`);
  await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
  await page.getByRole("definition").first().waitFor();
}

/** Returns the four key figures, without their change. */
async function figures(page: Page): Promise<Record<string, string>> {
  const names = ["Requests", "Tokens", "Cost", "Error rate"];
  const values = names.map((name) => figure(page, name).getByRole("definition").first().innerText());
  return Object.fromEntries((await Promise.all(values)).map((value, index) => [names[index], value]));
}

function figure(page: Page, name: string) {
  return page.locator("dl > div", { has: page.getByRole("term").getByText(name, { exact: true }) });
}

/** Returns the picture of the chart of requests. */
function pictureOf(page: Page): Promise<string> {
  const canvas = page.getByRole("region", { name: "Requests", exact: true }).locator("canvas");
  return canvas.evaluate<string, { toDataURL(): string }>((element) => element.toDataURL());
}

/** Returns the cells of the table of groups, by row. */
function groups(page: Page, by: string): Promise<string[][]> {
  const rows = page.getByRole("region", { name: `Usage by ${by}`, exact: true }).locator("table tr");
  return rows.evaluateAll((all) => all.map((row) => [...row.children].map(({ textContent }) => textContent ?? "")));
}

/** Inserts ledger entries, such as for other times, accounts or unknown models. */
async function write(entries: readonly Partial<LedgerEntry>[]): Promise<void> {
  const store = await openStore({ dataDir: join(site.product.home, "data"), databaseUrl: undefined });
  const at = ({ startedAtMs = Date.now() }: Partial<LedgerEntry>) => ({ startedAtMs, endedAtMs: startedAtMs });
  await store.ledger.insert(entries.map((each) => entry({ ...each, ...at(each) })));
  await store.close();
}

function keyIdOf(name: string): string {
  const database = new DatabaseSync(join(site.product.home, "data/parley.db"), { readOnly: true });
  const row = database.prepare("select id from api_keys where name = ?").get(name);
  database.close();
  return String(row?.["id"]);
}

describe("the usage page", () => {
  it("shows an empty state without usage, and does not load the chart library", async () => {
    const { page } = visit;
    await open(page);
    await page.getByText("No usage yet").waitFor();
    expect(await figures(page)).toEqual({ Requests: "0", Tokens: "0", Cost: "$0.00", "Error rate": "0%" });
    expect(await page.evaluate(CHART_FILES)).toEqual([]);
  });

  it("shows the same figures as reported to the official client", async () => {
    const { page } = visit;
    const client = new OpenAI({ apiKey: site.product.firstKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
    let tokens = 0;
    for (const model of ["alpha-haiku-4.5", "alpha-haiku-4.5", "beta-3-pro-preview"]) {
      const { usage } = await client.chat.completions.create({ model, messages: [{ role: "user", content: "Hello" }] });
      tokens += usage!.prompt_tokens + usage!.completion_tokens;
    }
    await open(page);
    expect(await figures(page)).toMatchObject({ Requests: "3", Tokens: String(tokens), "Error rate": "0%" });
    const rows = await groups(page, "model");
    expect(rows.map(([model, requests]) => [model, requests])).toEqual(
      expect.arrayContaining([
        ["alpha-haiku-4.5", "2"],
        ["beta-3-pro-preview", "1"],
        ["Total", "3"],
      ]),
    );
    expect(await page.evaluate(CHART_FILES)).toHaveLength(1);
    const link = page.getByRole("link", { name: "alpha-haiku-4.5" });
    expect(await link.getAttribute("href")).toMatch(/^\/requests\?model=alpha-haiku-4\.5&since=[^&]+Z&until=[^&]+Z$/);
  });

  it("compares with the previous period", async () => {
    const { page } = visit;
    const before = { startedAtMs: Date.now() - 30 * DAY_MS, keyId: "key_gone", servedModel: "old" };
    await write([before, { ...before, outcome: "upstream_timeout" }]);
    await open(page);
    await expect.poll(() => figure(page, "Requests").innerText()).toMatch(/▲ 50%\s+higher\s+vs previous 30 days/);
    expect(await figure(page, "Error rate").innerText()).toMatch(/▼ 50 points\s+lower\s+vs previous 30 days/);
    await open(page, "?range=90d");
    expect(await figures(page)).toMatchObject({ Requests: "5", "Error rate": "20%" });
    await expect.poll(() => figure(page, "Requests").innerText()).toContain("No data before");
  });

  it("compares charts with the previous period, until the reader turns it off", async () => {
    const { page } = visit;
    const asked = { Summarize: 0, GetLatency: 0, GetSpending: 0 };
    page.on("request", (request) => {
      const [, method] = /UsageService\/(\w+)$/.exec(request.url()) ?? [];
      if (method !== undefined) asked[method as keyof typeof asked] += 1;
    });
    await open(page);
    const plot = page.getByRole("region", { name: "Requests", exact: true });
    const legend = plot.getByRole("list");
    await expect.poll(() => legend.innerText()).toMatch(/Previous period\s+2\s+▲ 50%/);
    expect(await plot.getByRole("img").getAttribute("aria-label")).toContain("Previous period: 2 (50% higher now).");
    const withLine = await pictureOf(page);
    await plot.getByRole("slider").focus();
    const ago = new Intl.DateTimeFormat("en", { dateStyle: "medium" }).format(Date.now() - 30 * DAY_MS);
    await expect.poll(() => legend.innerText()).toContain(ago);
    expect(await plot.getByRole("slider").getAttribute("aria-valuetext")).toContain(`, ${ago} 2`);
    await plot.getByRole("slider").blur();
    await plot.getByText("Show table").click();
    const table = page.getByRole("region", { name: "Requests over time" });
    expect(await table.locator("tr").first().innerText()).toMatch(/Total\s+Previous period$/);
    expect(await table.locator("tbody tr").first().innerText()).toMatch(/\s2$/);
    const csv = await downloaded(page, "Requests over time");
    expect(csv.text.split("\r\n")[0]).toMatch(/,Total \(requests\),Previous period \(requests\)$/);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("switch", { name: "Compare with previous period" }).click();
    await expect.poll(() => legend.innerText()).not.toContain("Previous period");
    expect(await figure(page, "Requests").innerText()).not.toContain("previous");
    await expect.poll(() => pictureOf(page)).not.toBe(withLine);
    Object.assign(asked, { Summarize: 0, GetLatency: 0 });
    await open(page);
    await page.getByRole("region", { name: "Duration", exact: true }).waitFor();
    expect(asked).toMatchObject({ Summarize: 2, GetLatency: 1 });
    await page.goto(site.product.url);
    const onOverview = page.getByRole("switch", { name: "Compare with previous period" });
    expect(await onOverview.getAttribute("aria-checked")).toBe("false");
    await onOverview.click();
    await open(page);
    await expect.poll(() => legend.innerText()).toContain("Previous period");
  });

  it("is operated by keyboard, with its settings in the URL", async () => {
    const { page } = visit;
    await open(page);
    const choose = async (label: string, typed: string): Promise<void> => {
      await page.getByLabel(label, { exact: true }).focus();
      await page.keyboard.type(typed);
    };
    await choose("Period", "Last 90");
    await choose("Group by", "Status");
    await page.getByRole("region", { name: "Usage by status" }).getByText("Provider timeout").waitFor();
    await choose("Status", "All that");
    await expect.poll(async () => (await figures(page))["Requests"]).toBe("1");
    expect(new URL(page.url()).search).toBe("?range=90d&by=outcome&outcome=failed");
    await page.reload();
    await expect.poll(async () => (await figures(page))["Requests"]).toBe("1");
    await choose("Status", "All statuses");
    await choose("Key", "first");
    await expect.poll(async () => (await figures(page))["Requests"]).toBe("3");
    await choose("Model", "beta-3-pro-p");
    await expect.poll(async () => (await figures(page))["Requests"]).toBe("1");
    await choose("Account", "ada");
    expect(new URL(page.url()).searchParams.get("account")).toBe("acct_default");
  });

  it.each([1440, 390])("has no overlapping axis labels at a width of %i", async (width) => {
    const { page } = await site.visit("/sign-in", { viewport: { width, height: 900 } });
    await page.addInitScript(NOTE_LABELS);
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    for (const search of ["?range=1h", "?range=6h", "?range=24h", "?range=30d", "?range=1y"]) {
      await open(page, search);
      await expect.poll(() => page.locator("canvas").count()).toBe(5);
      expect(await page.evaluate<number>("globalThis.labels.length")).toBeGreaterThan(20);
      expect([search, await page.evaluate(COLLISIONS)]).toEqual([search, []]);
    }
    await page.context().close();
  });

  it("has chips of its filters, but not of the period and the grouping", async () => {
    const { page } = visit;
    await open(page, "?range=7d&by=key&model=alpha-haiku-4.5&session=thread-7");
    const chips = page.getByRole("group", { name: "Active filters" });
    await expect
      .poll(() => chips.getByRole("listitem").allTextContents())
      .toEqual(["Remove filter Model: alpha-haiku-4.5", "Remove filter Session: thread-7"]);
    await chips.getByRole("button", { name: "Remove filter Session: thread-7" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("?range=7d&by=key&model=alpha-haiku-4.5");
    await chips.getByRole("button", { name: "Clear all" }).click();
    await expect.poll(() => new URL(page.url()).search).toBe("?range=7d&by=key");
  });

  it("makes chart values accessible by slider and table", async () => {
    const { page } = visit;
    await open(page, "?by=none&range=7d");
    const plot = page.getByRole("region", { name: "Requests", exact: true });
    expect(await plot.getByRole("img").getAttribute("aria-label")).toMatch(/^Requests, per day: 3 total, peak on /);
    const legend = plot.getByRole("list");
    expect(await legend.innerText()).toMatch(/Success\s+3\s+Failed\s+0\s+Refused\s+0/);
    // Nothing is drawn of a period before without requests.
    await expect.poll(() => figure(page, "Requests").innerText()).toContain("No data before");
    expect(await legend.innerText()).not.toContain("Previous period");
    await plot.getByRole("img").hover();
    await expect.poll(() => legend.innerText()).toMatch(/Success\s+0\s+Failed\s+0\s+Refused\s+0/);
    await page.mouse.move(0, 0);
    await expect.poll(() => legend.innerText()).toMatch(/Success\s+3/);
    const slider = plot.getByRole("slider", { name: "Values of requests" });
    await slider.focus();
    expect(await slider.getAttribute("aria-valuetext")).toMatch(/^\w+ \d+, \d{4}: Success 3, Failed 0, Refused 0$/);
    await page.keyboard.press("ArrowLeft");
    expect(await slider.getAttribute("aria-valuetext")).toMatch(/: Success 0, Failed 0, Refused 0$/);
    await expect.poll(() => legend.innerText()).toMatch(/Success\s+0/);
    await page.keyboard.press("Tab");
    await page.keyboard.press("Enter");
    const rows = plot.getByRole("region", { name: "Requests over time" }).locator("tbody tr");
    await expect.poll(() => rows.count()).toBe(7);
    expect(await rows.first().innerText()).toMatch(/^\w+ \d+, \d{4}\s+3\s+0\s+0\s+3$/);
    await page.getByRole("region", { name: "Duration", exact: true }).getByText("Show table").click();
    await page.getByRole("region", { name: "Duration over time" }).getByText("3", { exact: true }).waitFor();
    await slider.focus();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await open(page);
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("redraws charts for another theme and width", async () => {
    const { page } = visit;
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    await open(page);
    const canvas = page.getByRole("region", { name: "Requests", exact: true }).locator("canvas");
    const picture = () => pictureOf(page);
    await page.getByText("Previous period", { exact: true }).first().waitFor();
    const width = () => canvas.evaluate((element) => element.getBoundingClientRect().width);
    const [light, wide] = [await picture(), await width()];
    await page.emulateMedia({ colorScheme: "dark", reducedMotion: "reduce" });
    await expect.poll(picture).not.toBe(light);
    await page.setViewportSize({ width: 390, height: 844 });
    await expect.poll(width).toBeLessThan(wide);
    await expect.poll(() => page.evaluate("document.documentElement.scrollWidth <= innerWidth")).toBe(true);
    await page.setViewportSize({ width: 1440, height: 900 });
    await page.emulateMedia({ colorScheme: "light", reducedMotion: "reduce" });
    await expect.poll(picture).toBe(light);
  });

  it("counts refused requests, also those without a valid key, by the minute", async () => {
    const { page } = visit;
    const post = (apiKey: string, model: string) =>
      postChat(site.product.url, apiKey, { model, messages: [{ role: "user", content: "Hello" }] });
    expect((await post(site.product.firstKey, "nothing")).status).toBe(404);
    expect((await post("sk_parley_wrong", "alpha-haiku-4.5")).status).toBe(401);
    const shown = async (search: string) => {
      await open(page, search);
      return [(await figures(page))["Requests"], (await figures(page))["Error rate"]];
    };
    await expect.poll(() => shown("?range=15m&outcome=model_not_found")).toEqual(["1", "100%"]);
    expect(await shown("?range=1h&outcome=unauthenticated")).toEqual(["1", "100%"]);
    expect(await figure(page, "Requests").innerText()).toContain("1 refused");
    const plot = page.getByRole("region", { name: "Requests", exact: true });
    expect(await plot.getByRole("img").getAttribute("aria-label")).toMatch(/^Requests by model, per minute: 1 total/);
    await open(page, "?range=24h&by=key&outcome=failed");
    await page.getByRole("region", { name: "Usage by key" }).getByRole("link", { name: "No valid key" }).click();
    await page.getByRole("row").filter({ hasText: "Refused: unauthenticated" }).waitFor();
    expect(new URL(page.url()).searchParams.get("key")).toBe("none");
  });

  it("shows days and hours in the reader's time zone, and a period of the reader's own", async () => {
    const timeZone = "America/Los_Angeles";
    const { page } = await site.visit("/sign-in", { timezoneId: timeZone });
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    const startedAtMs = Date.now() - 2 * DAY_MS;
    await write([{ startedAtMs, keyId: "key_zone" }]);
    await open(page, "?range=7d&by=none&key=key_zone");
    await page.getByRole("region", { name: "Requests", exact: true }).getByText("Show table").click();
    const day = new Intl.DateTimeFormat("en", { timeZone, dateStyle: "medium" }).format(startedAtMs);
    const rows = page.getByRole("region", { name: "Requests over time" }).locator("tbody tr");
    await expect.poll(() => rows.count()).toBe(7);
    expect(await rows.filter({ hasText: day }).innerText()).toMatch(/\s1\s+0\s+0\s+1(\s+0)?$/);
    await page.getByLabel("Period", { exact: true }).selectOption("Custom…");
    const local = (atMs: number) =>
      new Intl.DateTimeFormat("sv-SE", { timeZone, dateStyle: "short", timeStyle: "short" })
        .format(atMs)
        .replace(" ", "T");
    await page.getByLabel("From", { exact: true }).fill(local(startedAtMs - 3_600_000));
    await page.getByLabel("From", { exact: true }).blur();
    await page.getByLabel("To", { exact: true }).fill(local(startedAtMs + 3_600_000));
    await page.getByLabel("To", { exact: true }).blur();
    await expect.poll(async () => (await figures(page))["Requests"]).toBe("1");
    const search = new URL(page.url()).searchParams;
    expect(Math.abs(Date.parse(search.get("since")!) - (startedAtMs - 3_600_000))).toBeLessThan(60_000);
    await page.getByLabel("To", { exact: true }).fill(local(startedAtMs - 7_200_000));
    await page.getByText("Must end after it begins").waitFor();
    await page.context().close();
  });

  it("escapes names on the page and formulas in CSV files", async () => {
    const { page } = visit;
    await page.goto(`${site.product.url}/keys`);
    await createKey(page, HOSTILE_KEY);
    const keyId = keyIdOf(HOSTILE_KEY);
    await write([{ keyId, servedModel: HOSTILE_MODEL, costMicroUsd: 9_000_000 }]);
    await open(page, "?by=key");
    expect((await groups(page, "key"))[1]?.[0]).toBe(HOSTILE_KEY);
    const csv = await downloaded(page, "Usage by key");
    expect(csv.name).toMatch(/^parley-usage-by-key-\d{4}-\d\d-\d\d-\d{4}-to-\d{4}-\d\d-\d\d-\d{4}\.csv$/);
    const [head, first] = csv.text.split("\r\n");
    expect(head).toBe(
      "key,name,requests,failed,refused,partial,estimated,prompt_tokens,cached_tokens,completion_tokens,reasoning_tokens,image_tokens,cost_usd,own_cost_usd",
    );
    expect(first).toBe(`${keyId},'${HOSTILE_KEY},1,0,0,0,0,10,2,5,1,0,9,0`);
    await open(page, "?by=model");
    expect((await groups(page, "model"))[1]?.[0]).toBe(HOSTILE_MODEL);
    await page.getByRole("region", { name: "Cost", exact: true }).getByText("Show table").click();
    const cost = await downloaded(page, "Cost over time");
    expect(cost.text.split("\r\n")[0]).toContain(`"""><script>alert(2)</script> (usd)"`);
    expect(cost.text.trim().split("\r\n").at(-1)).toMatch(/^\d{4}-\d\d-\d\d,9,/);
    expect(await page.locator("main img, main script").count()).toBe(0);
  });

  it("does not show usage of other accounts, and neither do its services", async () => {
    const visitor = await site.visit("/sign-up");
    const { page } = visitor;
    await page.getByLabel("E-mail").fill("bob@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Create" }).click();
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await open(page, `?by=key&key=${keyIdOf(HOSTILE_KEY)}`);
    await page.getByText("No requests match these filters.").waitFor();
    expect(await page.getByLabel("Account", { exact: true }).count()).toBe(0);
    await open(page, "?by=account");
    await page.getByText("No usage yet").waitFor();
    const call = (method: string, body: object): Promise<{ status: number; text: string }> =>
      page.evaluate(`fetch("/parley.console.v1.UsageService/${method}", {
        method: "POST",
        headers: { "content-type": "application/json" },
        body: ${JSON.stringify(JSON.stringify(body))},
      }).then(async (answer) => ({ status: answer.status, text: await answer.text() }))`);
    const filter = { accountId: "acct_default" };
    for (const [method, body] of [
      ["Summarize", { filter }],
      ["GetLatency", { filter }],
      ["GetSpending", filter],
    ] as const)
      expect(await call(method, body)).toMatchObject({ status: 403 });
    const { text } = await call("Summarize", { by: "USAGE_GROUPING_KEY", filter: { keyId: keyIdOf(HOSTILE_KEY) } });
    expect(JSON.parse(text)).not.toHaveProperty("rows");
    expect(visitor.complaints).toEqual([]);
  });

  it("matches the spending shown for keys and the account", async () => {
    const { page, complaints } = visit;
    await page.goto(`${site.product.url}/keys`);
    const key = page.getByRole("row").filter({ hasText: HOSTILE_KEY });
    await key.getByText("$9.00").waitFor();
    await key.getByRole("button", { name: "Rotate" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
    await page.getByRole("button", { name: "I have saved it" }).click();
    const successor = key.filter({ hasText: "Includes the keys it replaced" });
    await successor.getByText("$9.00").waitFor();
    await key.filter({ hasText: "Includes the key that replaced it" }).getByText("$9.00").waitFor();
    await page.goto(`${site.product.url}/account`);
    await page.getByText("Spent this month").waitFor();
    await page.getByText(/^\$9\.\d\d$/).waitFor();
    expect(complaints).toEqual([]);
  });
});

/** Script that records the position of each text drawn on a canvas. */
const NOTE_LABELS = `
  globalThis.labels = [];
  const { fillText } = CanvasRenderingContext2D.prototype;
  CanvasRenderingContext2D.prototype.fillText = function (text, x, y) {
    const { width, actualBoundingBoxAscent, actualBoundingBoxDescent } = this.measureText(text);
    const left = x - ({ center: width / 2, right: width, end: width }[this.textAlign] ?? 0);
    const box = { left, right: left + width, top: y - actualBoundingBoxAscent, bottom: y + actualBoundingBoxDescent };
    globalThis.labels.push({ canvas: this.canvas, text, ...box });
    return fillText.call(this, text, x, y);
  };
`;

/**
 * Pairs of texts on one canvas that overlap, or have less than 6 pixels between them vertically. The same text redrawn
 * at the same place is not a pair.
 */
const COLLISIONS = `globalThis.labels.filter(({ canvas }) => canvas.isConnected).flatMap((one, index, all) =>
  all.slice(index + 1)
    .filter((other) => other.canvas === one.canvas && (other.text !== one.text || other.left !== one.left))
    .filter((other) => one.left < other.right && other.left < one.right && one.top < other.bottom + 6 && other.top < one.bottom + 6)
    .map((other) => [one.text, other.text]))`;

/** Loaded files of the chart library. */
const CHART_FILES = `performance.getEntriesByType("resource").map(({ name }) => name).filter((name) => /\\/chart-[^/]*\\.js$/.test(name))`;

async function downloaded(page: Page, label: string): Promise<{ name: string; text: string }> {
  const [file] = await Promise.all([
    page.waitForEvent("download"),
    page.getByRole("button", { name: `Download CSV: ${label}` }).click(),
  ]);
  return { name: file.suggestedFilename(), text: readFileSync(await file.path(), "utf8") };
}
