import { readFileSync } from "node:fs";
import { join } from "node:path";
import { describe, expect, it } from "vitest";

const css = readFileSync(join(import.meta.dirname, "../../web/main.css"), "utf8");
const [light = "", dark = ""] = css.split('[data-theme="dark"]');

type Rgb = readonly [red: number, green: number, blue: number];

/** Matrices on linear RGB that simulate colour vision deficiencies (Machado 2009, severity 1). */
const VISION: Readonly<Record<string, readonly [Rgb, Rgb, Rgb]>> = {
  normal: [
    [1, 0, 0],
    [0, 1, 0],
    [0, 0, 1],
  ],
  deuteranopia: [
    [0.367322, 0.860646, -0.227968],
    [0.280085, 0.672501, 0.047413],
    [-0.01182, 0.04294, 0.968881],
  ],
  protanopia: [
    [0.152286, 1.052583, -0.204868],
    [0.114503, 0.786281, 0.099216],
    [-0.003882, -0.048116, 1.051998],
  ],
};

/** Returns the last definition of a colour in a theme, as linear RGB. */
function colour(theme: string, name: string): Rgb {
  const found = new RegExp(`--color-${name}: #([0-9a-f]{6});`).exec(theme)?.[1] ?? "";
  const [red, green, blue] = [0, 2, 4].map((at) => {
    const share = Number.parseInt(found.slice(at, at + 2), 16) / 255;
    return share <= 0.04045 ? share / 12.92 : ((share + 0.055) / 1.055) ** 2.4;
  }) as [number, number, number];
  return [red, green, blue];
}

function contrast(one: Rgb, other: Rgb): number {
  const [first, second] = [one, other].map(([r, g, b]) => 0.2126 * r + 0.7152 * g + 0.0722 * b + 0.05);
  return Math.max(first!, second!) / Math.min(first!, second!);
}

function oklab([r, g, b]: Rgb): Rgb {
  const l = Math.cbrt(0.4122214708 * r + 0.5363325363 * g + 0.0514459929 * b);
  const m = Math.cbrt(0.2119034982 * r + 0.6806995451 * g + 0.1073969566 * b);
  const s = Math.cbrt(0.0883024619 * r + 0.2817188376 * g + 0.6299787005 * b);
  return [
    0.2104542553 * l + 0.793617785 * m - 0.0040720468 * s,
    1.9779984951 * l - 2.428592205 * m + 0.4505937099 * s,
    0.0259040371 * l + 0.7827717662 * m - 0.808675766 * s,
  ];
}

function distance(one: Rgb, other: Rgb, vision: string): number {
  const seen = ([r, g, b]: Rgb): Rgb =>
    oklab(VISION[vision]!.map((row) => Math.min(Math.max(row[0] * r + row[1] * g + row[2] * b, 0), 1)) as never);
  const [first, second] = [seen(one), seen(other)];
  return Math.hypot(...first.map((value, index) => value - second[index]!));
}

const PARTS = [1, 2, 3, 4, 5, 6, 7].map((part) => `chart-${part}`);

describe.each([
  ["light", light, 0.045, 0.18],
  ["dark", dark, 0.1, 0.14],
])("chart colours in the %s theme", (_, theme, least, most) => {
  it("have a contrast of at least 3 with the surface", () => {
    for (const part of [...PARTS, "danger"]) {
      expect([part, contrast(colour(theme, part), colour(theme, "surface")) >= 3]).toEqual([part, true]);
    }
  });

  it.each(Object.keys(VISION))("are distinguishable with %s vision", (vision) => {
    for (const [index, one] of PARTS.entries()) {
      for (const other of PARTS.slice(index + 1)) {
        const apart = distance(colour(theme, one), colour(theme, other), vision);
        expect([one, other, apart >= least]).toEqual([one, other, true]);
      }
    }
  });

  it("have a low saturation, unlike error colours", () => {
    for (const part of PARTS) {
      const [, a, b] = oklab(colour(theme, part));
      expect([part, Math.hypot(a, b) < most]).toEqual([part, true]);
    }
  });
});
