import { DatabaseSync } from "node:sqlite";
import { join } from "node:path";
import type { BrowserContext, BrowserContextOptions, Page } from "playwright-core";
import { type Product, type ProductOptions, startProduct } from "../../support/product.ts";
import { sharedChromium } from "./chromium.ts";

/** A browser context with a page of the dashboard. */
export interface Visit {
  readonly page: Page;
  /** Browser errors so far: script errors, violations of the content security policy, missing files. */
  readonly complaints: string[];
}

/** A running product, and its visitors in the browser of the process. */
export interface Site {
  readonly product: Product;
  /** Opens a path in a new browser context, without cookies. */
  visit(path: string, options?: BrowserContextOptions): Promise<Visit>;
  /** Changes the database directly. */
  edit(change: (database: DatabaseSync) => void): void;
  /** Makes the last password confirmation of all sessions an hour older. */
  forgetPasswords(): void;
  close(): Promise<void>;
}

/** A valid password. */
export const PASSWORD = "four unrelated words";

/** Starts the product with the simulator. */
export async function startSite(options: ProductOptions = {}): Promise<Site> {
  const product = await startProduct(options);
  const contexts: BrowserContext[] = [];
  const edit: Site["edit"] = (change) => {
    const database = new DatabaseSync(join(product.home, "data/parley.db"));
    database.exec("PRAGMA busy_timeout = 5000");
    change(database);
    database.close();
  };
  return {
    product,
    edit,
    async visit(path, contextOptions) {
      const browser = await sharedChromium();
      const context = await browser.newContext({ viewport: { width: 1440, height: 900 }, ...contextOptions });
      contexts.push(context);
      return visit(context, product.url + path);
    },
    forgetPasswords: () =>
      edit((database) => database.exec("UPDATE sessions SET authenticated_at_ms = authenticated_at_ms - 3600000")),
    async close() {
      await Promise.all(contexts.map((context) => context.close()));
      await product.stop();
    },
  };
}

async function visit(context: BrowserContext, url: string): Promise<Visit> {
  await context.grantPermissions(["clipboard-read", "clipboard-write"]);
  const page = await context.newPage();
  page.setDefaultTimeout(30_000);
  const complaints: string[] = [];
  page.on("pageerror", (error) => complaints.push(String(error)));
  page.on("console", (message) => {
    // The browser reports refused calls as errors, but the page handles them.
    const isRefusal =
      message.text().startsWith("Failed to load resource") && message.location().url.includes("/parley.console.v1.");
    if (!isRefusal && ["error", "warning"].includes(message.type())) complaints.push(message.text());
  });
  await page.goto(url);
  return { page, complaints };
}

/** Creates the first account, which is then signed in, and opens the list of keys. */
export async function setUp(page: Page, email = "ada@example.com"): Promise<void> {
  await page.getByLabel("E-mail").fill(email);
  await page.getByLabel("Name (optional)").fill("Ada");
  await page.getByLabel("Password").fill(PASSWORD);
  await page.getByRole("button", { name: "Create" }).click();
  await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
  await openKeys(page);
}

/** Opens the list of keys by the navigation. */
export async function openKeys(page: Page): Promise<void> {
  await page.getByRole("navigation", { name: "Pages" }).getByRole("link", { name: "Keys" }).click();
  await page.getByRole("heading", { name: "Keys", exact: true }).waitFor();
}

/** Creates a key with default settings. Returns its secret after closing the dialog. */
export async function createKey(page: Page, name: string): Promise<string> {
  await page.getByRole("button", { name: "Create key" }).first().click();
  await page.getByLabel("Name", { exact: true }).fill(name);
  await page.getByRole("dialog").getByRole("button", { name: "Create key" }).click();
  return readSecret(page);
}

/** Returns the displayed secret, and closes its dialog. */
export async function readSecret(page: Page): Promise<string> {
  const secret = (await page.getByTestId("secret").textContent()) ?? "";
  await page.getByRole("button", { name: "I have saved it" }).click();
  await page.getByRole("dialog").first().waitFor({ state: "detached" });
  return secret;
}
