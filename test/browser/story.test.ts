import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { createKey, PASSWORD, readSecret, setUp, type Site, startSite, type Visit } from "./support/site.ts";

let site: Site;
let visit: Visit;
let first = "";
let second = "";
let third = "";

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/");
});
afterAll(() => site?.close());

/** Sends a request with this key. Returns the answer. */
function ask(apiKey: string): Promise<string | null | undefined> {
  const client = new OpenAI({ apiKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
  const messages = [{ role: "user", content: "Hello!" }] as const;
  return client.chat.completions
    .create({ model: "alpha-haiku-4.5", messages: [...messages] })
    .then(({ choices }) => choices[0]?.message.content);
}

const listed = (name: string) =>
  visit.page.getByRole("table", { name: "Active keys" }).getByRole("row").filter({ hasText: name });

/** The current key of the web app, without its rotated predecessors. */
const working = () => listed("web app").filter({ hasNotText: "Rotated, expires" });

/** Returns the HTTP status of a failed request with this key. */
const statusOf = (apiKey: string): Promise<unknown> =>
  ask(apiKey).catch((error: { readonly status: number }) => error.status);

// The steps depend on each other.
describe("the first day with Parley", () => {
  it("starts with the owner's account", async () => {
    await visit.page.getByRole("heading", { name: "Set up Parley" }).waitFor();
    await setUp(visit.page);
    expect(await visit.page.getByText("ada@example.com").count()).toBe(1);
    expect(await visit.page.getByText("Owner", { exact: true }).count()).toBe(1);
  });

  it("lists the key that was printed at startup", async () => {
    await listed("first key").waitFor();
    expect(await listed("first key").innerText()).toContain(site.product.firstKey.slice(-4));
  });

  it("creates a key that works immediately", async () => {
    first = await createKey(visit.page, "web app");
    expect(first).toMatch(/^sk_parley_\w{46}$/);
    expect(await ask(first)).toBeTruthy();
  });

  it("shows completed requests live", async () => {
    const watched = visit.page.waitForResponse((response) => response.url().endsWith(".RequestService/Watch"));
    await visit.page.getByRole("link", { name: "Requests" }).click();
    await watched;
    const served = visit.page.getByRole("row").filter({ hasText: "web app" }).filter({ hasText: "Success" });
    await expect.poll(() => served.count()).toBe(1);
    await ask(first);
    await expect.poll(() => served.count()).toBe(2);
    await visit.page.getByRole("link", { name: "Keys" }).click();
  });

  it("shows last use and cost of the key", async () => {
    await expect
      .poll(async () => {
        await visit.page.reload();
        return listed("web app").innerText({ timeout: 5_000 });
      })
      .toMatch(/just now[\s\S]*\$0\.0/);
  });

  it("requires password confirmation for an old session, and then continues", async () => {
    site.forgetPasswords();
    await visit.page.getByRole("button", { name: "Rotate web app" }).click();
    await visit.page.getByRole("button", { name: "Rotate key" }).click();
    const dialog = visit.page.getByRole("dialog", { name: "Confirm your password" });
    await dialog.getByLabel("Password").fill(`not ${PASSWORD}`);
    await dialog.getByRole("button", { name: "Continue" }).click();
    await dialog.getByText("Wrong password.").waitFor();
    await dialog.getByLabel("Password").fill(PASSWORD);
    await dialog.getByRole("button", { name: "Continue" }).click();
    second = await readSecret(visit.page);
    expect(second).not.toBe(first);
  });

  it("leaves both keys working after the rotation", async () => {
    expect(await Promise.all([ask(first), ask(second)])).toEqual([expect.any(String), expect.any(String)]);
    await listed("Rotated, expires in 24 hours").waitFor();
  });

  it("stops the old key immediately if requested", async () => {
    await working().getByRole("button", { name: "Rotate web app" }).click();
    await visit.page.getByLabel("Keep the old key active").selectOption("Revoke immediately");
    await visit.page.getByRole("button", { name: "Rotate key" }).click();
    third = await readSecret(visit.page);
    expect(await statusOf(second)).toBe(401);
    expect(await ask(third)).toBeTruthy();
  });

  it("rejects a revoked key within a second, and the predecessor in its grace period", async () => {
    await working().getByRole("button", { name: "Revoke web app" }).click();
    expect(await visit.page.getByLabel("Also revoke the keys it replaced").isChecked()).toBe(true);
    await visit.page.getByRole("dialog").getByRole("button", { name: "Revoke key" }).click();
    await expect.poll(() => statusOf(third), { timeout: 1000 }).toBe(401);
    await visit.page.getByRole("dialog").first().waitFor({ state: "detached" });
    expect(await listed("web app").count()).toBe(0);
    expect(await statusOf(first)).toBe(401);
  });

  it("shows the usage", async () => {
    await visit.page.getByRole("link", { name: "Usage" }).click();
    await visit.page.getByLabel("Group by").selectOption("Key");
    await expect.poll(() => visit.page.getByRole("row", { name: /^web app/ }).count()).toBeGreaterThan(0);
    await visit.page.getByLabel("Group by").selectOption("Model");
    await visit.page
      .getByRole("row", { name: /^alpha-haiku-4.5 \d+ / })
      .first()
      .waitFor();
  });

  it("ends the session at sign-out", async () => {
    const cookies = await visit.page.context().cookies();
    await visit.page.getByRole("button", { name: "Sign out" }).click();
    await visit.page.getByRole("heading", { name: "Sign in" }).waitFor();
    // The remaining cookie identifies a known browser and grants no access.
    expect((await visit.page.context().cookies()).map(({ name }) => name)).toEqual(["browser"]);
    // The old cookie does not restore the session.
    await visit.page.context().addCookies(cookies);
    await visit.page.reload();
    await visit.page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  it("causes no browser errors", () => {
    expect(visit.complaints).toEqual([]);
  });
});
