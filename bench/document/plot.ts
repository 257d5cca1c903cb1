import { PARLEY } from "../contestants/parley.ts";
import type { LoadResult, Result } from "../measure/result.ts";

const WIDTH = 760;
const MARGIN = 16;
const TITLE_HEIGHT = 30;
const BAR_HEIGHT = 16;
const BAR_STEP = 22;
const NAMES_WIDTH = 250;
/** Space for the numbers after the longest bar. */
const NUMBERS_WIDTH = 150;
const BARS_WIDTH = WIDTH - NAMES_WIDTH - NUMBERS_WIDTH - 2 * MARGIN;

/** Colours for light and dark backgrounds, chosen by the reader's colour scheme. */
const STYLE = `
  text { font: 12px system-ui, sans-serif; fill: #1f2328; }
  .title { font-weight: 600; }
  .ground { fill: #ffffff; }
  .floor { fill: #8c959f; }
  .other { fill: #b9c0c8; }
  .parley { fill: #0969da; }
  @media (prefers-color-scheme: dark) {
    text { fill: #e6edf3; }
    .ground { fill: #0d1117; }
    .floor { fill: #7d8590; }
    .other { fill: #484f58; }
    .parley { fill: #4493f8; }
  }
`;

/** The costs of all contestants under each load as bars, each load with its own scale. Invalid results have no bar. */
export function plotCosts(loads: readonly LoadResult[]): string {
  const parts: string[] = [];
  let y = MARGIN;
  for (const load of loads) {
    const figures = load.results.filter(({ problem }) => problem === undefined);
    if (figures.length === 0) continue;
    parts.push(text(`${load.load}: CPU-µs per ${load.unit}`, { x: MARGIN, y: y + 14, kind: "title" }));
    y += TITLE_HEIGHT;
    const most = Math.max(...figures.map(({ cpuUs }) => cpuUs.median));
    for (const result of figures) {
      parts.push(...bar(result, { y, most, floor: load.floor }));
      y += BAR_STEP;
    }
    y += MARGIN;
  }
  const size = `width="${WIDTH}" height="${y}" viewBox="0 0 ${WIDTH} ${y}"`;
  return [
    `<svg xmlns="http://www.w3.org/2000/svg" ${size} role="img" aria-label="CPU time per request or chunk">`,
    `<style>${STYLE}</style>`,
    `<rect class="ground" width="${WIDTH}" height="${y}"/>`,
    ...parts,
    "</svg>\n",
  ].join("\n");
}

interface Row {
  readonly y: number;
  /** Highest cost of the load. */
  readonly most: number;
  readonly floor: string;
}

function bar({ contestant, cpuUs, ratio }: Result, { y, most, floor }: Row): readonly string[] {
  const width = Math.max(1, (cpuUs.median / most) * BARS_WIDTH);
  const left = MARGIN + NAMES_WIDTH;
  const kind = contestant === floor ? "floor" : contestant === PARLEY ? "parley" : "other";
  const middle = y + BAR_HEIGHT - 4;
  return [
    text(contestant, { x: MARGIN, y: middle }),
    `<rect class="${kind}" x="${left}" y="${y}" width="${width.toFixed(1)}" height="${BAR_HEIGHT}" rx="2"/>`,
    text(`${cpuUs.median.toFixed(1)} · ${ratio.median.toFixed(2)} ×`, { x: left + width + 8, y: middle }),
  ];
}

interface Text {
  readonly x: number;
  readonly y: number;
  readonly kind?: string;
}

function text(content: string, { x, y, kind }: Text): string {
  const safe = content.replaceAll("&", "&amp;").replaceAll("<", "&lt;");
  return `<text${kind === undefined ? "" : ` class="${kind}"`} x="${x.toFixed(1)}" y="${y}">${safe}</text>`;
}
