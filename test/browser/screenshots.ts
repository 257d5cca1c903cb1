// npm run screenshots: writes screenshots of every page to screenshots/, and renews those of docs/images/.
import { mkdirSync } from "node:fs";
import { join } from "node:path";
import OpenAI from "openai";
import type { Page } from "playwright-core";
import { openStore } from "../../src/store/store.ts";
import { writeHistory } from "../support/history.ts";
import { stopChromium } from "./support/chromium.ts";
import { createKey, PASSWORD, setUp, startSite } from "./support/site.ts";

const folder = join(import.meta.dirname, "../../screenshots");
mkdirSync(folder, { recursive: true });
const site = await startSite({ config: { sign_up: "open" } });
const { page } = await site.visit("/");
// Also on a busy machine.
page.setDefaultTimeout(120_000);

/** Takes screenshots of the page in both sizes and themes. */
async function shoot(name: string): Promise<void> {
  for (const [size, width, height] of [
    ["1440", 1440, 900],
    ["390", 390, 844],
  ] as const) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
      await page.screenshot({ path: join(folder, `${name}-${size}-${colorScheme}.png`), fullPage: true });
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
}

const go = async (path: string, heading: string | RegExp): Promise<void> => {
  await page.goto(site.product.url + path);
  await page.getByRole("heading", { name: heading, exact: true }).waitFor();
  await settled(page);
};

/**
 * Waits until loading indicators are gone. Does not wait for an idle network, because the live log keeps a stream open.
 */
async function settled(shown: Page): Promise<void> {
  await shown
    .getByRole("status")
    .filter({ hasText: /^Loading/ })
    .first()
    .waitFor({ state: "detached" });
  await shown.waitForTimeout(300);
}

/** Takes a screenshot of the viewport for docs/images, in one size and theme. */
async function picture(
  name: string,
  { isPhone = false, colorScheme = "light" }: { isPhone?: boolean; colorScheme?: "light" | "dark" } = {},
): Promise<void> {
  await page.setViewportSize(isPhone ? { width: 390, height: 844 } : { width: 1280, height: 860 });
  await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
  await settled(page);
  await page.screenshot({ path: join(import.meta.dirname, "../../docs/images", `${name}.png`) });
  await page.setViewportSize({ width: 1440, height: 900 });
}

