import { afterAll, afterEach, beforeAll, describe, expect, it } from "vitest";
import { findBarriersEverywhere } from "./support/accessibility.ts";
import { createKey, setUp, type Site, startSite, type Visit } from "./support/site.ts";

const LIST = "**/parley.console.v1.KeyService/List";

let site: Site;
let visit: Visit;

beforeAll(async () => {
  site = await startSite();
  visit = await site.visit("/");
  await setUp(visit.page);
});
afterEach(() => visit.page.unrouteAll());
afterAll(() => site?.close());

describe("a page", () => {
  it("shows a loading state", async () => {
    const { page } = visit;
    let answer = (): void => undefined;
    const asked = new Promise<void>((resolve) => (answer = resolve));
    await page.route(LIST, async (route) => {
      await asked;
      await route.continue();
    });
    await page.reload();
    await page.getByText("Loading the keys").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    answer();
    await page.getByText("first key").waitFor();
    expect(await page.getByText("Loading the keys").count()).toBe(0);
  });

  it("shows an error if its data cannot be loaded, with a retry button", async () => {
    const { page } = visit;
    await page.route(LIST, (route) => route.abort());
    await page.reload();
    const alert = page.getByRole("alert");
    await alert.waitFor();
    expect(await alert.innerText()).toContain("Can’t reach Parley");
    expect(await findBarriersEverywhere(page)).toEqual([]);
    const retry = page.getByRole("button", { name: "Retry" });
    const asked = page.waitForRequest(LIST);
    await retry.click();
    await asked;
    await page.unroute(LIST);
    // The page may ask again by itself before the second click.
    await Promise.race([retry.click(), page.getByText("first key").waitFor()]);
    await page.getByText("first key").waitFor();
  });

  it("reloads its data automatically when Parley is reachable again", async () => {
    const { page } = visit;
    await page.route(/parley\.console|healthz/, (route) => route.abort());
    await page.reload();
    await page.getByRole("heading", { name: "No connection" }).waitFor();
    await page.getByText("Can’t reach Parley. Retrying…").waitFor();
    await page.unrouteAll();
    await page.getByText("first key").waitFor();
    expect(await page.getByText("Can’t reach Parley").count()).toBe(0);
  });

  it("shows the error message of the service, escaped", async () => {
    const { page } = visit;
    const info = { type: "google.rpc.ErrorInfo", value: "CgdVTktOT1dOEgZwYXJsZXk" };
    const body = JSON.stringify({ code: "unavailable", message: "The ledger <b>rests</b>.", details: [info] });
    await page.route(LIST, (route) => route.fulfill({ status: 503, contentType: "application/json", body }));
    await page.reload();
    await page.getByText("The ledger <b>rests</b>.").waitFor();
    expect(await page.locator("main b").count()).toBe(0);
  });

  it("keeps outdated data with a warning if the refresh fails", async () => {
    const { page } = visit;
    await page.reload();
    await page.getByText("first key").waitFor();
    await page.route(LIST, (route) => route.abort());
    await createKey(page, "not listed yet");
    await page.getByText("The data may be out of date").waitFor();
    expect(await page.getByText("first key").count()).toBe(1);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.unroute(LIST);
    await page.getByText("not listed yet").waitFor();
    expect(await page.getByText("may be out of date").count()).toBe(0);
  });

  it("shows an error if its chunk cannot be loaded, and other pages still work", async () => {
    const { page, complaints } = visit;
    await page.route("**/assets/account-*.js", (route) => route.abort());
    await page.getByRole("link", { name: "Account" }).click();
    await page.getByText("This page could not be loaded.").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByRole("link", { name: "Keys" }).click();
    await page.route("**/healthz", (route) => route.abort());
    await page.getByRole("link", { name: "Account" }).click();
    await page.getByText("Can’t reach Parley. Retrying…").waitFor();
    await page.unrouteAll();
    await page.getByLabel("Current password").waitFor();

    await page.getByRole("link", { name: "Keys" }).click();
    await page.getByText("first key").waitFor();
    // The browser and React both report the missing file.
    complaints.length = 0;
  });

  it("shows an error if the session cannot be loaded, with a retry button", async () => {
    const { page } = visit;
    const session = "**/parley.console.v1.SessionService/GetSession";
    await page.route(session, (route) => route.abort());
    // Otherwise the page tries again by itself.
    await page.route("**/healthz", (route) => route.abort());
    await page.reload();
    await page.getByRole("alert").waitFor();
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.unroute(session);
    await page.getByRole("button", { name: "Retry" }).click();
    await page.getByText("first key").waitFor();
    await page.unrouteAll();
  });
});

describe("many keys", () => {
  it("can be searched by name", async () => {
    const { page } = visit;
    await page.evaluate(`Promise.all(Array.from({ length: 12 }, (_, index) => fetch("/parley.console.v1.KeyService/Create", {
      method: "POST",
      headers: { "content-type": "application/json" },
      body: JSON.stringify({ name: "program-" + index }),
    })))`);
    await page.reload();
    await page.getByLabel("Find a key").fill("PROGRAM-7");
    await expect.poll(() => page.getByRole("table", { name: "Active keys" }).getByRole("row").count()).toBe(2);
    expect(await findBarriersEverywhere(page)).toEqual([]);
    await page.getByLabel("Find a key").fill("nothing like it");
    await page.getByText("No active key matches.").waitFor();
  });
});
