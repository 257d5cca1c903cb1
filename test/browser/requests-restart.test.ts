import { rmSync } from "node:fs";
import OpenAI from "openai";
import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findFreePort } from "../support/free-port.ts";
import { makeHome, type Product, startProduct } from "../support/product.ts";
import { setUp, type Site, startSite } from "./support/site.ts";

const home = makeHome();
let config: object;
let site: Site;
let successor: Product | undefined;

beforeAll(async () => {
  config = { http: { listen: `127.0.0.1:${await findFreePort()}` } };
  site = await startSite({ home, config });
});
afterAll(async () => {
  await successor?.stop();
  await site?.close();
  rmSync(home, { recursive: true, force: true });
});

describe("the request log during a restart of Parley", () => {
  it("does not delay the shutdown, reconnects automatically, and shows the missed requests and those refused before", async () => {
    const { page, complaints } = await site.visit("/");
    await setUp(page);
    const watched = page.waitForResponse((response) => response.url().endsWith(".RequestService/Watch"));
    await page.getByRole("link", { name: "Requests" }).click();
    await watched;
    const refused = new OpenAI({ apiKey: site.product.firstKey, baseURL: `${site.product.url}/v1`, maxRetries: 0 });
    const asked = { model: "nothing", messages: [{ role: "user", content: "Hello!" }] } as const;
    await refused.chat.completions.create({ ...asked, messages: [...asked.messages] }).catch(() => undefined);
    site.product.signal("SIGTERM");
    await page.getByText("Reconnecting…").waitFor();
    expect(await site.product.ending).toEqual({ code: 0, signal: null });

    successor = await startProduct({ home, config });
    const client = new OpenAI({ apiKey: site.product.firstKey, baseURL: `${successor.url}/v1`, maxRetries: 0 });
    await client.chat.completions.create({ model: "alpha-haiku-4.5", messages: [{ role: "user", content: "Hello!" }] });
    await page.getByRole("row").filter({ hasText: "Success" }).waitFor({ timeout: 40_000 });
    await page.getByText("Reconnecting…").waitFor({ state: "detached" });
    await page.reload();
    const row = page.getByRole("row").filter({ hasText: "Refused: model not found" });
    await row.getByRole("link").click();
    await page.getByText("nothing", { exact: false }).first().waitFor();
    await page.getByText("Error message returned to the client:").waitFor();
    expect(complaints).toEqual([]);
  });
});
