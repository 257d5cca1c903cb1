import { readFileSync } from "node:fs";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { answerJson, answerText, startUpstream, type Upstream } from "../product/support/upstream.ts";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";
import { postChat } from "../support/post-json.ts";

const SECRET = "the-key-at-the-provider";

let upstream: Upstream;
let site: Site;
let ada: Visit;
let key = "";

beforeAll(async () => {
  upstream = await startUpstream((exchange) => {
    const { request, response } = exchange;
    if (request.headers.authorization !== `Bearer ${SECRET}`)
      return answerJson(response, 401, { error: { message: "no such key" } });
    if (request.url === "/v1/models") return answerJson(response, 200, { data: [{ id: "one" }, { id: "two" }] });
    return answerText(exchange, "hi");
  });
  const file = {
    dialect: "openai",
    base_url: `${upstream.url}/v1`,
    allow_private: true,
    api_keys: ["a-key-of-the-file"],
  };
  site = await startSite({
    config: {
      stored_configuration: { allow_private: true },
      providers: { "from-file": file },
      models: { "in-file": { provider: "from-file", upstream_model: "one" } },
      retries: { base_ms: 50 },
    },
  });
  ada = await site.visit("/");
});
afterAll(async () => {
  await site?.close();
  await upstream?.close();
});

async function ask(model: string): Promise<number> {
  const response = await postChat(site.product.url, key, { model });
  await response.body?.cancel();
  return response.status;
}

async function open(page: Page): Promise<void> {
  await page.goto(`${site.product.url}/admin/configuration`);
  await page.getByRole("table", { name: "Entries" }).waitFor();
}

const row = (page: Page, name: string) => page.getByRole("row").filter({ has: page.getByText(name, { exact: true }) });

async function closed(page: Page): Promise<void> {
  await page.getByRole("dialog").first().waitFor({ state: "detached" });
}

