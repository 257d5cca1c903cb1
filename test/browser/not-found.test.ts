import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { setUp, type Site, startSite, type Visit } from "./support/site.ts";

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/");
  await setUp(visit.page);
});
afterAll(() => site?.close());

describe("an unknown URL", () => {
  it.each(["/nonsense", "/keys/a/b", "/admin/nothing", "/a/b/c"])(
    "shows an error page at %s, with status 404",
    async (path) => {
      const { page } = visit;
      const response = await page.goto(site.product.url + path);
      expect(response?.status()).toBe(404);
      await page.getByRole("heading", { name: "Page not found" }).waitFor();
      expect(await findBarriersEverywhere(page)).toEqual([]);
      await page.getByRole("link", { name: "Go to Overview" }).click();
      await page.getByRole("heading", { name: "Overview", exact: true }).waitFor();
    },
  );

  it("links to the sign-in page without a session", async () => {
    const { page } = await site.visit("/nonsense");
    await page.getByRole("heading", { name: "Page not found" }).waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("link", { name: "Sign in" }).click();
    await page.getByRole("heading", { name: "Sign in" }).waitFor();
  });

  it("with a trailing slash redirects to the page", async () => {
    const { page } = visit;
    await page.goto(`${site.product.url}/usage/?range=7d`);
    await page.getByRole("heading", { name: "Usage", exact: true }).waitFor();
    expect(page.url()).toBe(`${site.product.url}/usage?range=7d`);
  });
});
