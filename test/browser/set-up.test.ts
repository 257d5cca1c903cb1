import { afterEach, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { setUp, type Site, startSite } from "./support/site.ts";

let site: Site;
afterEach(() => site?.close());

/** A configuration with a trusted proxy counts as reachable by others. */
const EXPOSED = { http: { listen: "127.0.0.1:0", trusted_proxies: ["10.0.0.0/8"] } };

describe("the set-up of an exposed installation", () => {
  it("requires the setup token, and reads it from the printed link", async () => {
    site = await startSite({ config: EXPOSED });
    const visitor = await site.visit("/");
    await visitor.page.getByLabel("E-mail").fill("eve@example.com");
    await visitor.page.getByLabel("Password").fill("four unrelated words");
    await visitor.page.getByRole("button", { name: "Create" }).click();
    await visitor.page.getByText("requires the setup token").waitFor();
    expect(await findBarriersEverywhere(visitor.page)).toEqual([]);
    const [link = ""] = /\/sign-up#setup=[\w-]+/.exec(site.product.output.stdout) ?? [];
    const { page, complaints } = await site.visit(link);
    expect(await page.getByLabel("Setup token").inputValue()).toBe(link.split("=")[1]);
    await setUp(page);
    expect(page.url()).not.toContain("setup");
    expect(complaints).toEqual([]);
  });
});

describe("the set-up with closed sign-up", () => {
  it("shows the command that creates the first administrator", async () => {
    site = await startSite({ config: { sign_up: "closed" } });
    const { page } = await site.visit("/");
    await page.getByText("npx parley accounts create --role owner").waitFor();
    expect(await page.getByLabel("Password").count()).toBe(0);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    expect(site.product.output.stdout).toContain("npx parley accounts create --role owner");
  });
});
