import type { DatabaseSync } from "node:sqlite";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import type { Page } from "playwright-core";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";

/** A provider that cannot be reached, with more models than a select lists. */
const MANY_MODELS = {
  simulator: { enabled: true },
  providers: { far: { dialect: "openai", base_url: "http://127.0.0.1:9/v1", allow_private: true } },
  models: Object.fromEntries(
    Array.from({ length: 120 }, (_, index) => [
      `vendor/model-${index}`,
      { provider: "far", upstream_model: `m-${index}`, context_window: 9_000, max_output_tokens: 900 },
    ]),
  ),
};

/** Adds more accounts than a select lists. */
function addPeople(database: DatabaseSync): void {
  const insert = database.prepare(
    "INSERT INTO accounts (id, name, email, role, password_hash, created_at_ms) VALUES (?, ?, ?, 'developer', 'x', ?)",
  );
  for (let index = 0; index < 40; index += 1) {
    insert.run(`acct_${index}`, `Person ${index}`, `person-${index}@example.com`, Date.now());
  }
}

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite({ config: { sign_up: "open" } });
  visit = await site.visit("/");
});
afterAll(() => site?.close());

/** Presses Tab until the element with this label or text has the focus. */
async function tabTo(page: Page, name: string): Promise<void> {
  const label = `(document.activeElement.labels?.[0] ?? document.activeElement).textContent.trim()`;
  for (let presses = 0; presses < 60; presses += 1) {
    await page.keyboard.press("Tab");
    if ((await page.evaluate(label)) === name) return;
  }
  throw new Error(`Tab does not lead to ${name}`);
}

