import OpenAI from "openai";
import type { Page } from "playwright-core";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere, TABLE_SIZES } from "./support/accessibility.ts";
import { createKey, setUp, type Site, startSite } from "./support/site.ts";

let site: Site;
let page: Page;
let secret = "";

const CONFIG = { sign_up: "invited", breaker: { open_ms: 2000, max_open_ms: 2000 } };

beforeAll(async () => {
  site = await startSite({ config: CONFIG });
  ({ page } = await site.visit("/"));
  await setUp(page);
  secret = await createKey(page, "program");
});
afterAll(() => site?.close());

async function go(path: string, heading: string): Promise<void> {
  await page.goto(site.product.url + path);
  await page.getByRole("heading", { name: heading, exact: true, level: 1 }).waitFor();
}

/** Sends a request to the model that fails on demand. Returns the HTTP status. */
async function ask(content: string): Promise<number> {
  const client = new OpenAI({ apiKey: secret, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  try {
    await client.chat.completions.create({ model: "alpha-opus-4.5", messages: [{ role: "user", content }] });
    return 200;
  } catch (error) {
    return (error as { status: number }).status;
  }
}

describe("settings", () => {
  it("show the active configuration with its configuration keys", async () => {
    await go("/admin/settings", "Settings");
    await page.getByText("Invitation only").waitFor();
    await page.getByText("limits.requests_per_minute").waitFor();
    expect(await page.getByRole("main").innerText()).toMatch(/SQLite, schema \d+[\s\S]*alpha[\s\S]*anthropic dialect/);
    expect(await page.content()).not.toContain("simulated:");
    expect(await findBarriersEverywhere(page)).toEqual([]);
  });

  it("say which ones a restart changes, and which process waits for one", async () => {
    await page.getByText("overload.max_calls · changed by a restart").waitFor();
    expect(await page.getByText(/limits.concurrent_requests · /).count()).toBe(0);
    expect(await page.getByText("Restart needed").count()).toBe(0);
    site.product.writeConfig({ ...CONFIG, overload: { max_calls: 1234 }, limits: { concurrent_requests: 77 } });
    site.product.signal("SIGHUP");
    const waiting = page.getByRole("region", { name: "Restart needed" });
    await waiting.waitFor({ timeout: 40_000 });
    expect(await waiting.innerText()).toMatch(/: overload\.max_calls\s+The only process/);
    const row = page.locator("dl > div").filter({ hasText: "overload.max_calls" });
    expect(await row.innerText()).toMatch(/Restart needed\s+\S+ read: 1,234/);
    // The reload has applied the limit.
    await page.getByText("77", { exact: true }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    site.product.writeConfig(CONFIG);
    site.product.signal("SIGHUP");
    await waiting.waitFor({ state: "detached", timeout: 40_000 });
  }, 120_000);
});

describe("providers", () => {
  it("show a failing model, its circuit breaker and errors, and its recovery", async () => {
    await go("/admin/providers", "Provider health");
    const rows = page.getByRole("table", { name: "Targets" }).getByRole("row");
    const opus = rows.filter({ hasText: "alpha-opus-4.5" }).first();
    await opus.getByText("Healthy").waitFor();
    await opus.getByRole("button", { name: /^Test connection to alpha/ }).click();
    await opus.getByText(/^Answered in [\d.]+ m?s\.$/).waitFor();
    // Five consecutive failures open the breaker: three requests, two of them with a retry.
    for (let index = 0; index < 3; index += 1) {
      expect(await ask(`[[fault: status=529; id=${index}]]`)).toBe(503);
    }
    // The page refreshes automatically.
    await opus.getByText(/^(Circuit open|Ready to retry)$/).waitFor();
    await opus.getByRole("button", { expanded: false }).click();
    await page.getByText(/^Open since \d/).waitFor();
    await page
      .getByRole("definition")
      .getByText(/Provider unavailable \(5\)/)
      .waitFor();
    const failure = page.getByRole("list", { name: "Recent errors" }).getByRole("listitem").first();
    expect(await failure.innerText()).toMatch(/Provider unavailable\s+HTTP 529/);
    expect(await failure.getByRole("link").getAttribute("href")).toMatch(/^\/requests\/chatcmpl-/);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByLabel("Unhealthy only (1)").check();
    // The header, the target and its errors.
    await expect.poll(() => rows.count()).toBe(3);
    await expect.poll(() => ask("Write 3 words"), { timeout: 10_000 }).toBe(200);
    await opus.getByText("Degraded").waitFor();
  });

  it("show the last 24 hours and 30 days of a target, with numbers for each step", async () => {
    await go("/admin/providers", "Provider health");
    const targets = page.getByRole("table", { name: "Targets" });
    const opus = targets.getByRole("row").filter({ hasText: "alpha-opus-4.5" }).first();
    const strip = opus.getByRole("img", { name: /^Last 24 hours: / });
    // Each process writes its counts every ten seconds; the page reads them every minute.
    await expect
      .poll(
        async () => {
          await go("/admin/providers", "Provider health");
          return strip.getAttribute("aria-label");
        },
        { timeout: 30_000, interval: 1_000 },
      )
      .toMatch(/^Last 24 hours: \d+ attempts, 5 failed, [12] half hours? degraded or failing$/);
    expect(await strip.locator("title").last().textContent()).toMatch(/\d+ failed \([\d.]+%\): .*Provider unavailable/);
    expect(await strip.locator("title").count()).toBe(48);
    await opus.getByRole("button", { expanded: false }).click();
    const slider = page.getByRole("slider", { name: "Values of last 24 hours" });
    // Latencies can be written after the first reading.
    const timeout = 75_000;
    await page.getByRole("img", { name: /^Total, last 24 hours: p95 up to [\d.]+ m?s$/ }).waitFor({ timeout });
    await page.getByRole("img", { name: /^Total, last 30 days: p95 up to [\d.]+ m?s$/ }).waitFor({ timeout });
    await slider.focus();
    expect(await slider.getAttribute("aria-valuetext")).toMatch(
      /Provider unavailable.*; total p50 [\d.]+ m?s, p95 [\d.]+ m?s$/,
    );
    await page.keyboard.press("Home");
    expect(await slider.getAttribute("aria-valuetext")).toMatch(/: no attempts$/);
    const month = page.getByRole("img", { name: /^Last 30 days: / });
    expect(await month.getAttribute("aria-label")).toMatch(/attempts, 5 failed, 1 day degraded or failing$/);
    expect(await month.locator("title").count()).toBe(30);
    expect(await findBarriersEverywhere(page)).toEqual([]);
  }, 240_000);

  it("are lines of a table, found by name, sorted by the worst health first", async () => {
    await go("/admin/providers", "Provider health");
    const targets = page.getByRole("table", { name: "Targets" });
    const cells = targets.getByRole("cell");
    await targets.getByRole("button", { name: "Errors", exact: true }).press("Enter");
    await targets.getByRole("button", { name: "Errors", exact: true }).press("Enter");
    await expect.poll(() => cells.first().innerText()).toContain("alpha-opus-4.5");
    await targets.getByRole("button", { name: "Health", exact: true }).press("Enter");
    await expect.poll(() => cells.first().innerText()).toContain("alpha-opus-4.5");
    expect(await findBarriersEverywhere(page, TABLE_SIZES)).toEqual([]);
    await page.getByLabel("Find a target").fill("opus");
    await expect.poll(() => targets.getByText("alpha-haiku-4.5").count()).toBe(0);
    await page.getByLabel("Find a target").fill("no such thing");
    await page.getByText("No targets match.").waitFor();
  }, 180_000);
});
