import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { answerText, startUpstream, type Upstream } from "../product/support/upstream.ts";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, PASSWORD, setUp, type Site, startSite, type Visit } from "./support/site.ts";
import { postChat } from "../support/post-json.ts";

const SECRET = "a-key-of-the-account";

let upstream: Upstream;
let site: Site;
let ada: Visit;

beforeAll(async () => {
  upstream = await startUpstream((exchange) => answerText(exchange, "hi"));
  const local = {
    dialect: "openai",
    base_url: `${upstream.url}/v1`,
    allow_private: true,
    api_keys: ["a-key-of-the-operator"],
    account_credentials: "allowed",
  };
  const models = { tiny: { provider: "local", upstream_model: "t", price: { input: 1_000, output: 1_000 } } };
  site = await startSite({ config: { providers: { local }, models } });
  ada = await site.visit("/");
  await setUp(ada.page);
});
afterAll(async () => {
  await site?.close();
  await upstream?.close();
});

async function ask(key: string, model: string): Promise<number> {
  const response = await postChat(site.product.url, key, { model });
  await response.body?.cancel();
  return response.status;
}

const usedCredential = (): string | undefined => upstream.exchanges.at(-1)?.request.headers.authorization;

describe("the page of the account", () => {
  it("sets, shows and removes a credential, whose text it never gets back", async () => {
    const { page, complaints } = ada;
    const key = await createKey(page, "ada's");
    const bodies: string[] = [];
    page.on("response", (response) => {
      void response
        .text()
        .then((text) => bodies.push(text))
        .catch(() => undefined);
    });
    await page.goto(`${site.product.url}/account`);
    const panel = page.getByRole("region", { name: "Provider credentials" });
    const secret = panel.getByLabel("API key at the provider");
    await secret.fill("short");
    await panel.getByRole("button", { name: "Save credential" }).click();
    await panel.getByText("Must have 8 to 2048 characters").waitFor();
    await secret.fill(SECRET);
    await panel.getByRole("button", { name: "Save credential" }).click();
    await page.getByText("Credential saved. Requests use it").waitFor();
    expect(await secret.inputValue()).toBe("");
    const item = panel.getByRole("listitem").filter({ hasText: "local" });
    await item.getByText(/Set .* by you/).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    expect(await ask(key, "tiny")).toBe(200);
    expect(usedCredential()).toBe(`Bearer ${SECRET}`);

    site.forgetPasswords();
    await item.getByRole("button", { name: "Remove the credential for local" }).click();
    await page.getByRole("button", { name: "Remove credential" }).click();
    // The password was given too long ago.
    await page.getByRole("dialog").getByLabel("Password", { exact: true }).fill(PASSWORD);
    await page.getByRole("button", { name: "Continue" }).click();
    // While a dialog is open, the page is hidden from roles.
    await page.getByRole("dialog").first().waitFor({ state: "detached" });
    await panel.getByText(/Set .* by you/).waitFor({ state: "detached" });
    expect(await ask(key, "tiny")).toBe(200);
    expect(usedCredential()).toBe("Bearer a-key-of-the-operator");
    await page.reload();
    await panel.waitFor();
    expect(bodies.length).toBeGreaterThan(5);
    for (const body of bodies) expect(body).not.toContain(SECRET);
    expect(complaints).toEqual([]);
  });

  it("sets aliases, and says what is wrong with one", async () => {
    const { page, complaints } = ada;
    await page.goto(`${site.product.url}/account`);
    const panel = page.getByRole("region", { name: "Aliases" });
    const text = panel.getByLabel("One on each line");
    await text.fill("gpt-* = none");
    await panel.getByRole("button", { name: "Save aliases" }).click();
    await panel.getByText(/there is no model none/i).waitFor();
    await text.fill("gpt-5 = tiny\n\nclaude-* = tiny");
    await panel.getByRole("button", { name: "Save aliases" }).click();
    await page.getByText("Aliases saved.").waitFor();
    await page.reload();
    expect(await text.inputValue()).toBe("gpt-5 = tiny\nclaude-* = tiny");
    await page.goto(`${site.product.url}/keys`);
    expect(await ask(await createKey(page, "another"), "claude-9")).toBe(200);
    expect(complaints).toEqual([]);
  });
});
