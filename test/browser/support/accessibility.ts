import { readFileSync } from "node:fs";
import { createRequire } from "node:module";
import type { Page } from "playwright-core";

const AXE = readFileSync(createRequire(import.meta.url).resolve("axe-core/axe.min.js"), "utf8");

/** Rules whose result depends on colours. */
const COLOUR_RULES = ["color-contrast", "link-in-text-block"];

/** Returns the axe-core violations of the current page, one line each. */
export function findBarriers(page: Page): Promise<string[]> {
  return runAxe(page, {});
}

async function runAxe(page: Page, options: object): Promise<string[]> {
  // Colours in a transition belong to neither theme.
  await page.evaluate("Promise.allSettled(document.getAnimations().map((animation) => animation.finished))");
  // 600 kB, once for each document.
  if (!(await page.evaluate<boolean>("'axe' in globalThis"))) await page.evaluate(AXE);
  // Without `preload` axe asks for every style sheet again, which no rule needs that runs.
  return page.evaluate(`axe
    .run(${JSON.stringify({ resultTypes: ["violations"], preload: { assets: ["media"] }, ...options })})
    .then(({ violations }) => violations.flatMap(({ id, nodes }) => nodes.map(({ target, failureSummary }) => id + " " + target + " " + failureSummary)))`);
}

export const SIZES = [
  [1440, 900],
  [390, 844],
] as const;

/** Also a wide window, and a narrow one that still has tables. */
export const TABLE_SIZES = [...SIZES, [1920, 1080], [1024, 768]] as const;

/**
 * Returns the axe-core violations of the current page in every size and theme, and horizontal overflow. A theme changes only
 * colours: in the second one only the rules about them run.
 */
export async function findBarriersEverywhere(
  page: Page,
  sizes: readonly (readonly [width: number, height: number])[] = SIZES,
): Promise<string[]> {
  const found: string[] = [];
  for (const [width, height] of sizes) {
    await page.setViewportSize({ width, height });
    for (const colorScheme of ["light", "dark"] as const) {
      await page.emulateMedia({ colorScheme, reducedMotion: "reduce" });
      await page.locator(`html[data-theme=${colorScheme}]`).waitFor();
      const where = `${new URL(page.url()).pathname} at ${width} ${colorScheme}`;
      const barriers = await (colorScheme === "light" ? findBarriers(page) : runAxe(page, { runOnly: COLOUR_RULES }));
      found.push(...barriers.map((barrier) => `${where}: ${barrier}`));
      const isWide: boolean = await page.evaluate("document.documentElement.scrollWidth > innerWidth");
      if (isWide) found.push(`${where}: scrolls sideways`);
    }
  }
  await page.setViewportSize({ width: 1440, height: 900 });
  return found;
}
