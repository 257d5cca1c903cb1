import { afterAll, beforeAll, describe, expect, it } from "vitest";
import { setUp, type Site, startSite } from "./support/site.ts";

/** Maximum size of the JavaScript of a page, compressed: of the pages that people begin with. */
const MAX_BYTES = 130_000;

let site: Site;

beforeAll(async () => {
  site = await startSite();
});
afterAll(() => site?.close());

const LOADED = `performance.getEntriesByType("resource")
  .filter(({ name }) => name.endsWith(".js"))
  .map(({ name, encodedBodySize, decodedBodySize }) => ({ name: name.split("/").at(-1), encodedBodySize, decodedBodySize }))`;

interface Loaded {
  readonly name: string;
  readonly encodedBodySize: number;
  readonly decodedBodySize: number;
}

describe("the first load", () => {
  it("takes at most 130 kB of JavaScript for the set-up page, the overview and the list of keys", async () => {
    const { page } = await site.visit("/");
    await page.getByRole("heading", { name: "Set up Parley" }).waitFor();
    const sizes: Record<string, number> = { "set-up": sum(await page.evaluate<Loaded[]>(LOADED)) };
    await setUp(page);
    const loaded: Loaded[] = [];
    for (const [name, path, text] of [
      ["overview", "/", "Unhealthy targets"],
      ["keys", "/keys", "first key"],
    ] as const) {
      // A new context has an empty cache.
      const context = await page.context().browser()!.newContext();
      await context.addCookies(await page.context().cookies());
      const again = await context.newPage();
      await again.goto(site.product.url + path);
      await again.getByText(text).waitFor();
      const scripts = await again.evaluate<Loaded[]>(LOADED);
      loaded.push(...scripts);
      sizes[name] = sum(scripts);
      await context.close();
    }
    for (const [name, bytes] of Object.entries(sizes)) console.log(`${name}: ${bytes} bytes of JavaScript, compressed`);
    expect(loaded.every(({ encodedBodySize, decodedBodySize }) => encodedBodySize < decodedBodySize)).toBe(true);
    for (const [name, bytes] of Object.entries(sizes)) expect([name, bytes <= MAX_BYTES]).toEqual([name, true]);
  });
});

function sum(loaded: readonly Loaded[]): number {
  return loaded.reduce((total, { encodedBodySize }) => total + encodedBodySize, 0);
}