/** Takes screenshots of what the end users of a key have spent. */
async function shootEndUsers(): Promise<void> {
  const headers = { "content-type": "application/json" };
  const made = await page.request.post(`${site.product.url}/parley.console.v1.KeyService/Create`, {
    headers,
    data: {
      name: "Shop",
      attributionLimits: { endUserBudgetMicroUsd: "20000", endUserBudgetPeriod: "BUDGET_PERIOD_MONTH" },
    },
  });
  const { secret, key } = (await made.json()) as { secret: string; key: { id: string } };
  const client = new OpenAI({ apiKey: secret, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  for (let index = 0; index < 30; index += 1) {
    const messages = [{ role: "user", content: "How old is it?" }] as const;
    const user = `user-${index}@example.com`;
    await client.chat.completions
      .create({ model: "alpha-haiku-4.5", messages: [...messages], user, max_tokens: 50 })
      .catch(() => undefined);
  }
  await go(`/keys/${key.id}/end-users`, "End users of Shop");
  await shoot("end-users");
}

/** Takes screenshots of the administration with accounts, invitations and a failing model. */
async function shootAdministration(): Promise<void> {
  await go("/keys", "Keys");
  const apiKey = await createKey(page, "Trials");
  const client = new OpenAI({ apiKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  for (let index = 0; index < 3; index += 1) {
    const messages = [{ role: "user", content: `[[fault: status=529; id=${index}]]` } as const];
    await client.chat.completions.create({ model: "alpha-haiku-4.5", messages }).catch(() => undefined);
  }
  site.edit((database) => {
    const insert = database.prepare(
      "INSERT INTO accounts (id, name, email, role, password_hash, created_at_ms, disabled_at_ms) VALUES (?, ?, ?, ?, 'x', ?, ?)",
    );
    for (let index = 0; index < 40; index += 1) {
      const role = index % 9 === 3 ? "administrator" : "member";
      const nowMs = Date.now();
      const disabledAtMs = index % 11 === 5 ? nowMs - 10_000_000 : null;
      insert.run(
        `acct_${index}`,
        `Person ${index}`,
        `person-${index}@example.com`,
        role,
        nowMs - index * 8e6,
        disabledAtMs,
      );
    }
  });
  await go("/admin/invitations", "Invitations");
  await shoot("admin-invitations-none");
  await page.getByRole("button", { name: "Invite" }).click();
  await page.getByLabel("E-mail (optional)").fill("grace@example.com");
  await shoot("admin-invite");
  await page.getByRole("button", { name: "Create link" }).click();
  await page.getByTestId("invitation").waitFor();
  await shoot("admin-invite-link");
  await page.getByRole("button", { name: "I have copied it" }).click();
  for (const [path, heading] of [
    ["invitations", "Invitations"],
    ["accounts", "Accounts"],
    ["roles", "Roles"],
    ["teams", "Teams"],
    ["keys", "Administration keys"],
    ["configuration", "Providers & models"],
    ["configuration/versions", "Versions"],
    ["providers", "Provider health"],
    ["audit", "Audit log"],
    ["audit/receivers", "Receivers of the audit log"],
    ["settings", "Settings"],
  ] as const) {
    await go(`/admin/${path}`, heading);
    await shoot(`admin-${path.replace("/", "-")}`);
  }
  await go("/admin/providers", "Provider health");
  await page
    .getByRole("button", { name: /alpha-haiku/ })
    .first()
    .click();
  await shoot("admin-providers-open");
  await go("/admin/configuration", "Providers & models");
  await page.getByRole("button", { name: "Add provider" }).click();
  await page.getByRole("dialog").getByLabel("Service").waitFor();
  await shoot("admin-provider-add");
  await page.keyboard.press("Escape");
  await go("/models", "Models");
  await shoot("models-in-trouble");
  await picture("models", { isPhone: true, colorScheme: "dark" });
  await go("/admin/accounts", "Accounts");
  await page.getByLabel("Find an account").fill("person 7");
  await page.getByRole("button", { name: "Edit Person 7", exact: true }).click();
  await settled(page);
  await shoot("admin-account-edit");
  await page.keyboard.press("Escape");
  await page.getByRole("button", { name: "Disable Person 7", exact: true }).click();
  await page.getByRole("dialog", { name: "Disable account?" }).waitFor();
  await shoot("admin-account-disable");
  await page.keyboard.press("Escape");
  await page.goto(`${site.product.url}/sign-up#invitation=any`);
  await page.reload();
  await page.getByRole("heading", { name: "Already signed in" }).waitFor();
  await shoot("invited-signed-in");
}

try {
  await page.getByRole("heading", { name: "Set up Parley" }).waitFor();
  await shoot("set-up");
  await page.getByRole("button", { name: "Create" }).click();
  await page.locator("[aria-invalid]").first().waitFor();
  await shoot("set-up-wrong");
  await setUp(page);
  await settled(page);
  await shoot("keys-first");
  await page.getByRole("button", { name: "Revoke first key" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
  await page.getByText("No active keys").waitFor();
  await shoot("keys-none");

  await page.getByRole("button", { name: "Create key" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill("Production web app");
  await settled(page);
  await shoot("key-new");
  await page.locator("summary", { hasText: "Permissions" }).click();
  await page.getByLabel("Selected models only").check();
  await page.getByLabel("beta-3-pro-preview", { exact: true }).check();
  await page.getByLabel("alpha-haiku-4.5", { exact: true }).check();
  await page.locator("summary", { hasText: "Limits" }).click();
  await page.getByLabel("Requests per minute").fill("many");
  await page.getByLabel("Monthly budget").fill("2.50");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  await page.getByText("Must be a whole number").waitFor();
  await shoot("key-new-wrong");
  await page.getByLabel("Requests per minute").fill("600");
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  const secret = await page.getByTestId("secret").textContent();
  await shoot("key-secret");
  await page.getByLabel("Set up a client").selectOption("OpenAI SDK");
  await shoot("key-secret-sdk");
  await page.getByRole("button", { name: "I have saved it" }).click();

  const other = await createKey(
    page,
    "CI <script>alert(1)</script> with a name that goes on and on, because nobody stops it",
  );
  await createKey(page, "Laptop");
  for (const [apiKey, model] of [
    [secret, "alpha-haiku-4.5"],
    [other, "beta-3-pro-preview"],
    [other, "nothing"],
  ] as const) {
    const client = new OpenAI({ apiKey: apiKey ?? "", baseURL: `${site.product.url}/v1`, maxRetries: 0 });
    await client.chat.completions
      .create({ model, messages: [{ role: "user", content: "Hello, who are you?" }] })
      .catch(() => undefined);
  }
  await page.getByRole("button", { name: "Rotate Laptop" }).click();
  await settled(page);
  await shoot("key-rotate");
  await page.getByRole("dialog").getByRole("button", { name: "Rotate key" }).click();
  await page.getByRole("button", { name: "I have saved it" }).click();
  await go("/keys", "Keys");
  await page.getByRole("button", { name: "inactive key" }).click();
  await shoot("keys");
  await page.getByRole("button", { name: "Revoke CI" }).click();
  await page.getByRole("dialog").waitFor();
  await shoot("key-revoke");
  await page.keyboard.press("Escape");
  site.forgetPasswords();
  await page.getByRole("button", { name: "Revoke CI" }).click();
  await page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
  await page.getByRole("heading", { name: "Confirm your password" }).waitFor();
  await shoot("password");
  await page.getByRole("dialog", { name: "Confirm your password" }).getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Continue" }).click();
  await page.getByRole("dialog").first().waitFor({ state: "detached" });
  await go("/requests", "Requests");
  await shoot("requests");
  await page.getByRole("row").filter({ hasText: "Success" }).first().getByRole("link").click();
  await page.getByRole("heading", { name: "Details" }).waitFor();
  await settled(page);
  await shoot("request");
  await go("/requests?outcome=upstream_timeout", "Requests");
  await page.getByText("No requests match these filters.").waitFor();
  await shoot("requests-none");
  await go("/playground", "Playground");
  await page.getByLabel("Message", { exact: true }).waitFor();
  await shoot("playground-empty");
  for (const question of ["Say 60 words about lighthouses", "And what do the keepers do all day?"]) {
    await page.getByLabel("Message", { exact: true }).fill(question);
    await page.keyboard.press("Control+Enter");
    await page.getByRole("button", { name: "Stop" }).waitFor();
    await page.getByText("Completed", { exact: true }).waitFor();
  }
  await shoot("playground");
  await picture("playground", { colorScheme: "dark" });
  await page.getByRole("tab", { name: "Request" }).click();
  await page.locator("summary", { hasText: "Parameters" }).click();
  await page.getByLabel("Temperature").fill("3");
  await page.getByLabel("Message", { exact: true }).fill("Something new");
  await page.keyboard.press("Control+Enter");
  await page.getByRole("alert").waitFor();
  await shoot("playground-wrong");
  for (const [path, heading] of [
    ["/usage", "Usage"],
    ["/models", "Models"],
    ["/alerts", "Alerts"],
    ["/account", "Account"],
  ] as const) {
    await go(path, heading);
    await shoot(heading.toLowerCase());
  }
  const store = await openStore({ dataDir: join(site.product.home, "data"), databaseUrl: undefined });
  const made = await store.keys.list();
  const keyIds = made.map(({ id }) => id);
  await writeHistory(store.ledger, { days: 60, keyIds });
  await store.close();
  for (const [name, search] of [
    ["usage-by-model", ""],
    ["usage-of-a-day", "?range=24h&by=none"],
    ["usage-by-key", "?range=90d&by=key"],
    ["usage-of-an-hour", "?range=1h&by=outcome"],
  ] as const) {
    await go(`/usage${search}`, "Usage");
    await page.locator("canvas").first().waitFor();
    await shoot(name);
  }
  await go("/", "Overview");
  await shoot("overview");
  await picture("overview");
  await go("/usage", "Usage");
  await page.locator("canvas").first().waitFor();
  await picture("usage");
  await go(`/keys/${made.find(({ name }) => name === "Production web app")?.id}`, "Production web app");
  await page.locator("canvas").first().waitFor();
  await shoot("key");
  await go("/models/alpha-haiku-4.5", "alpha-haiku-4.5");
  await page.locator("canvas").first().waitFor();
  await shoot("model");
  await go(`/requests?key=${made.find(({ name }) => name === "Production web app")?.id}`, "Requests");
  await shoot("requests-of-a-key");
  await picture("requests");
  await page.getByRole("row").filter({ hasNotText: "Success" }).nth(1).getByRole("link").click();
  await page.getByRole("heading", { name: "Details" }).waitFor();
  await shoot("request-failed");
  // Followed by the version.
  await shootEndUsers();
  await go("/docs", /^API reference/);
  await shoot("docs");
  await shootAdministration();
  await go("/account", "Account");
  await page.setViewportSize({ width: 390, height: 844 });
  await page.getByRole("button", { name: "Menu" }).click();
  await page.screenshot({ path: join(folder, "menu-390-dark.png") });
  await page.getByRole("button", { name: "Sign out", exact: true }).click();
  await page.getByRole("heading", { name: "Sign in" }).waitFor();
  await shoot("sign-in");
  await page.getByLabel("E-mail").fill("ada@example.com");
  await page.getByLabel("Password").fill(`not ${PASSWORD}`);
  await page.getByRole("button", { name: "Sign in" }).click();
  await page.getByRole("alert").waitFor();
  await shoot("sign-in-wrong");
  await go("/sign-up", "Create an account");
  await shoot("sign-up");
} finally {
  await site.close();
  await stopChromium();
}
console.log(`see ${folder}`);