describe("accessibility of every page, at 1440 and 390 pixels, light and dark", () => {
  const barriers = () => findBarriersEverywhere(visit.page);

  it("reports violations that were added for the test: of colours in every size and theme, others in every size", async () => {
    const { page } = await site.visit("/sign-in");
    await page.getByRole("heading", { name: "Set up Parley" }).waitFor();
    await page.evaluate(`(() => {
      const text = document.createElement("p");
      text.textContent = "pale";
      Object.assign(text.style, { color: "#888888", backgroundColor: "#777777" });
      document.querySelector("main").append(document.createElement("img"), text);
    })()`);
    const found = (await findBarriersEverywhere(page)).map((barrier) => barrier.split(" ").slice(1, 5).join(" "));
    expect(found.toSorted()).toEqual([
      "at 1440 dark: color-contrast",
      "at 1440 light: color-contrast",
      "at 1440 light: image-alt",
      "at 390 dark: color-contrast",
      "at 390 light: color-contrast",
      "at 390 light: image-alt",
    ]);
  });

  it("has no violation before sign-in", async () => {
    const { page } = visit;
    await page.getByRole("heading", { name: "Set up Parley" }).waitFor();
    expect(await barriers()).toEqual([]);
    await page.getByRole("button", { name: "Create" }).click();
    await page.locator("[aria-invalid]").waitFor();
    expect(await barriers()).toEqual([]);
    await setUp(page);
    const visitor = await site.visit("/sign-in");
    await visitor.page.getByRole("heading", { name: "Sign in" }).waitFor();
    expect(await findBarriersEverywhere(visitor.page)).toEqual([]);
    await visitor.page.getByRole("link", { name: "Create an account" }).click();
    await visitor.page.getByRole("heading", { name: "Create an account" }).waitFor();
    expect(await findBarriersEverywhere(visitor.page)).toEqual([]);
  });

  it("has no violation in the overview, empty and with what needs attention", async () => {
    const { page } = visit;
    await page.goto(site.product.url);
    await page.getByRole("heading", { name: "First steps" }).waitFor();
    expect(await barriers()).toEqual([]);
    await page.goto(`${site.product.url}/keys`);
  });

  it("has no violation in the list of keys and its dialogs", async () => {
    const { page } = visit;
    await createKey(page, "laptop");
    expect(await barriers()).toEqual([]);
    await page.getByRole("button", { name: "Create key" }).click();
    for (const fold of ["Permissions", "Limits", "End users"]) await page.locator("summary", { hasText: fold }).click();
    await page.getByLabel("Selected models only").check();
    expect(await barriers()).toEqual([]);
    await page.getByLabel("Name", { exact: true }).fill("with limits");
    await page.getByLabel("alpha-haiku-4.5", { exact: true }).check();
    await page.getByLabel("Monthly budget").fill("5");
    await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
    await page.getByTestId("secret").waitFor();
    expect(await barriers()).toEqual([]);
    await page.getByRole("button", { name: "I have saved it" }).click();
    for (const act of ["Edit", "Rotate", "Revoke"]) {
      await page.getByRole("button", { name: `${act} laptop` }).click();
      await page.getByRole("dialog").waitFor();
      expect(await barriers()).toEqual([]);
      await page.keyboard.press("Escape");
      await page.getByRole("dialog").first().waitFor({ state: "detached" });
    }
    site.forgetPasswords();
    await page.getByRole("button", { name: "Revoke laptop" }).click();
    await page.getByRole("button", { name: "Revoke key" }).click();
    await page.getByLabel("Password", { exact: true }).waitFor();
    expect(await barriers()).toEqual([]);
    await page.getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("button", { name: "Show 1 inactive key" }).click();
    expect(await barriers()).toEqual([]);
  }, 180_000);

  it("has no violation in the request log and the page of a request", async () => {
    const { page } = visit;
    await page.goto(`${site.product.url}/requests`);
    await page.getByText("No requests yet").waitFor();
    expect(await barriers()).toEqual([]);
    const client = new OpenAI({ apiKey: site.product.firstKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
    for (const content of ["Hello!", "[[fault: status=503]]"]) {
      const messages = [{ role: "user", content }] as const;
      await client.chat.completions
        .create({ model: "alpha-haiku-4.5", messages: [...messages] })
        .catch(() => undefined);
    }
    const failed = page.getByRole("row").filter({ hasText: "Provider unavailable" });
    await failed.waitFor();
    await page.getByLabel("Find by ID").fill("req_nothing");
    await page.keyboard.press("Enter");
    await page.locator("[aria-invalid]").waitFor();
    expect(await barriers()).toEqual([]);
    await failed.getByRole("link").click();
    await page.getByRole("heading", { name: "Details" }).waitFor();
    expect(await barriers()).toEqual([]);
    await page.goto(`${site.product.url}/requests/req_nothing`);
    await page.getByText("Request not found").waitFor();
    expect(await barriers()).toEqual([]);
  });

  it.each(["Usage", "Models", "Account"])("has no violation in %s", async (name) => {
    await visit.page.goto(`${site.product.url}/${name.toLowerCase()}`);
    await visit.page.getByRole("heading", { name, exact: true }).waitFor();
    await visit.page.waitForLoadState("networkidle");
    expect(await barriers()).toEqual([]);
  });

  it("has no violation in the playground", async () => {
    const { page } = visit;
    await page.goto(`${site.product.url}/playground`);
    const message = page.getByLabel("Message", { exact: true });
    await message.waitFor();
    expect(await barriers()).toEqual([]);
    await page.getByLabel("Key", { exact: true }).selectOption({ label: "first key" });
    for (const fold of ["System message", "Parameters", "Tools", "Fallback models"]) {
      await page.locator("summary", { hasText: fold }).click();
    }
    await page.getByRole("button", { name: "Insert example" }).click();
    await page.getByLabel("Add a model").selectOption({ index: 1 });
    await page.getByLabel("Reasoning effort").selectOption("high");
    await message.fill("What is the weather in a_very_long_name_without_any_spaces_that_goes_on_and_on_and_on?");
    await page.getByRole("button", { name: "Send" }).click();
    await page.getByLabel("Result of get_weather").waitFor();
    for (const tab of ["Response", "Request", "Events"]) {
      await page.getByRole("tab", { name: tab }).click();
      expect(await barriers()).toEqual([]);
    }
    await page.getByLabel("Temperature").fill("3");
    await page.getByLabel("Result of get_weather").fill("clear");
    await page.getByRole("button", { name: "Send result" }).click();
    await page.getByRole("alert").waitFor();
    await page.locator("[data-role=user]").getByRole("button", { name: "Edit" }).click();
    expect(await barriers()).toEqual([]);
  }, 180_000);

  it.each([
    ["Accounts", "accounts"],
    ["Invitations", "invitations"],
    ["Provider health", "providers"],
    ["Audit log", "audit"],
    ["Settings", "settings"],
  ])("has no violation in the administration of %s", async (name, path) => {
    await visit.page.goto(`${site.product.url}/admin/${path}`);
    await visit.page.getByRole("heading", { name, exact: true }).waitFor();
    await visit.page.waitForLoadState("networkidle");
    expect(await barriers()).toEqual([]);
  });

  it("has no violation in the dialogs of the administration", async () => {
    const { page } = visit;
    await page.goto(`${site.product.url}/admin/invitations`);
    await page.getByRole("button", { name: "Invite" }).click();
    await page.getByLabel("E-mail (optional)").fill("no address");
    await page.getByRole("button", { name: "Create link" }).click();
    await page.locator("[aria-invalid]").waitFor();
    expect(await barriers()).toEqual([]);
    await page.getByLabel("E-mail (optional)").fill("bob@example.com");
    await page.getByRole("button", { name: "Create link" }).click();
    await page.getByTestId("invitation").waitFor();
    expect(await barriers()).toEqual([]);
    await page.getByRole("button", { name: "I have copied it" }).click();
    await page.getByRole("button", { name: /^Revoke the invitation/ }).click();
    await page.getByRole("dialog", { name: "Revoke invitation?" }).waitFor();
    expect(await barriers()).toEqual([]);
    await page.goto(`${site.product.url}/admin/accounts`);
    await page.getByRole("button", { name: "Edit Ada" }).click();
    await page.locator("summary", { hasText: "Limits" }).click();
    expect(await barriers()).toEqual([]);
    await page.goto(`${site.product.url}/sign-up#invitation=any`);
    await page.reload();
    await page.getByRole("heading", { name: "Already signed in" }).waitFor();
    expect(await barriers()).toEqual([]);
  });

  it("causes no browser errors", () => {
    expect(visit.complaints).toEqual([]);
  });
});

describe("a field of many choices", () => {
  it("has no violation while its list is open, also in a dialog and without a match", async () => {
    const many = await startSite({ config: MANY_MODELS });
    try {
      const { page } = await many.visit("/");
      await setUp(page);
      await page.goto(`${many.product.url}/requests`);
      const field = page.locator("input[role=combobox]").and(page.getByLabel("Model", { exact: true }));
      await field.click();
      await page.getByRole("option", { name: "vendor/model-7", exact: true }).waitFor();
      expect(await findBarriersEverywhere(page)).toEqual([]);
      await field.fill("nothing like it");
      await page.getByText("Nothing matches.").waitFor();
      expect(await findBarriersEverywhere(page)).toEqual([]);
      // Tab leaves the field and closes its list.
      await page.keyboard.press("Tab");
      await page.getByRole("region", { name: "Choices of Model" }).waitFor({ state: "detached" });
      many.edit(addPeople);
      await page.goto(`${many.product.url}/keys?create`);
      await page.getByRole("dialog").locator("input[role=combobox]").click();
      await page.getByRole("option", { name: "Person 7" }).waitFor();
      expect(await findBarriersEverywhere(page)).toEqual([]);
    } finally {
      await many.close();
    }
  }, 180_000);
});

describe("keyboard navigation", () => {
  it("can sign in, create a key and open another page", async () => {
    const { page, complaints } = await site.visit("/sign-in");
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
    await tabTo(page, "E-mail");
    await page.keyboard.type("ada@example.com");
    await tabTo(page, "Password");
    await page.keyboard.type(PASSWORD);
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    await tabTo(page, "Keys");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();

    await tabTo(page, "Create key");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").waitFor();
    // The dialog has the focus and traps it.
    await expect.poll(() => page.evaluate("document.activeElement.name")).toBe("name");
    await page.keyboard.type("by keyboard");
    await tabTo(page, "LimitsNone");
    await page.keyboard.press("Enter");
    await tabTo(page, "Requests per minute");
    await page.keyboard.type("30");
    await tabTo(page, "Create key");
    await page.keyboard.press("Enter");
    await page.getByTestId("secret").waitFor();
    await tabTo(page, "Set up a client");
    await page.keyboard.type("OpenAI");
    await page.getByText("from openai import OpenAI").waitFor();
    await tabTo(page, "I have saved it");
    await page.keyboard.press("Enter");
    await page.getByRole("dialog").first().waitFor({ state: "detached" });
    await page.getByRole("row").filter({ hasText: "by keyboard" }).getByText("30 requests/min").waitFor();
    // The focus returns to the button that opened the dialog.
    expect(await page.evaluate("document.activeElement.textContent")).toBe("Create key");

    await page.goto(`${site.product.url}/keys`);
    await tabTo(page, "Skip to content");
    await tabTo(page, "Models");
    await page.keyboard.press("Enter");
    await page.getByRole("heading", { name: "Models", exact: true }).waitFor();
    expect(await page.evaluate("document.activeElement.tagName")).toBe("H1");
    expect(complaints).toEqual([]);
  });
});

describe("the theme switch", () => {
  it("overrides the system theme, and is stored", async () => {
    const { page } = await site.visit("/sign-in", { colorScheme: "light" });
    await page.getByLabel("E-mail").fill("ada@example.com");
    await page.getByLabel("Password").fill(PASSWORD);
    await page.getByRole("button", { name: "Sign in" }).click();
    await page.getByText("Dark", { exact: true }).click();
    const background = () => page.evaluate<string>("getComputedStyle(document.body).backgroundColor");
    await expect.poll(background).toBe("rgb(17, 20, 22)");
    await page.reload();
    await expect.poll(background).toBe("rgb(17, 20, 22)");
    await page.getByText("Auto", { exact: true }).click();
    await expect.poll(background).toBe("rgb(246, 246, 243)");
  });
});