// The steps depend on each other.
describe("the configuration in the dashboard", () => {
  it("leads from an empty database to the first answer of a new provider", async () => {
    const { page, complaints } = ada;
    const startedAt = performance.now();
    await setUp(page);
    key = await createKey(page, "first");
    await page.getByRole("link", { name: "Administration", exact: true }).click();
    await page.getByRole("link", { name: "Providers & models" }).click();
    await page.getByRole("table", { name: "Entries" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);

    await page.getByRole("button", { name: "Add provider" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Service").selectOption("Other");
    await dialog.getByLabel("Name").fill("acme");
    await dialog.getByLabel("Base URL").fill("ftp://nothing");
    await dialog.getByRole("button", { name: "Test connection" }).click();
    await dialog.locator("input[name=base_url][aria-invalid]").waitFor();
    await dialog.getByLabel("Base URL").fill(`${upstream.url}/v1`);
    await dialog.getByLabel("The address is in a private network").check();
    await dialog.getByLabel("API key").fill("another-key-at-the-provider");
    await dialog.getByRole("button", { name: "Test connection" }).click();
    await dialog.getByText("No list of models.").waitFor();
    expect(await dialog.getByRole("status").innerText()).toContain("HTTP 401");
    await dialog.getByLabel("API key").fill(SECRET);
    await dialog.getByRole("button", { name: "Test connection" }).click();
    await dialog.getByText("It lists 2 models.").waitFor();
    await dialog.getByLabel("one", { exact: true }).check();
    await dialog.getByLabel("Input, USD/M tokens").fill("cheap");
    await dialog.getByLabel("Output, USD/M tokens").fill("2");
    await dialog.getByRole("button", { name: "Save provider" }).click();
    await dialog.getByText("price.input: must be a number").waitFor();
    await dialog.getByLabel("Input, USD/M tokens").fill("1");
    await dialog.getByLabel("Other model").fill("three");
    await page.keyboard.press("Enter");
    await dialog.getByRole("button", { name: "Test connection" }).click();
    await dialog.getByText("one answered").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Save provider" }).click();
    await closed(page);
    await page.getByText("Saved as version 1, in force.").waitFor();
    await row(page, "acme").getByText("2 models").waitFor();
    await row(page, "acme").getByText("API key set just now").waitFor();
    expect(await ask("acme/one")).toBe(200);
    expect(performance.now() - startedAt).toBeLessThan(180_000);
    expect(await page.content()).not.toContain(SECRET);
    expect(complaints).toEqual([]);
  });

  it("shows what a file has as set there", async () => {
    const { page } = ada;
    const ofFile = row(page, "from-file");
    await ofFile.getByText("Configuration file").waitFor();
    expect(await ofFile.getByRole("button", { name: /^(Edit|Remove)/ }).count()).toBe(0);
    await ofFile.getByRole("button", { name: "View provider from-file" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByText("Set in the configuration file.").waitFor();
    expect(await dialog.innerText()).not.toContain("a-key-of-the-file");
    await dialog.getByRole("button", { name: "Close" }).click();
    await closed(page);
  });

  it("edits an entry as YAML, with line and column of a mistake", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Edit model acme/three" }).click();
    const dialog = page.getByRole("dialog");
    const text = dialog.getByLabel("Entry (YAML)");
    await text.fill("provider: acme\nupstream: one");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText(/^Line 2, column 1:/).waitFor();
    expect(await page.evaluate("document.activeElement.selectionStart")).toBe("provider: acme\n".length);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await text.fill("provider: acme\nupstream_model: two");
    await dialog.getByLabel("Comment").fill("three is two");
    await dialog.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await page.getByText("Saved as version 2, in force.").waitFor();
    expect(await ask("acme/three")).toBe(200);
    expect(upstream.exchanges.at(-1)?.body).toContain('"two"');
  });

  it("says what to do when somebody else has changed the configuration", async () => {
    const { page } = ada;
    const other = await page.context().newPage();
    await page.getByRole("button", { name: "Edit model acme/three" }).click();
    await page.getByLabel("Entry (YAML)").fill("provider: acme\nupstream_model: three");
    await open(other);
    await other.getByRole("button", { name: "Edit model acme/three" }).click();
    await other.getByLabel("Entry (YAML)").fill("provider: acme\nupstream_model: one");
    await other.getByRole("button", { name: "Save" }).click();
    await other.getByText("Saved as version 3").waitFor();
    await other.close();
    const dialog = page.getByRole("dialog");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("This entry has changed too").waitFor();
    expect(await dialog.getByRole("region", { name: "The entry now" }).innerText()).toContain("upstream_model: one");
    await dialog.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await page.getByText("Saved as version 4").waitFor();
  });

  it("adds an alias", async () => {
    const { page } = ada;
    await page.getByRole("button", { name: "Add entry" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Kind").selectOption("Alias");
    await dialog.getByLabel("Name").fill("chat");
    await dialog.getByLabel("Entry (YAML)").fill("acme/one");
    await dialog.getByRole("button", { name: "Add", exact: true }).click();
    await closed(page);
    await row(page, "chat").getByText("for acme/one").waitFor();
    expect(await ask("chat")).toBe(200);
  });

  it("replaces and removes an API key, after the password where it was given long ago", async () => {
    const { page } = ada;
    site.forgetPasswords();
    await page.getByRole("button", { name: "Set API key of acme" }).click();
    await page.getByRole("button", { name: "Remove …" }).click();
    await page.getByRole("button", { name: "Remove API key" }).click();
    const password = page.getByRole("dialog", { name: "Confirm your password" });
    await password.getByLabel("Password").fill(PASSWORD);
    await password.getByRole("button", { name: "Continue" }).click();
    await closed(page);
    await row(page, "acme").getByText("No API key").waitFor();
    expect(await ask("acme/one")).toBe(500);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Set API key of acme" }).click();
    await page.getByLabel("New API key").fill("with a space");
    await page.getByRole("button", { name: "Save API key" }).click();
    await page.locator("input[name=secret][aria-invalid]").waitFor();
    await page.getByLabel("New API key").fill(SECRET);
    await page.getByRole("button", { name: "Save API key" }).click();
    await closed(page);
    await row(page, "acme").getByText("API key set just now").waitFor();
    expect(await ask("acme/one")).toBe(200);
  });

  it("shows who changed what, and rolls back", async () => {
    const { page, complaints } = ada;
    await page.getByRole("link", { name: "Versions" }).click();
    const versions = page.getByRole("list", { name: "Versions" }).getByRole("listitem");
    await versions.first().getByText("Latest").waitFor();
    const second = versions.filter({ has: page.getByRole("heading", { name: "Version 2" }) });
    expect(await second.innerText()).toMatch(/three is two[^]*Ada/);
    await second.getByRole("button", { name: "Show changes of version 2" }).click();
    const change = second.getByRole("region", { name: "Model acme/three changed" });
    await change.getByText('- upstream_model: "three"').waitFor();
    await change.getByText("+ upstream_model: two").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Roll back to version 1" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Roll back" }).click();
    await closed(page);
    await page.getByText(/Saved as version \d+, in force\./).waitFor();
    await versions.first().getByText("roll back to version 1").waitFor();
    expect(await ask("chat")).toBe(404);
    expect(await ask("acme/one")).toBe(200);
    expect(complaints).toEqual([]);
  });

  it("exports the configuration, and imports it after a check", async () => {
    const { page, complaints } = ada;
    await open(page);
    const [saved] = await Promise.all([
      page.waitForEvent("download"),
      page.getByRole("button", { name: "Export" }).click(),
    ]);
    const document = readFileSync(await saved.path(), "utf8");
    expect(document).toContain("acme/one");
    expect(document).not.toContain(SECRET);
    await page.getByRole("button", { name: "Import" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Configuration (YAML)").fill(`${document}aliases: { chat: nothing }\n`);
    await dialog.getByRole("button", { name: "Check" }).click();
    await dialog.getByText(/^Line \d+, column \d+:/).waitFor();
    const file = { name: "new.yaml", mimeType: "application/yaml" };
    await dialog
      .getByLabel("File")
      .setInputFiles({ ...file, buffer: Buffer.from(`${document}aliases: { chat: acme/one }\n`) });
    await dialog.getByRole("button", { name: "Check" }).click();
    await dialog.getByText("Valid. Nothing is changed yet.").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await dialog.getByRole("button", { name: "Replace configuration" }).click();
    await closed(page);
    await row(page, "chat").waitFor();
    expect(complaints).toEqual([]);
  });

  it("changes a default limit at run time, and shows what the file sets", async () => {
    const { page } = ada;
    await open(page);
    const show = page.getByLabel("Show");
    await show.selectOption("Default limits");
    const limit = row(page, "requests_per_minute");
    expect(await limit.innerText()).toMatch(/Built in\s[\s\S]*\s600 Requests per minute/);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("button", { name: "Edit default limit requests_per_minute" }).click();
    const dialog = page.getByRole("dialog");
    await dialog.getByLabel("Entry (YAML)").fill("many");
    await dialog.getByRole("button", { name: "Save" }).click();
    await dialog.getByText("Line 1, column 1: must be a whole number from 1 to 1000000000").waitFor();
    await dialog.getByLabel("Entry (YAML)").fill("50");
    await dialog.getByRole("button", { name: "Save" }).click();
    await closed(page);
    await limit.getByText("Stored").waitFor();
    expect(await limit.innerText()).toContain("50");
    const response = await postChat(site.product.url, key, { model: "acme/three" });
    await response.body?.cancel();
    expect(response.headers.get("x-ratelimit-limit-requests")).toBe("50");
    await page.getByRole("button", { name: "Remove default limit requests_per_minute" }).click();
    await dialog.getByRole("button", { name: "Remove default limit" }).click();
    await limit.getByText("Built in").waitFor();
    await show.selectOption("Retries");
    await row(page, "base_ms").getByText("Configuration file").waitFor();
    expect(await page.getByRole("button", { name: "Edit retry base_ms" }).count()).toBe(0);
    expect(await page.getByRole("button", { name: "Edit retry cap_ms" }).count()).toBe(1);
    await show.selectOption("All");
  });

  it("removes a provider with its models", async () => {
    const { page, complaints } = ada;
    await page.getByRole("button", { name: "Remove alias chat" }).click();
    await page.getByRole("dialog").getByRole("button", { name: "Remove alias" }).click();
    await closed(page);
    await page.getByRole("button", { name: "Remove provider acme" }).click();
    await page.getByLabel("Remove its 2 models too").waitFor();
    await page.getByRole("dialog").getByRole("button", { name: "Remove provider" }).click();
    await closed(page);
    await expect.poll(() => row(page, "acme").count()).toBe(0);
    expect(await ask("acme/one")).toBe(404);
    expect(complaints).toEqual([]);
  });
});
